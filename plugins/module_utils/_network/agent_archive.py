# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build the archive of the checkpoint's code: one file that the host can run on its own. Private to the collection.

The way back must not need Ansible, which removes its module's files at once. So the modules of this package, which
need nothing but the standard library, are packed into ``checkpoint.pyz``, beside what was saved.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import zipfile

from . import revert_agent  # noqa: F401 # pylint: disable=unused-import # Ansible sends only what it sees imported

_MAIN = """\
import sys

from longhaul_network import revert_agent
sys.exit(revert_agent.main(sys.argv[1:]))
"""


def build_archive(path: str) -> None:
    """Write the archive to ``path``, whether this code runs from a folder or from Ansible's own archive."""
    package_name = __name__.rsplit(".", 1)[0]
    package = importlib.import_module(package_name)
    temporary = f"{path}.{os.getpid()}"
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__main__.py", _MAIN)
        archive.writestr("longhaul_network/__init__.py", "")
        for info in pkgutil.iter_modules(package.__path__):
            name = f"{package_name}.{info.name}"
            spec = importlib.util.find_spec(name)
            source = spec.loader.get_source(name) if spec and spec.loader else ""  # type: ignore[attr-defined]
            archive.writestr(f"longhaul_network/{info.name}.py", source or "")
    os.replace(temporary, path)
