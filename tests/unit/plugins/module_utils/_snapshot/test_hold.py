# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A protected snapshot stays, whoever asks, until its hold has ended by every clock."""

from __future__ import annotations

import json
import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import actions, names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.actions import Holders, do_action
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.hold import (
    Hold,
    ending_clock,
    parse_hold,
    parse_until,
)
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import (
    DAY,
    FIRST,
    NOON,
    SECOND,
    THIRD,
    contents,
)

NOBODY = Holders(lambda _path: None, lambda _path: None)
KEEP_ONE = {"keep": {"last": 1}}
RULE = "protected until 2026-12-01T00:00:00Z"


@pytest.fixture(name="ask")
def _ask(bench, monkeypatch):
    """Return what does an action at the time of the bench, by the clock of the control node, too."""

    def ask(action, dry=False, **options):
        monkeypatch.setattr(actions.time, "time", lambda: bench.now)
        given = {"control_time": bench.now, "by": "alice on control", **options}
        return do_action(action, (str(bench.repository), "web1", "data"), given, NOBODY, dry)

    return ask


@pytest.fixture(name="three")
def _three(bench):
    for number in range(3):
        bench.write("a", b"%d" % number, NOON + number)
        bench.backup()
    return bench


def hold(ask, name=FIRST, until="2026-12-31", reason="case 4711", **more):
    return ask("protect", name=name, until=until, reason=reason, **more).result


def history(bench):
    lines = map(json.loads, bench.path(names.HISTORY).read_text().splitlines())
    return [(line["act"], line["name"], line.get("why"), line.get("by")) for line in lines]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("forever", None),
        ("2026-11-21", NOON + DAY // 2),  # that day itself is protected
        ("2026-11-21T12:00:01Z", NOON + 1),
        ("9999-12-30", 253402214400),
    ],
)
def test_an_end_is_a_day_a_time_or_none(text, end):
    assert parse_until(text) == end


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Write the last day in UTC"),
        ("2026-11-31", "Write the last day"),
        ("31.12.2026", "Write the last day"),
        ("2026-11-21 12:00", "Write the last day"),
        ("٢026-11-22", "Write the last day"),
        ("Forever", "Write the last day"),
        ("9999-12-31", "too late for a calendar"),
        ("2026-11-23", "which is past: this host says that it is 2026-11-24T12:00:00Z"),
        ("2026-11-24T12:00:00Z", "which is past"),
    ],
)
def test_other_ends_are_refused(three, ask, text, words):
    with pytest.raises(Refused, match=words):
        hold(ask, until=text)


@pytest.mark.parametrize("reason", ["", " ", "two\nlines", "x" * 501])
def test_a_reason_is_needed(three, ask, reason):
    for action in ("protect", "unprotect"):
        with pytest.raises(Refused, match=f"action {action} needs a reason of one line"):
            ask(action, name=FIRST, until="forever", reason=reason)


@pytest.mark.parametrize(
    "values", [None, [], {}, {"reason": 1}, {"reason": "x", "until": "2026"}, {"reason": "x", "until": 1 << 60}]
)
def test_a_hold_of_another_shape_is_refused(values):
    with pytest.raises(WrongShape):
        parse_hold(values)


def test_a_hold_keeps_a_snapshot_from_a_prune(three, ask):
    told = {"reason": "case 4711", "until": "2027-01-01T00:00:00Z", "by": "alice on control"}
    predicted = ask("protect", dry=True, name=FIRST, until="2026-12-31", reason="case 4711").result
    assert predicted["changed"] and predicted["hold"] == {} and not three.path(FIRST, names.HOLD).exists()
    done = hold(ask)
    assert done["diff"] == predicted["diff"] and f"{FIRST} complete, protected\n" in done["diff"]["after"]
    assert done["changed"] and done["hold"].items() > told.items()
    assert not hold(ask)["changed"]
    (row,) = (row for row in ask("list").result["snapshots"] if row["protected"])
    assert row["name"] == FIRST and row["hold"] == done["hold"]
    pruned = ask("prune", **KEEP_ONE).result
    assert pruned["removed"] == [SECOND]
    assert pruned["kept"] == {THIRD: ["latest", "last"], FIRST: ["protected until 2027-01-01T00:00:00Z"]}
    assert not ask("prune", **KEEP_ONE).result["changed"]
    why = "until 2027-01-01T00:00:00Z: case 4711"
    assert ("protected", FIRST, why, "alice on control") in history(three)
    assert ask("unprotect", name=FIRST, reason="it is over").result["changed"]
    assert not ask("unprotect", name=FIRST, reason="it is over").result["changed"]
    assert history(three)[-1] == ("unprotected", FIRST, "it is over", "alice on control")
    assert ask("prune", **KEEP_ONE).result["removed"] == [FIRST]


def test_a_hold_ends_when_every_clock_says_so(three, ask):
    hold(ask, until="2026-11-30")
    end = NOON + 9 * DAY + DAY // 2
    three.now = end + 300 * DAY  # the clock of this host is ahead
    ahead = {**KEEP_ONE, "control_time": end - 5}
    with pytest.raises(Refused, match="ahead of that of the control node"):
        ask("prune", **ahead)
    for control_time in (end - 5, None):
        (row,) = (row for row in ask("list", control_time=control_time).result["snapshots"] if row["hold"])
        assert row["protected"]
    assert ask("prune", control_time=None, **KEEP_ONE).result["kept"][FIRST] == [RULE]  # no newer snapshot
    three.now = end - 1
    three.backup()
    three.now = end
    assert FIRST in ask("prune", **KEEP_ONE).result["kept"]
    three.backup()
    (row,) = (row for row in ask("list").result["snapshots"] if row["hold"])
    assert not row["protected"] and row["hold"]["until"] == "2026-12-01T00:00:00Z"
    assert FIRST in ask("prune", **KEEP_ONE).result["removed"]


@pytest.mark.parametrize(
    ("control_time", "newest", "clock"), [(None, 9, 7), (5, 9, 5), (9, 3, 3), (9, None, 7), (None, None, 7)]
)
def test_the_earliest_of_the_clocks_counts(bench, control_time, newest, clock):
    with bench.series() as series:
        if newest is not None:
            bench.path(names.name_of(newest)).mkdir()
            bench.path(names.name_of(1)).mkdir()
        assert ending_clock(series, 7, control_time) == clock


def test_a_hold_gets_longer_and_not_shorter(three, ask):
    hold(ask)
    assert hold(ask, until="2027-06-30")["hold"]["until"] == "2027-07-01T00:00:00Z"
    assert hold(ask, until="2027-06-30", reason="another case")["changed"]
    for until in ("2026-12-31", "2027-06-29"):
        with pytest.raises(Refused, match="An earlier end would release it sooner: unprotect it first"):
            hold(ask, until=until)
    assert hold(ask, until="forever")["hold"]["until"] == "forever"
    with pytest.raises(Refused, match="protected by alice on control until it is unprotected: case 4711"):
        hold(ask)


def test_the_same_hold_changes_nothing_though_its_end_is_past(three, ask):
    hold(ask, until="2026-11-30")
    three.now += 100 * DAY
    assert not hold(ask, until="2026-11-30")["changed"]
    with pytest.raises(Refused, match="which is past"):
        hold(ask, until="2026-11-30", reason="another case")


def test_what_was_set_aside_stays_as_it_is(three, ask):
    (three.source / "a").unlink()
    aside = three.backup(shrink_limit=10).name
    hold(ask, name=aside)
    tree = contents(three.path(aside))
    for action in ("accept", "discard"):
        for dry in (True, False):
            with pytest.raises(Refused, match=rf"{aside} .* is protected by .* left as it is \({action}\)"):
                ask(action, dry=dry, name=aside)
    assert contents(three.path(aside)) == tree
    ask("unprotect", name=aside, reason="looked at")
    assert ask("discard", name=aside).result["changed"]


def test_one_that_was_renamed_to_be_removed_stays(three, ask):
    hold(ask)
    removing = names.REMOVING_PREFIX + FIRST
    os.rename(three.path(FIRST), three.path(removing))
    for lazy in (True, False):
        done = ask("prune", lazy=lazy, **KEEP_ONE)
        assert done.result["leftovers"] == ([] if lazy else [names.REMOVING_PREFIX + SECOND])
        assert any(f"mv {removing} {FIRST}" in warning for warning in done.warnings)
        assert three.path(removing, "data/a").read_bytes() == b"0"
    with pytest.raises(Refused, match="no snapshot .* that could be protected"):
        ask("unprotect", name=removing, reason="x")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"reason": "x", "until": "soon"}', "[" * 100_000])
def test_a_hold_that_cannot_be_read_holds(three, ask, text):
    hold(ask)
    three.path(FIRST, names.HOLD).write_text(text)
    three.now += 1000 * DAY
    three.backup()
    (row,) = (row for row in ask("list").result["snapshots"] if row["protected"])
    assert row["name"] == FIRST and "cannot be read" in row["hold"]["reason"]
    assert ask("prune", **KEEP_ONE).result["kept"][FIRST] == ["protected forever"]
    with pytest.raises(Refused, match="cannot be read, so nobody knows"):
        hold(ask, until="2030-12-31")
    assert ask("unprotect", name=FIRST, reason="damaged").result["changed"]


@pytest.mark.parametrize("name", ["2026-11-21T120001Z", "latest", "unfinished", ".unfinished", "../data", ""])
def test_only_a_snapshot_can_be_protected(three, ask, name):
    with pytest.raises(Refused, match="that could be protected: list shows"):
        hold(ask, name=name)


def test_a_hold_says_who_and_why():
    assert Hold("x").describe() == "protected until it is unprotected: x"
    assert Hold("x", NOON, "bob").describe() == "protected by bob until 2026-11-21T12:00:00Z: x"
    assert Hold("x", NOON).holds(NOON - 1) and not Hold("x", NOON).holds(NOON) and Hold("x").holds(1 << 60)
