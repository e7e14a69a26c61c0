# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The soak that waits for running transfers, with a few of them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from ansible_collections.longhaul.fleet.tests import soak
from ansible_collections.longhaul.fleet.tests.testbed import Testbed


@pytest.mark.long
def test_jobs_that_run_elsewhere_are_waited_for(
    testbed: Testbed,  # skips if there can be none; the soak brings up its own
) -> None:
    argv = [sys.executable, "-m", soak.__name__, "watch", "3", "--minutes", "0.1"]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    seen = re.search(r"3 transfers over 3 destinations, 0.1 minutes: (\S+) processor seconds", ended.stdout)
    assert seen and float(seen[1]) > 0, ended.stdout
