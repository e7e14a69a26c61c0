# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The demo that the README begins with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

DEMO = Path(__file__).parents[2] / "scripts/demo"


def test_the_demo_ends_as_promised() -> None:
    environment = {**os.environ, "DEMO_MIB": "8"}
    ran = subprocess.run([DEMO], env=environment, capture_output=True, text=True, check=False, timeout=300)
    promises = [line.split(maxsplit=1) for line in ran.stdout.splitlines() if line.startswith(("  yes ", "  NO "))]
    assert len(promises) == 5 and {kept for kept, _promise in promises} == {"yes"}, ran.stdout
    assert ran.returncode == 0, ran.stdout + ran.stderr
