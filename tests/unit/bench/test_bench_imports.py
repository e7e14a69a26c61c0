# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``make bench`` runs with what Ansible users have, without the programs of the developers."""

from __future__ import annotations

import subprocess
import sys

ALONE = "import sys; sys.modules['pytest'] = None; from ansible_collections.longhaul.fleet.tests.bench import run"


def test_the_benchmark_needs_no_pytest():
    subprocess.run([sys.executable, "-c", ALONE], check=True)
