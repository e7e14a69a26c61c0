# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A side of a transfer that lies: ``hostile_lies.py LIE ends.py REQUEST.json RESULT.json``."""

from __future__ import annotations

import importlib
import runpy
import sys
import threading
from typing import Any, Callable

UNITS = "ansible_collections.longhaul.fleet.plugins.module_utils"


def staging_offered() -> None:
    """Be a source that offers the folder of a transfer, too, if its tree has one."""
    walk: Any = importlib.import_module(f"{UNITS}._tree.walk")
    assert walk.is_staging  # or this would be no lie
    walk.is_staging = lambda _path: False


def looked_at() -> None:
    """Be an honest serving end of rsyncd at which a job looks again and again."""
    method: Any = importlib.import_module(f"{UNITS}._methods.rsyncd.method")
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
