# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The demo that the README begins with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.state_folder import state_root

DEMO = Path(__file__).parents[2] / "scripts/demo"


# Both of its hosts are this machine, so root's state folder is that of every other run here, which may clean it up.
APART = 'mkdir -p "$1" && mount -t tmpfs -o mode=700 none "$1" && exec "$2"'


@pytest.mark.timeout(900)
def test_the_demo_ends_as_promised() -> None:
    environment = {**os.environ, "DEMO_MIB": "8"}
    argv = ["unshare", "--mount", "sh", "-ec", APART, "sh", state_root(), str(DEMO)]
    ran = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=850)
    promises = [line.split(maxsplit=1) for line in ran.stdout.splitlines() if line.startswith(("  yes ", "  NO "))]
    assert len(promises) == 5 and {kept for kept, _promise in promises} == {"yes"}, ran.stdout
    assert ran.returncode == 0, ran.stdout + ran.stderr
