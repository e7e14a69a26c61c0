# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compiled code is kept between the processes of the tests, also where the caller's environment forbids it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ansible_collections.longhaul.fleet.tests.tools import collection


def test_compiled_code_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(collection, "BYTECODE", tmp_path / "bytecode")
    (tmp_path / "imported_once.py").write_text("NUMBER = 1\n")
    environment = collection.environment(Path("/programs"))
    subprocess.run([sys.executable, "-c", "import imported_once"], cwd=tmp_path, env=environment, check=True)
    assert list((tmp_path / "bytecode").rglob("imported_once.*.pyc")) and not list(tmp_path.glob("__pycache__"))
    assert environment["PATH"].startswith("/programs:")
