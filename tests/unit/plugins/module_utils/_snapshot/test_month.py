# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A month of daily edits and prunings: the disk holds what changed, and the policy decides what is kept.

``tests/month.py`` does the same with a tree as large as a server has, by the engine's own transfers.
"""

from __future__ import annotations

import random

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.actions import Holders, do_action
from ansible_collections.longhaul.fleet.tests.support.month import DAY, Cost, Month
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import NOON, rot, transfer

FILES, SIZE, DAYS, EDITS = 300, 1000, 30, 4


@pytest.mark.newest
@pytest.mark.parametrize("pruned", [True, False])
def test_a_month_costs_what_changed_in_it(bench, pruned):
    dice = random.Random(30)

    def edit(day):
        for number in dice.sample(range(FILES), EDITS) if day else range(FILES):
            noise = dice.getrandbits(8 * SIZE).to_bytes(SIZE, "big")  # Python 3.8 has no randbytes
            bench.write(f"d{number % 10}/f{number}", noise, mtime=NOON + day * DAY - 60)

    month = Month(bench.source, bench.repository, transfer, NOON, daily=7, weekly=3)
    for number, day in enumerate(month.live(DAYS, edit, pruned=pruned)):
        changed = EDITS if number else FILES
        assert day.new == day.changed == Cost(changed, changed * SIZE)
        assert day.kept == month.expected()
    if not pruned:  # the disk holds every version that there ever was
        versions = FILES + EDITS * (DAYS - 1)
        assert month.use().files == Cost(versions, versions * SIZE)
        month.prune(NOON + (DAYS - 1) * DAY)

    # The last 7 days, and the Sundays that end weeks: the first day is a Saturday, so day 1, 8, 15, 22 and 29.
    kept = [names.name_of(NOON + day * DAY) for day in (15, 22, *range(23, 30))]
    assert month.there() == month.expected() == kept
    assert [month.differences(name) for name in kept] == [[]] * len(kept)
    assert month.use().files == month.needed()
    assert month.needed().files <= FILES + EDITS * (29 - 15)  # the whole tree once, and no more than was edited since


@pytest.mark.newest
def test_a_month_on_a_disk_that_rots(bench, monkeypatch):
    """A check reads a third each night. What it has not seen yet may be in later snapshots, what it has seen not."""
    dice = random.Random(31)
    clock = [NOON]
    monkeypatch.setattr("time.time", lambda: clock[0])
    nobody = Holders(lambda path: None, lambda path: None)
    place = (str(bench.repository), "host", "job")

    def edit(day):
        for number in dice.sample(range(FILES), EDITS) if day else range(FILES):
            noise = dice.getrandbits(8 * SIZE).to_bytes(SIZE, "big")
            bench.write(f"d{number % 10}/f{number}", noise, mtime=NOON + day * DAY - 60)

    month = Month(bench.source, bench.repository, transfer, NOON, daily=30)
    failed, rotten, healed = [], set(), 0
    for number, day in enumerate(month.live(DAYS, edit)):
        clock[0] = NOON + number * DAY + 600
        if number % 8 == 3:
            number_of_file = dice.randrange(FILES)
            path = f"d{number_of_file % 10}/f{number_of_file}"
            rotten.add(path)
            rot(month.folder / day.name / "data" / path)
        done = do_action("check", place, {"check_subset": "1/3"}, nobody)
        failed.append(bool(done.failed))
        healed += month.figures.healed
    assert len(rotten) == healed == sum(failed) == 4  # each is told once, and healed in the next night
    assert not failed[-1] and month.differences(month.there()[-1]) == []
    told = [text for text in done.warnings if text.startswith("known damage in older snapshots")]
    assert len(told) == 1 and all(f"'{path}' in " in told[0] for path in rotten)
    for name in month.there():
        wrong = {line.split(":")[0] for line in month.differences(name)}
        assert all(any(path in line for path in rotten) for line in wrong), wrong
