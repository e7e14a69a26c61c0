# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every way to name a point in time leads to the snapshot that it means, or to a refusal that says what to write."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta, timezone

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.choose import choose_snapshot
from zoneinfo import ZoneInfo

NOW = names.time_of("2026-11-21T120000Z")


def snapshot(name: str, state: str = "complete", **more) -> dict:
    at = names.read(name)[1] or NOW
    path = f"/b/web1/data/{name}/data"
    return {"name": name, "path": path, "state": state, "age": NOW - at, "latest": False, "reason": "", **more}


FOUR = ["2026-10-24T233000Z", "2026-10-25T003000Z", "2026-10-25T013000Z", "2026-11-02T010203Z"]
AGE = [
    *map(snapshot, FOUR),
    snapshot("aside-2026-11-03T010203Z", "aside", reason="60 % of the files are gone"),
    snapshot(".removing-2026-10-01T000000Z", "removing"),
    snapshot(".unfinished", "unfinished"),
]


@pytest.mark.parametrize(
    "when, zone, chosen",
    [
        ("latest", "UTC", 3),
        (FOUR[1], "UTC", 1),
        (" 2026-11-02T010203Z ", "UTC", 3),
        ("2026-11-02T01:02:03Z", "UTC", 3),
        ("2026-11-02T01:02:02Z", "UTC", 2),
        ("before 2026-11-02T01:02:03Z", "UTC", 2),
        ("before 2026-11-02T010203Z", "UTC", 2),
        ("2026-11-02 01:02", "UTC", 3),  # up to the end of the minute
        ("before 2026-11-02 01:02", "UTC", 2),
        ("2026-11-02 01:02 +01:00", "UTC", 2),
        ("2026-11-02 02:02 +0100", "America/New_York", 3),
        ("2026-11-02", "UTC", 3),
        ("before 2026-11-02", "UTC", 2),
        ("BEFORE 2026-11-02", "UTC", 2),
        ("2026-11-01", "UTC", 2),  # none on that day: the state at its end
        ("2026-11-01", "America/New_York", 3),
        ("2026-10-24", "UTC", 0),
        ("2026-10-24", "Pacific/Honolulu", 2),
        ("2026-10-25 01:30", "Europe/Berlin", 0),
        ("2026-10-25 03:30", "Europe/Berlin", 2),
        ("2026-10-25 1:00", "UTC", 1),
        (date(2026, 11, 1), "UTC", 2),  # what YAML makes of it
        (datetime(2026, 11, 2, 1, 2, 3), "UTC", 3),
        (datetime(2026, 11, 2, 1, 2, 2, tzinfo=timezone.utc), "Asia/Tokyo", 2),
        ("2030-01-01", "UTC", 3),
    ],
)
def test_a_time_leads_to_a_snapshot(when, zone, chosen):
    found = choose_snapshot(AGE, when, zone)
    assert (found["name"], found["problem"], found["state"]) == (FOUR[chosen], "", "complete")
    assert found["path"] == f"/b/web1/data/{FOUR[chosen]}/data" and found["why"]


@pytest.mark.parametrize(
    "when, zone, words",
    [
        (
            "2026-10-24T233001Z",
            "UTC",
            ["no snapshot 2026-10-24T233001Z", f"{FOUR[3]}, {FOUR[2]}, {FOUR[1]}, {FOUR[0]}"],
        ),
        ("2026-11-03T010203Z", "UTC", ["was set aside: 60 %", "aside-2026-11-03T010203Z"]),
        ("2026-10-01T000000Z", "UTC", ["being removed", FOUR[3]]),
        (".removing-2026-10-01T000000Z", "UTC", ["being removed"]),
        ("aside-2026-11-04T010203Z", "UTC", ["no snapshot aside-"]),
        ("2026-10-23", "UTC", ["no snapshot at the end of 2026-10-23 (UTC)", FOUR[0]]),
        ("before 2026-10-24 23:30", "UTC", ["no snapshot before 2026-10-24 23:30 (UTC)", FOUR[0]]),
        ("2026-10-25 02:30", "Europe/Berlin", ["twice", "2026-10-25T00:30:00Z or 2026-10-25T01:30:00Z"]),
        ("2026-03-29 02:30", "Europe/Berlin", ["never there", "forward"]),
        ("01/11/2026", "UTC", ["more than one time", "2026-11-01"]),
        ("1.11.2026", "UTC", ["more than one time"]),
        ("2026-11-1", "UTC", ["more than one time"]),
        ("yesterday", "UTC", ["no point in time", "latest"]),
        ("", "UTC", ["no point in time"]),
        ("2026-02-30", "UTC", ["no time that there can be"]),
        ("2026-11-01 25:00", "UTC", ["no time that there can be"]),
        ("2026-11-01", "Mars/Olympus", ["time zone", "Mars/Olympus"]),
    ],
)
def test_what_is_no_answer_is_refused(when, zone, words):
    found = choose_snapshot(AGE, when, zone)
    assert not found["name"] and not found["path"]
    assert [word for word in words if word not in found["problem"]] == [], found["problem"]


def test_what_is_not_complete_is_taken_by_its_exact_name_alone():
    assert choose_snapshot(AGE, "aside-2026-11-03T010203Z")["state"] == "aside"
    assert choose_snapshot(AGE, "unfinished")["name"] == ".unfinished"
    others = [one for one in AGE if one["state"] != "complete"]
    for when in ("latest", "2026-11-20"):
        said = choose_snapshot(others, when)["problem"]
        assert "no complete snapshot" in said and "aside-2026-11-03T010203Z, unfinished" in said
    assert "Nothing was backed up" in choose_snapshot([], "latest")["problem"]
    assert "none that are complete" in choose_snapshot([], "unfinished")["problem"]


def test_latest_is_not_one_of_a_clock_that_was_wrong():
    ahead = snapshot("2036-01-01T000000Z")
    assert choose_snapshot([*AGE, ahead])["name"] == FOUR[3]
    assert choose_snapshot([ahead])["name"] == ahead["name"]


def test_a_long_list_is_cut():
    many = [snapshot(names.name_of(NOON)) for NOON in range(NOW - 100 * 86400, NOW, 86400)]
    said = choose_snapshot(many, "2020-01-01T000000Z")["problem"]
    assert "and 88 older ones" in said and said.index("2026-11-20") < said.index("2026-11-10")


ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "America/Sao_Paulo",
    "Asia/Kolkata",
]


@pytest.mark.parametrize("zone", ZONES)
def test_it_is_the_newest_that_is_not_later_by_the_clock_on_the_wall(zone):
    """An independent statement: who looks at a clock on the wall in the zone, and writes down what it shows."""
    draw = random.Random(zone)
    wall = ZoneInfo(zone)
    for _round in range(300):
        start = draw.choice([1301184000, 1325203200, 1350000000, 1793000000]) + draw.randrange(40 * 86400)
        times = sorted({start + draw.randrange(5 * 86400) for _number in range(draw.randrange(1, 8))})
        held = [{**snapshot(names.name_of(at)), "age": 0} for at in times]
        asked = datetime.fromtimestamp(start + draw.randrange(-86400, 6 * 86400), wall)
        shown = {at: datetime.fromtimestamp(at, wall) for at in times}
        cases = {
            f"{asked:%Y-%m-%d}": [at for at in times if shown[at].date() <= asked.date()],
            f"before {asked:%Y-%m-%d}": [at for at in times if shown[at].date() < asked.date()],
        }
        if asked.utcoffset() == asked.replace(fold=1 - asked.fold).utcoffset():  # no hour that was there twice
            minute = asked.replace(second=0)
            if minute.utcoffset() == asked.utcoffset():
                cases[f"{asked:%Y-%m-%dT%H:%M:%S}"] = [at for at in times if at <= asked.timestamp()]
                cases[f"before {asked:%Y-%m-%d %H:%M}"] = [at for at in times if at < minute.timestamp()]
        for text, expected in cases.items():
            found = choose_snapshot(held, text, zone)
            assert found["name"] == (names.name_of(max(expected)) if expected else ""), (text, zone, found)
        # With an offset of its own the zone does not count.
        utc = datetime.fromtimestamp(asked.timestamp(), timezone(timedelta(hours=3, minutes=30)))
        assert choose_snapshot(held, f"{utc:%Y-%m-%d %H:%M:%S%z}", zone)["name"] == (
            names.name_of(max(fitting)) if (fitting := [at for at in times if at <= asked.timestamp()]) else ""
        )


def test_latest_of_two_clocks_that_are_apart_is_refused_where_they_disagree():
    day = 86400
    times = [1_790_000_000, 1_790_000_000 + day, 1_790_000_000 + 366 * day]
    now = times[1] + 3600

    def told(there, here):
        snapshots = [
            {"name": names.name_of(at), "path": "", "state": "complete", "age": there - at, "reason": ""}
            for at in times
        ]
        return choose_snapshot(snapshots, "latest", "UTC", here)

    assert told(now, now)["name"] == names.name_of(times[1])
    for there, here in ((times[2], now), (now, times[2])):
        problem = told(there, here)["problem"]
        assert names.name_of(times[1]) in problem and names.name_of(times[2]) in problem and "clock" in problem
    assert told(now - 3 * 3600, now)["name"] == names.name_of(times[1])
