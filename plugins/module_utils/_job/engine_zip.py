# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pack the engine into one file that any Python on the host can run. Private to the collection.

A job outlives the module that starts it, and Ansible removes its module's files at once. So the module packs the
packages below ``module_utils``, which need nothing but the standard library, into ``engine.pyz``, and starts that.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import zipfile

_PACKAGE = "longhaul"
_MAIN = f"""\
import sys

if len(sys.argv) > 1 and sys.argv[1] == "gate":  # started by sshd for each session: imports nothing else
    from {_PACKAGE}._methods import gate
    sys.exit(gate.main(sys.argv[2:]))
from {_PACKAGE}._job import main
sys.exit(main.main(sys.argv[1:]))
"""


def _sources(package_name: str, prefix: str) -> list[tuple[str, str]]:
    """Give (path in the archive, source text) of a package and all below it, read through its own loader."""
    package = importlib.import_module(package_name)
    sources = [(f"{prefix}/__init__.py", _source_of(package_name))]
    for info in pkgutil.iter_modules(package.__path__):
        name, path = f"{package_name}.{info.name}", f"{prefix}/{info.name}"
        sources += _sources(name, path) if info.ispkg else [(f"{path}.py", _source_of(name))]
    return sources


def _source_of(name: str) -> str:
    spec = importlib.util.find_spec(name)
    return (spec.loader.get_source(name) if spec and spec.loader else "") or ""  # type: ignore[attr-defined]


def pack_engine(path: str) -> None:
    """Write the engine to ``path``, whether this code runs from a folder or from Ansible's own archive.

    It is not compressed: it is read once, at once, and goes with the transfer.
    """
    from . import main  # noqa: F401 # pylint: disable=unused-import # Ansible sends what it sees imported: so it sees the whole engine

    root = __name__.rsplit(".", 2)[0]  # the package above _job
    temporary = f"{path}.{os.getpid()}"
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("__main__.py", _MAIN)
        archive.writestr(f"{_PACKAGE}/__init__.py", "")
        for name in ("_tree", "_exchange", "_stream", "_methods", "_rsyncd", "_job"):
            for file, source in _sources(f"{root}.{name}", f"{_PACKAGE}/{name}"):
                archive.writestr(file, source)
    os.replace(temporary, path)
