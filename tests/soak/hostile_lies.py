# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An end of any version that is not as it was shipped: ``hostile_lies.py LIE ends.py REQUEST.json RESULT.json``.

It imports the collection of that version, whose modules have other names in each.
"""

from __future__ import annotations

import importlib
import runpy
import sys
import threading
from typing import Any, Callable

UNITS = "ansible_collections.longhaul.fleet.plugins.module_utils"


def _load(*names: str) -> Any:
    """Return the first of these modules that there is."""
    for name in names[:-1]:
        try:
            return importlib.import_module(f"{UNITS}.{name}")
        except ModuleNotFoundError:
            continue
    return importlib.import_module(f"{UNITS}.{names[-1]}")


def staging_offered() -> None:
    """Be a source that offers the folder of a transfer, too, if its tree has one."""
    walk = _load("_tree.walk")
    if hasattr(walk, "is_staging"):
        walk.is_staging = lambda _path: False
        return
    begin = walk._Reader.__init__  # pylint: disable=protected-access

    def begin_without(self: Any, *arguments: Any) -> None:
        begin(self, *arguments)
        self._omit = None

    walk._Reader.__init__ = begin_without  # pylint: disable=protected-access


def looked_at() -> None:
    """Be an honest serving end of rsyncd at which a job looks again and again."""
    method = _load("_methods.rsyncd.method", "_methods.rsyncd")
    serve = method.serve

    def serve_and_look(context: Any) -> Any:
        server = serve(context)
        over = threading.Event()
        close = server.close

        def look() -> None:
            while not over.wait(0.002):  # it must be seen that somebody is connected
                server.active()

        def close_both() -> None:
            over.set()
            looking.join()
            close()

        looking = threading.Thread(target=look)
        looking.start()
        server.close = close_both
        return server

    method.serve = serve_and_look


LIES: dict[str, Callable[[], None]] = {lie.__name__: lie for lie in (staging_offered, looked_at)}

if __name__ == "__main__":
    del sys.path[0]  # this folder
    if sys.argv[1]:
        LIES[sys.argv[1]]()
    del sys.argv[:2]
    runpy.run_path(sys.argv[0], run_name="__main__")
