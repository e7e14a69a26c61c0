# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that rests from garbage looks for it seldom, and still finds it."""

from __future__ import annotations

import os
import subprocess
import sys

_PROGRAM = """
import gc, weakref
from ansible_collections.longhaul.fleet.plugins.module_utils._core.garbage import rest_from_garbage

class Node:
    pass

def cycle():
    one = Node()
    one.itself = one
    return weakref.ref(one)

rest_from_garbage()
assert gc.get_freeze_count() > 1000, "what is imported is looked at again"
looks = gc.get_stats()[0]["collections"]
kept = [[] for _number in range(50_000)]
assert gc.get_stats()[0]["collections"] == looks
found = cycle()
more = [[] for _number in range(100_000)]
assert found() is None
"""


def test_cycles_are_found_late_and_what_is_imported_is_left_alone():
    program = [sys.executable, "-c", _PROGRAM]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
