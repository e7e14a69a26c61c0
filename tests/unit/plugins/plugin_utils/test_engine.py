# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The engine runs from its archive alone, on a Python that has nothing else."""

from __future__ import annotations

import base64
import io
import subprocess
import sys
import zipfile

from ansible_collections.longhaul.fleet.plugins.plugin_utils.engine import engine_argument, pack_engine


def test_it_holds_what_transfers_need_and_nothing_else():
    with zipfile.ZipFile(io.BytesIO(pack_engine())) as packed:
        names = set(packed.namelist())
    assert {"__main__.py", "longhaul/__init__.py", "longhaul/_job/main.py", "longhaul/_methods/gate.py"} <= names
    assert not [name for name in names if name.startswith(("longhaul/_snapshot", "longhaul/_network"))]
    assert not [name for name in names if not name.endswith(".py")]


def test_its_modules_are_found_without_the_collection(tmp_path):
    engine = tmp_path / "engine.pyz"
    engine.write_bytes(base64.b64decode(engine_argument()))
    load = "import longhaul._job.main, longhaul._job.transfer_job, longhaul._job.steps, longhaul._methods.stream"
    code = f"import sys; sys.path.insert(0, {str(engine)!r}); {load}; print(longhaul._job.steps.__file__)"
    said = subprocess.run([sys.executable, "-I", "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert said.startswith(str(engine))
