# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A month of daily edits and prunings: the disk holds what changed, and the policy decides what is kept."""

from __future__ import annotations

import os
import random

from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.policy import Policy
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.prune import prune
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import DAY, NOON, contents

FILES, SIZE, DAYS, EDITS = 300, 1000, 30, 4


def noise(dice):
    return dice.getrandbits(8 * SIZE).to_bytes(SIZE, "big")  # Python 3.8 has no randbytes


def test_a_month_costs_what_changed_in_it(bench):
    dice = random.Random(30)
    for number in range(FILES):
        bench.write(f"d{number % 10}/f{number}", noise(dice))
    days = {}
    written = FILES
    for day in range(DAYS):
        for number in dice.sample(range(FILES), EDITS) if day else ():
            bench.write(f"d{number % 10}/f{number}", noise(dice), mtime=NOON + day * DAY - 60)
            written += 1
        days[names.name_of(NOON + day * DAY)] = contents(bench.source)
        done = bench.backup()
        assert done.facts["new_bytes"] == (FILES if day == 0 else EDITS) * SIZE
        if day == DAYS - 1:  # nothing was pruned until now, so the disk holds every version that there ever was
            assert held(bench) == written * SIZE
        with bench.series() as series:
            prune(series, Policy(daily=7, weekly=3), bench.now, check=day != DAYS - 1)

    # The last 7 days, and the Sundays that end weeks: the first day is a Saturday, so day 1, 8, 15, 22 and 29.
    kept = [names.name_of(NOON + day * DAY) for day in (15, 22, *range(23, 30))]
    assert [name for name in bench.names() if name.startswith("2")] == kept
    for name in kept:
        assert bench.data(name) == days[name]
    versions = {(path, content) for name in kept for path, content in days[name].items() if content is not None}
    assert held(bench) == len(versions) * SIZE
    assert len(versions) <= FILES + EDITS * (29 - 15)  # the whole tree once, and no more than was edited since


def held(bench):
    """Give the bytes of file contents that the repository takes, each file once whatever its names."""
    found = {}
    for name in bench.names():
        for folder, _folders, files in os.walk(bench.path(name, "data")):
            for file in files:
                status = os.lstat(os.path.join(folder, file))
                found[status.st_ino] = status.st_size
    return sum(found.values())
