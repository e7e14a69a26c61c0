# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The engine: what runs on hosts, packed into one file that any Python there can run.

It travels to the hosts as an argument of the module ``longhaul.fleet.endpoint``. Where a module imports module_utils,
Ansible parses each file that it may need, for their imports, in each playbook anew: with more than a hundred of them
that took most of the time before the first byte. And a job outlives the module that starts it, and Ansible removes its
module's files at once, so that it needs a file of its own anyway.
"""

from __future__ import annotations

import base64
import functools
from pathlib import Path

from ansible_collections.longhaul.fleet.plugins.module_utils._core.archives import build_archive

PACKAGE = "longhaul"  # its name in the archive
_PACKAGES = ("_core", "_model", "_tree", "_engine", "_methods", "_rsyncd", "_job")  # below module_utils
_MODULE_UTILS = Path(__file__).resolve().parents[1] / "module_utils"
_MAIN = f"""\
import sys

if len(sys.argv) > 1 and sys.argv[1] == "gate":  # started by sshd for each session: imports nothing else
    from {PACKAGE}._methods.ssh import forced_command
    sys.exit(forced_command.main(sys.argv[2:]))
from {PACKAGE}._job import main
sys.exit(main.main(sys.argv[1:]))
"""


def pack_engine() -> bytes:
    """Give the archive (zip, as Python runs it): what is below module_utils and needs the standard library alone.

    It is the same for the same sources: hosts keep it compiled under its digest.
    """
    files = {"__main__.py": _MAIN.encode(), f"{PACKAGE}/__init__.py": b""}
    for package in _PACKAGES:
        for file in sorted((_MODULE_UTILS / package).rglob("*.py")):
            is_map = file.name == "__init__.py"  # which tells people what is where, and holds no code
            files[f"{PACKAGE}/{file.relative_to(_MODULE_UTILS).as_posix()}"] = b"" if is_map else file.read_bytes()
    return build_archive(files)


@functools.lru_cache(maxsize=1)
def engine_argument() -> str:
    """Give the engine as the module takes it: in base64."""
    return base64.b64encode(pack_engine()).decode()
