# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every pair of a wish and a place has its row, and nothing of somebody is written over without being asked."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml
from ansible_collections.longhaul.fleet.plugins.plugin_utils.restore.place import (
    TABLE,
    Known,
    Place,
    Step,
    Wish,
    decide,
    place_of,
)

ROLE = Path(__file__).resolve().parents[5] / "roles/restore"
EVERY = list(itertools.product(Wish, Place))


def state(is_free, known=Known.NEVER, would_change=None) -> dict:
    """Return what the role has found, as it keeps it."""
    return {"is_free": is_free, "known": known.value, "would_change": would_change}


STATES = {
    Place.FREE: [state(True, known, change) for known in Known for change in (None, 0, 1)],
    Place.BEGUN: [state(False, known, change) for known in (Known.BEGUN, Known.FAILED) for change in (None, 0, 1)],
    Place.OCCUPIED: [state(False), state(False, Known.RESTORED)],
    Place.SAME: [state(False, known, 0) for known in (Known.NEVER, Known.RESTORED)],
    Place.OTHER: [state(False, known, 1) for known in (Known.NEVER, Known.RESTORED)],
}


def test_the_table_has_each_wish_and_place():
    assert {(wish, place) for wish, row in TABLE.items() for place in row} == set(EVERY) and set(STATES) == set(Place)


@pytest.mark.parametrize("place", Place)
def test_a_place_is_read_from_what_was_found(place):
    assert {place_of(found) for found in STATES[place]} == {place}


@pytest.mark.parametrize("wish, place", EVERY)
def test_what_holds_for_every_row(wish, place):
    steps = TABLE[wish][place]
    assert (steps is None) == (wish is Wish.BESIDE and place is Place.OTHER), "only somebody's own is refused"
    if steps is None:
        return
    assert list(steps) == [step for step in Step if step in steps], "in their order, none twice"
    assert steps[-1] is Step.TRANSFER
    if wish is Wish.BESIDE:
        assert (Step.PREDICT in steps) == (place is Place.OCCUPIED), "it is compared where something is"
    else:
        assert steps == (Step.TRANSFER,)


@pytest.mark.parametrize("wish, place", EVERY)
@pytest.mark.parametrize("kind, words", [("directory", "and not empty"), ("file", "already")])
def test_a_decision_is_the_row_or_says_why_not(wish, place, kind, words):
    for found in STATES[place]:
        made = decide(found, wish is Wish.OVER, "web1", "/srv/x", kind)
        if TABLE[wish][place] is None:
            assert made.steps == () and f"/srv/x is there on web1 {words}, and is not" in made.refused
            assert "restore_dest" in made.refused and "restore_over=true" in made.refused
        else:
            assert (made.steps, made.refused) == (TABLE[wish][place], "")


def test_the_role_writes_down_what_is_known_here():
    tasks = [task for path in ROLE.glob("tasks/*.yml") for task in tasks_of(yaml.safe_load(path.read_text()))]
    written = {task["vars"]["__restore_state"] for task in tasks if "__restore_state" in task.get("vars", {})}
    assert written == {known.value for known in Known if known is not Known.NEVER}


def tasks_of(tasks: list[dict]) -> list[dict]:
    """Return tasks with those inside of blocks."""
    inside = [one for task in tasks for part in ("block", "rescue", "always") for one in task.get(part, ())]
    return [*tasks, *(tasks_of(inside) if inside else ())]
