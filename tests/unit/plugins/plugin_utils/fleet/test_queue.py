# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from collections import Counter

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.limits import Limits, Pair, on_disks
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.queue import Queue, Waiting, rank, time_of
from hypothesis import given, settings
from hypothesis import strategies as st


def fill(limits: Limits, *jobs: tuple[str, Pair, int, float]) -> Queue:
    queue = Queue(limits)
    for number, (name, pair, priority, size) in enumerate(jobs):
        queue.add(Waiting(rank(priority, size, number), name, pair))
    return queue


def started(queue: Queue) -> list[str]:
    return [job.name for job in iter(queue.next, None)]


def test_priority_then_size_then_the_order_of_the_list():
    pair = [Pair(f"s{number}", f"d{number}") for number in range(4)]
    queue = fill(Limits(), ("a", pair[0], 0, 0), ("b", pair[1], 0, 9), ("c", pair[2], 1, 0), ("d", pair[3], 0, 0))
    assert started(queue) == ["c", "b", "a", "d"]


def test_a_job_that_is_kept_back_keeps_nobody_back_who_needs_something_else():
    queue = fill(
        Limits(per_dest=1), ("a", Pair("s1", "d"), 0, 9), ("b", Pair("s2", "d"), 0, 8), ("c", Pair("s3", "e"), 0, 1)
    )
    assert started(queue) == ["a", "c"]
    queue.release(Pair("s1", "d"))
    assert started(queue) == ["b"]


def test_what_one_job_cannot_use_goes_to_the_next():
    limits = Limits(running=2, per_source=1)
    one, two = Pair("s", "d1"), Pair("t", "d2")
    queue = fill(limits, ("a", one, 0, 9), ("b", two, 0, 8), ("c", Pair("s", "d3"), 0, 7), ("d", Pair("u", "d4"), 0, 6))
    assert started(queue) == ["a", "b"]
    queue.release(two)  # c lacks its source, which a uses
    assert started(queue) == ["d"]
    queue.release(one)
    assert started(queue) == ["c"]


HOSTS = st.integers(0, 3).map(str)
JOBS = st.lists(
    st.tuples(HOSTS, HOSTS, st.sampled_from([(), ("l",), ("m",), ("l", "m")]), st.integers(0, 2)), max_size=40
)


@settings(max_examples=200, deadline=None)
@given(JOBS, st.integers(1, 5), st.integers(1, 3), st.integers(1, 2), st.randoms(use_true_random=False))
def test_no_limit_is_passed_no_job_is_forgotten_and_nothing_is_left_idle(jobs, running, per_source, per_dest, random):
    limits = Limits(running, per_source, per_dest, {"l": 2, "m": 1})
    named = [(str(number), Pair(one[0], one[1], one[2]), one[3], 0.0) for number, one in enumerate(jobs)]
    queue = fill(limits, *named)
    pairs = {name: pair for name, pair, _priority, _size in named}
    runs: set[str] = set()
    done: set[str] = set()
    while len(done) < len(named):
        runs.update(started(queue))
        used = Counter(resource for name in runs for resource in pairs[name].resources)
        assert all(count <= limits.of(resource) for resource, count in used.items())
        for name in set(pairs) - runs - done:  # whoever waits lacks something
            assert any(used[one] >= limits.of(one) for one in pairs[name].resources), name
        assert len(queue) == len(named) - len(runs) - len(done)
        ended = random.choice(sorted(runs))
        runs.remove(ended)
        done.add(ended)
        queue.release(pairs[ended])


@pytest.mark.parametrize(
    ("limits", "jobs", "seconds"),
    [
        (Limits(), [], 0),
        (Limits(), [("a", "d", "sda", 7)], 7),
        (Limits(), [("a", "d", "sda", 7), ("b", "d", "sdb", 5)], 7),  # on two disks
        (Limits(), [("a", "d", "sda", 7), ("b", "d", "sda", 5)], 12),
        (Limits(), [("a", "d", "sda", 7), ("b", "e", "sda", 5)], 7),  # on two hosts
        (Limits(), [("a", "d", "sda", 2), ("b", "d", "sdb", 3), ("c", "d", "sda", 8)], 10),
        (Limits(), [("a", "d", "1", 4), ("b", "d", "2", 6), ("c", "d", "3", 5)], 9),  # two at once from a source's disk
        (Limits(running=1), [("a", "d", "sda", 7), ("b", "d", "sdb", 5)], 12),
        (Limits(given=frozenset({"per_dest"})), [("a", "d", "sda", 7), ("b", "d", "sdb", 5)], 12),
    ],
)
def test_the_time_of_several_jobs_is_that_of_the_queue(limits, jobs, seconds):
    waiting = [
        Waiting(rank(0, took, number), name, on_disks(Pair("s", dest), {"dest": [disk], "source": ["x"]}, limits))
        for number, (name, dest, disk, took) in enumerate(jobs)
    ]
    assert time_of(limits, waiting, {name: took for name, _dest, _disk, took in jobs}) == seconds
