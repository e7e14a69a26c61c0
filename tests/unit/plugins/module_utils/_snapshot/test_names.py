# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names, the next time, and the subset of a check."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names, subset
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.facts import Figures
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.suspicion import ChangeLimits, suspicion
from hypothesis import given
from hypothesis import strategies as st

NOON = 1795262400
times = st.integers(0, 253402300799)
paths = st.lists(st.binary(min_size=1, max_size=20).filter(lambda part: b"/" not in part), min_size=1, max_size=4).map(
    b"/".join
)


@given(times, times)
def test_names_sort_as_times_and_come_back(one, other):
    assert names.time_of(names.name_of(one)) == one
    assert (names.name_of(one) < names.name_of(other)) == (one < other)
    assert names.kind_of(names.name_of(one)) == names.COMPLETE


@pytest.mark.parametrize(
    "name, kind",
    [
        ("2026-11-21T120000Z", names.COMPLETE),
        ("aside-2026-11-21T120000Z", names.ASIDE),
        (".removing-2026-11-21T120000Z", names.REMOVING),
        (".unfinished", ""),
        ("latest", ""),
        ("2026-11-21T120000Z.new", ""),
        ("2026-11-31T120000Z", ""),
        ("2026-11-21T120060Z", ""),
        ("2026-11-21T120061Z", ""),
        ("2026-11-21T12:00:00Z", ""),
        ("2026-11-21T120000Z\n", ""),
        ("٢٠٢٦-11-21T120000Z", ""),
        ("aside-", ""),
        ("aside-aside-2026-11-21T120000Z", ""),
        ("hourly.0", ""),
    ],
)
def test_only_whole_names_are_taken_for_snapshots(name, kind):
    assert names.kind_of(name) == kind


@pytest.mark.parametrize("seconds", [-1, 253402300800])
def test_times_without_a_name_are_refused(seconds):
    with pytest.raises(ValueError, match="no snapshot"):
        names.name_of(seconds)


@pytest.mark.parametrize(
    "newest, taken, expected",
    [
        (None, [], NOON),
        (NOON - 5, [NOON - 5], NOON),
        (NOON, [NOON], NOON + 1),
        (NOON + 3600, [NOON + 3600], NOON + 3601),  # the clock was set back an hour
        (NOON + 86401, [NOON + 86401], NOON),  # it was wrong before: what it is now is followed
        (NOON + 86401, [NOON, NOON + 1], NOON + 2),
        (NOON - 5, [NOON], NOON + 1),  # set aside, or being removed
    ],
)
def test_the_next_time_is_free_and_mostly_now(newest, taken, expected):
    assert names.next_time(NOON, taken, newest) == expected


@given(st.sets(st.integers(NOON - 200000, NOON + 200000), max_size=10))
def test_latest_and_base_are_of_the_complete_ones(complete):
    latest = names.latest_of(NOON, complete)
    base = names.base_of(NOON, complete)
    if not complete:
        assert latest is base is None
    else:
        sane = [t for t in complete if t <= NOON + 86400]
        assert latest == max(sane or complete)
        assert base == max([t for t in complete if t < NOON] or complete)


@pytest.mark.parametrize("text", ["", ".", "..", ".hidden", "a/b", "a\nb", "a\0b", "x" * 201])
def test_names_of_hosts_and_jobs_that_lead_elsewhere_are_refused(text):
    with pytest.raises(Refused, match="name of a folder"):
        names.check_part("host", text)
    assert names.check_part("host", "web1.example.com") == "web1.example.com"


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 5), st.lists(paths, max_size=30))
def test_every_path_has_its_turn_within_the_runs(count, of, skipped, found):
    count, of = min(count, of), max(count, of)
    turn = None
    for _run in range(skipped):
        _part, turn = subset.next_subset(count, of, turn)
    read = []
    for _run in range(-(-of // count)):
        part, turn = subset.next_subset(count, of, turn)
        assert len(part.parts) == count
        read += [path for path in found if part.has(path)]
    assert set(read) == set(found)
    if of % count == 0:
        assert sorted(read) == sorted(found)  # and none twice


def test_a_path_is_in_the_same_part_for_ever():
    """The parts of a run must not move between releases, or a file could miss its turn for years."""
    assert [subset.part_of(path, 7) for path in (b"", b"a", b"photos/2026/0001.jpg", b"\xff")] == [6, 0, 1, 1]


def test_parts_are_about_equal():
    counts = [0] * 7
    for number in range(7000):
        counts[subset.part_of(b"folder/%d" % number, 7)] += 1
    assert min(counts) > 850
    assert max(counts) < 1150


def test_another_number_of_parts_or_damaged_memory_begins_anew():
    for last in (subset.Turn(5, 3), subset.Turn(7, 9), None):
        assert subset.next_subset(1, 7, last)[0].parts == {0}


def test_whose_turn_it_is_is_read_back():
    turn = subset.next_subset(2, 7, subset.Turn(7, 6))[1]
    assert subset.parse_turn(turn.dump()) == turn == (7, 1)
    with pytest.raises(ValueError, match="next is 'x'"):
        subset.parse_turn({"of": 7, "next": "x"})


@pytest.mark.parametrize("text", ["", "1", "0/7", "8/7", "1/0", "-1/7", "1/7 ", "a/b", "1/٧"])
def test_shares_that_are_none_are_refused(text):
    with pytest.raises(Refused, match="the subset"):
        subset.parse(text)
    assert subset.parse("2/7") == (2, 7)


@pytest.mark.parametrize(
    "gone, before, limit, suspicious",
    [
        (0, 0, 0, False),
        (1, 100, 0, True),
        (0, 100, 0, False),
        (50, 100, 50, False),
        (51, 100, 50, True),
        (100, 100, 100, False),
    ],
)
def test_what_shrank_more_than_the_limit_is_suspicious(gone, before, limit, suspicious):
    text = suspicion(Figures(gone=gone, before=before), (), ChangeLimits(limit))
    assert bool(text) == suspicious
    if suspicious:
        assert f"({gone} of {before})" in text
