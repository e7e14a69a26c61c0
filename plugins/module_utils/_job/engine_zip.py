# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pack the engine into one file that any Python on the host can run. Private to the collection.

A job outlives the module that starts it, and Ansible removes its module's files at once. So the module packs the
packages below ``module_utils``, which need nothing but the standard library, into ``engine.pyz``, and starts that.
"""

from __future__ import annotations

import os
import zipfile
from typing import Iterator

_PACKAGE = "longhaul"
_PACKAGES = ("_tree", "_exchange", "_stream", "_methods", "_rsyncd", "_job")  # below module_utils
_MAIN = f"""\
import sys

if len(sys.argv) > 1 and sys.argv[1] == "gate":  # started by sshd for each session: imports nothing else
    from {_PACKAGE}._methods import gate
    sys.exit(gate.main(sys.argv[2:]))
from {_PACKAGE}._job import main
sys.exit(main.main(sys.argv[1:]))
"""


def _sources() -> Iterator[tuple[str, bytes]]:
    """Give (path below module_utils, source) of each file of the engine.

    They are read as files, from a folder or from Ansible's archive: asking the loader module by module costs a start
    ten times as much.
    """
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    archive = getattr(__spec__.loader, "archive", None)
    if archive is None:
        for package in _PACKAGES:
            for folder, _folders, names in os.walk(os.path.join(root, package)):
                for name in names:
                    path = os.path.join(folder, name)
                    if name.endswith(".py"):
                        with open(path, "rb") as stream:
                            yield os.path.relpath(path, root), stream.read()
        return
    prefix = os.path.relpath(root, archive) + "/"
    wanted = tuple(f"{prefix}{package}/" for package in _PACKAGES)
    with zipfile.ZipFile(archive) as packed:
        for path in packed.namelist():
            if path.startswith(wanted) and path.endswith(".py"):
                yield path[len(prefix) :], packed.read(path)


def pack_engine(path: str) -> None:
    """Write the engine to ``path``, whether this code runs from a folder or from Ansible's own archive.

    It is not compressed: it is read once, at once, and goes with the transfer.
    """
    from . import main  # noqa: F401 # pylint: disable=unused-import # Ansible sends what it sees imported: so it sees the whole engine

    temporary = f"{path}.{os.getpid()}"
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("__main__.py", _MAIN)
        archive.writestr(f"{_PACKAGE}/__init__.py", "")
        for file, source in _sources():
            archive.writestr(f"{_PACKAGE}/{file}", source)
    os.replace(temporary, path)
