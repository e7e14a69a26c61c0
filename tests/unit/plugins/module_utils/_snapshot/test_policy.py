# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Retention against an independent, naive statement of the policy."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from datetime import datetime, timedelta, timezone

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import time_zones
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.policy import (
    Policy,
    RuleStanding,
    compare,
    decide,
    parse,
)
from hypothesis import given, settings
from hypothesis import strategies as st

HOUR, DAY = 3600, 86400
START = 1577836800  # 2020-01-01T00:00:00Z, a Wednesday
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"]


def calendar(name):
    try:
        return time_zones.calendar_of(name)
    except Refused:
        pytest.skip(f"this machine does not know {name}")


def at(text):
    return int(datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=timezone.utc).timestamp())


LABELS = {
    "hourly": "%Y-%m-%d %H %z",
    "daily": "%Y-%m-%d",
    "weekly": "%G-%V",
    "monthly": "%Y-%m",
    "yearly": "%Y",
}


def naive(times, policy, now, local):
    """State the policy as the documentation does: label every snapshot, then go from label to label."""
    usable = [t for t in times if t <= now]
    keep = {t for t in times if t > now}
    if not usable:
        return keep
    newest = max(usable)
    keep.add(newest)
    keep |= set(sorted(usable, reverse=True)[: policy.last])
    keep |= {t for t in usable if policy.within and newest - t <= policy.within}
    for rule, form in LABELS.items():
        groups = {}
        for t in usable:
            groups.setdefault(local(t).strftime(form), []).append(t)
        newest_of_groups = sorted((max(group) for group in groups.values()), reverse=True)
        keep |= set(newest_of_groups[: getattr(policy, rule)])
    return keep


def kept(times, policy, now, local=time_zones.utc):
    return {t for t, rules in decide(times, policy, now, local).items() if rules}


policies = st.builds(
    Policy,
    last=st.integers(0, 5),
    hourly=st.integers(0, 30),
    daily=st.integers(0, 10),
    weekly=st.integers(0, 6),
    monthly=st.integers(0, 14),
    yearly=st.integers(0, 4),
    within=st.sampled_from([0, HOUR, 36 * HOUR, 14 * DAY]),
)
moments = st.one_of(
    st.integers(START, START + 5 * 366 * DAY),
    # Around the clock changes of 2021, where hours come twice or not at all
    st.integers(at("2021-10-30 12:00"), at("2021-11-08 12:00")),
    st.integers(at("2021-03-13 12:00"), at("2021-03-29 12:00")),
)


@pytest.mark.parametrize("zone", ZONES)
@settings(max_examples=60)
@given(times=st.sets(moments, max_size=60), policy=policies, now=st.one_of(moments, st.just(2**33)))
def test_what_is_kept_is_what_the_policy_says(zone, times, policy, now):
    local = calendar(zone)
    assert kept(times, policy, now, local) == naive(times, policy, now, local)


@pytest.mark.parametrize("zone", ZONES)
def test_years_of_backups_pruned_every_time_end_as_if_pruned_once(zone):
    local = calendar(zone)
    chance = random.Random(zone)
    policy = Policy(last=2, hourly=5, daily=7, weekly=5, monthly=12, yearly=10, within=2 * DAY)
    every, left, now = [], set(), START
    while now < START + 3 * 366 * DAY:
        now += chance.choice([HOUR // 2, HOUR, 6 * HOUR, DAY, DAY, 3 * DAY])
        every.append(now)
        left = kept(left | {now}, policy, now, local)
    assert left == naive(every, policy, now, local)
    assert 20 <= len(left) <= 60


@given(times=st.sets(moments, min_size=1, max_size=40), policy=policies, now=moments)
def test_pruning_again_removes_nothing_and_the_newest_stays(times, policy, now):
    left = kept(times, policy, now)
    assert kept(left, policy, now) == left
    usable = [t for t in times if t <= now]
    assert max(usable or times) in left


@given(
    times=st.sets(moments, max_size=30), policy=policies, now=moments, ahead=st.sets(st.integers(1, 10**9), max_size=3)
)
def test_snapshots_of_a_wrong_clock_stay_and_change_nothing_else(times, policy, now, ahead):
    past = {t for t in times if t <= now}
    future = {now + more for more in ahead}
    assert kept(past | future, policy, now) == kept(past, policy, now) | future
    for t in future:
        assert decide(past | future, policy, now)[t] == ["future"]


@given(times=st.sets(moments, min_size=1, max_size=40), policy=policies, later=st.integers(0, 20 * 366 * DAY))
def test_a_job_that_stopped_loses_nothing_by_waiting(times, policy, later):
    now = max(times)
    assert kept(times, policy, now) == kept(times, policy, now + later)


def test_the_rules_are_named():
    times = [at("2021-01-31 23:00"), at("2021-02-01 01:00"), at("2021-02-01 02:00")]
    found = decide(times, Policy(last=1, daily=2, monthly=1), at("2021-02-02 00:00"))
    assert [found[t] for t in times] == [["daily"], [], ["latest", "last", "daily", "monthly"]]


@pytest.mark.parametrize(
    "zone, texts, rule, expected",
    [
        # 02:30 of 2021-10-31 comes twice in Berlin: two hours, one day
        ("Europe/Berlin", ["2021-10-31 00:30", "2021-10-31 01:30"], "hourly", 2),
        ("Europe/Berlin", ["2021-10-31 00:30", "2021-10-31 01:30"], "daily", 1),
        # The day ends at 22:00 UTC in summer, and at 23:00 in winter
        ("Europe/Berlin", ["2021-07-01 21:59", "2021-07-01 22:00"], "daily", 2),
        ("Europe/Berlin", ["2021-12-01 22:00", "2021-12-01 22:59"], "daily", 1),
        ("UTC", ["2021-07-01 21:59", "2021-07-01 22:00"], "daily", 1),
        # 2020-12-31 and 2021-01-03 are in week 53 of 2020, Monday begins the next
        ("UTC", ["2020-12-31 12:00", "2021-01-03 23:59"], "weekly", 1),
        ("UTC", ["2021-01-03 23:59", "2021-01-04 00:00"], "weekly", 2),
        ("UTC", ["2020-12-31 23:59", "2021-01-01 00:00"], "yearly", 2),
        # New York is still in the old year
        ("America/New_York", ["2020-12-31 23:59", "2021-01-01 04:59"], "yearly", 1),
        ("America/New_York", ["2020-12-31 23:59", "2021-01-01 05:00"], "yearly", 2),
        # Samoa left out the 30th of December 2011
        ("Pacific/Apia", ["2011-12-30 09:59", "2011-12-30 10:00"], "daily", 2),
    ],
)
def test_periods_are_those_of_the_calendar(zone, texts, rule, expected):
    times = [at(text) for text in texts]
    policy = Policy(**{rule: 5})
    assert len(kept(times, policy, max(times), calendar(zone))) == expected


def test_the_calendar_without_zoneinfo_is_the_same():
    """Python 3.8 has none: the C library must say the same, and leave the process's own time zone alone."""
    from_library = time_zones._by_the_c_library("Europe/Berlin")
    for moment in range(at("2021-03-27 00:00"), at("2021-11-02 00:00"), 1799 * 7):
        summer = at("2021-03-28 01:00") <= moment < at("2021-10-31 01:00")
        found = from_library(moment)
        assert found.utcoffset() == timedelta(hours=2 if summer else 1)
        assert found.timestamp() == moment
    script = f"import sys; sys.path[:] = {sys.path!r}\n" + (
        f"import time; from {time_zones.__name__} import _by_the_c_library\n"
        "before = time.localtime(0); _by_the_c_library('America/New_York')(0); assert time.localtime(0) == before"
    )
    subprocess.run([sys.executable, "-c", script], env={**os.environ, "TZ": "Asia/Kathmandu"}, check=True)


@pytest.mark.parametrize(
    "name", ["Europe/Nowhere", "", "../../etc/passwd", "/etc/localtime", "Ünknown", "Europe/./Berlin"]
)
def test_an_unknown_time_zone_is_refused(name):
    with pytest.raises(Refused, match="time zone"):
        time_zones.calendar_of(name)


def test_the_c_library_is_not_asked_for_what_it_does_not_know():
    with pytest.raises(Refused, match="time zone"):
        time_zones._by_the_c_library("Europe/Nowhere")  # it would take UTC without a word


@pytest.mark.parametrize(
    "keep, expected",
    [
        ({"last": 3}, Policy(last=3)),
        ({"daily": 7, "within": "1w2d"}, Policy(daily=7, within=9 * DAY)),
        ({"within": "36h", "yearly": None}, Policy(within=36 * HOUR)),
    ],
)
def test_policies_are_read(keep, expected):
    assert parse(keep) == expected


@pytest.mark.parametrize(
    "keep",
    [
        {},
        {"last": 0, "within": ""},
        {"within": "0d"},
        {"last": -1},
        {"daily": "7"},
        {"daily": True},
        {"every": 1},
        {"within": "5"},
        {"within": "2m"},
        {"within": "d"},
        {"within": " 1d"},
        {"within": "-1d"},
        {"within": "٣d"},
    ],
)
def test_bad_policies_are_refused(keep):
    with pytest.raises(Refused, match="policy"):
        parse(keep)


NIGHTS = [START + day * DAY + 2 * HOUR for day in range(60)]  # a backup each night at two
NOON = START + 59 * DAY + 12 * HOUR  # of the last day


@pytest.mark.parametrize(
    ("times", "policy", "rules"),
    [
        (NIGHTS, Policy(daily=7), [RuleStanding("daily", 7, 7, False)]),
        (NIGHTS[:-3] + NIGHTS[-1:], Policy(daily=7), [RuleStanding("daily", 7, 5, True)]),
        (NIGHTS[-4:], Policy(daily=7), [RuleStanding("daily", 7, 4, False)]),  # the job is younger than that
        (NIGHTS, Policy(last=3), [RuleStanding("last", 3, 3, False)]),
        (NIGHTS, Policy(weekly=5), [RuleStanding("weekly", 5, 5, False)]),
        (NIGHTS, Policy(monthly=12), [RuleStanding("monthly", 12, 2, False)]),
        (NIGHTS[:20], Policy(last=30), [RuleStanding("last", 30, 20, False)]),
        (NIGHTS[:20], Policy(daily=7), [RuleStanding("daily", 7, 0, True)]),
        (NIGHTS, Policy(within=3 * DAY), [RuleStanding("within", 3 * DAY, 3 * DAY, False)]),
        ([NOON + DAY], Policy(daily=1, within=DAY),
         [RuleStanding("daily", 1, 0, False), RuleStanding("within", DAY, 0, False)]),  # of the future
        ([], Policy(daily=1), [RuleStanding("daily", 1, 0, False)]),
    ],
)  # fmt: skip
def test_what_is_there_is_compared_with_what_the_policy_wants(times, policy, rules):
    assert compare(times, policy, NOON) == rules


def test_what_a_policy_keeps_of_a_backup_each_night_is_all_that_it_wants():
    """Also in a time zone, whose days begin at another hour."""
    policy = Policy(last=2, daily=7, weekly=5, monthly=2)
    for zone in ("UTC", "Australia/Lord_Howe"):
        clock = calendar(zone)
        left: list[int] = []
        for night in NIGHTS:
            kept = decide([*left, night], policy, night + HOUR, clock)
            left = [time for time, reasons in kept.items() if reasons]
        assert not any(rule.is_short for rule in compare(left, policy, NOON, clock))
