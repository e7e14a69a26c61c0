# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way back is packed whole, also by a module that runs out of Ansible's archive, and runs by itself."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins import module_utils

ROOT = Path(next(iter(module_utils.__path__)))
BUILD = "from package._network import arming; import sys; arming.build_archive(sys.argv[1])"


@pytest.fixture(name="place", params=["folder", "archive"])
def _place(request, tmp_path):
    """Return where the code is: a folder, or an archive such as the one that Ansible sends."""
    files = {
        f"package/{folder}/{path.name}": path.read_text()
        for folder in ("_core", "_network")
        for path in (ROOT / folder).glob("*.py")
    }
    files["package/__init__.py"] = ""
    if request.param == "archive":
        with zipfile.ZipFile(tmp_path / "sent.zip", "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        return tmp_path / "sent.zip"
    for name, text in files.items():
        (tmp_path / "sent" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sent" / name).write_text(text)
    return tmp_path / "sent"


def test_it_holds_the_code_and_runs(place, tmp_path):
    made = tmp_path / "checkpoint.pyz"
    subprocess.run([sys.executable, "-c", BUILD, made], env={"PYTHONPATH": str(place)}, check=True)
    with zipfile.ZipFile(made) as archive:
        for folder in ("_core", "_network"):
            for path in (ROOT / folder).glob("*.py"):
                if path.name != "__init__.py":
                    assert archive.read(f"longhaul/{folder}/{path.name}").decode() == path.read_text()
    ran = subprocess.run([sys.executable, made, "late", tmp_path, "nothing", "token"], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
