# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build the archive of the checkpoint's code: one file that the host can run on its own. Private to the collection.

The way back must not need Ansible, which removes its module's files at once. So the modules of this package and what
they need of ``_core`` are packed into ``checkpoint.pyz``, beside what was saved.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
from typing import Any

from .._core import archives
from . import revert_agent  # noqa: F401 # pylint: disable=unused-import # Ansible sends only what it sees imported

_MAIN = """\
import sys

from longhaul._network import revert_agent
sys.exit(revert_agent.main(sys.argv[1:]))
"""


def build_archive(path: str) -> None:
    """Write the archive to ``path``, whether this code runs from a folder or from Ansible's own archive."""
    above, own = __name__.rsplit(".", 2)[:2]
    files = {"__main__.py": _MAIN.encode(), "longhaul/__init__.py": b""}
    for folder in ("_core", own):
        package = importlib.import_module(f"{above}.{folder}")
        files[f"longhaul/{folder}/__init__.py"] = b""
        for info in pkgutil.iter_modules(package.__path__):
            name = f"{package.__name__}.{info.name}"
            spec = importlib.util.find_spec(name)
            # Of an archive, as of a folder: but Python does not count the former among its InspectLoaders.
            loader: Any = spec.loader if spec else None
            files[f"longhaul/{folder}/{info.name}.py"] = loader.get_source(name).encode()
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "wb") as stream:
        stream.write(archives.build_archive(files))
    os.replace(temporary, path)
