# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What both ends say of their time, and what is named for it."""

from __future__ import annotations

import multiprocessing
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core import time_accounting
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.bottleneck import (
    Line,
    Shares,
    TransferFacts,
    decide,
    find_bottleneck,
)
from hypothesis import given
from hypothesis import strategies as st

MIB = 1 << 20
NO_LINE = Line()


@pytest.mark.parametrize(
    ("source", "dest", "expected"),
    [
        (Shares(work=0.9, processor=0.05, other=0.05), Shares(other=0.95, processor=0.05), "source_disk"),
        (Shares(work=0.1, processor=0.85, other=0.05), Shares(other=0.9, processor=0.1), "source_cpu"),
        (Shares(processor=0.1, other=0.9), Shares(other=0.85, processor=0.1, work=0.05), "network"),
        (Shares(processor=0.2, other=0.8), Shares(other=0.05, processor=0.9, work=0.05), "destination_cpu"),
        (Shares(processor=0.1, other=0.9), Shares(other=0.05, processor=0.1, work=0.85), "destination_disk"),
        # both at work all the time: a little of everything, and nothing stands out
        (Shares(work=0.4, processor=0.4, other=0.2), Shares(other=0.2, processor=0.4, work=0.4), "none"),
        # a slow disk that holds nobody up is no bottleneck
        (Shares(work=0.9, processor=0.1), Shares(other=0.1, processor=0.9), "none"),
        (Shares(), Shares(), "none"),
    ],
)
def test_the_slowest_link_of_the_chain_is_named(source, dest, expected):
    assert decide(source, dest)[0] == expected


SHARE = st.floats(0, 1)


@given(SHARE, SHARE, SHARE, SHARE, SHARE, SHARE)
def test_nothing_is_named_that_holds_nobody_up(a, b, c, d, e, f):
    source, dest = Shares(a, b, 0, c), Shares(d, e, 0, f)
    name, share = decide(source, dest)
    assert (name == "none") == (share < 0.25)
    if name.startswith("source") or name == "network":
        assert dest.other >= share
    if name.startswith("destination") or name == "network":
        assert source.other >= share


def end(wall=10.0, processor=1.0, **roles):
    return {"wall": wall, "processor": processor, "cores": 2, "roles": roles}


def of_stream(source, dest, line=NO_LINE, sent=100 * MIB):
    return find_bottleneck({"source": source, "dest": dest}, TransferFacts("stream", 2, sent), line)


SENDS = {"read": [1.0, 0.5], "send": [19.0, 1.0]}
RECEIVES = {"receive": [18.5, 1.0], "write": [1.5, 0.5]}


def test_large_files_are_judged_by_the_connections_and_small_ones_by_the_leader():
    waits = {"read": [0.2, 0.1], "answer": [9.8, 0.0]}
    large = of_stream(end(link=SENDS, lead=waits), end(link=RECEIVES, lead={"answer": [9.9, 0.0], "write": [0.1, 0.1]}))
    assert large["name"] == "network" and "over 2 connections" in large["evidence"]
    small = of_stream(
        end(lead={"read": [2.0, 1.5], "answer": [8.0, 0.1]}, link={"idle": [20.0, 0.0]}),
        end(lead={"write": [9.5, 1.5], "answer": [0.5, 0.0]}, link={"receive": [20.0, 0.0]}),
    )
    assert small["name"] == "destination_disk"
    assert "80 %" in small["evidence"] and "connections" not in small["evidence"] and "iostat" in small["advice"]


def test_the_seconds_are_given_in_words():
    found = of_stream(end(link=SENDS), end(link=RECEIVES, journal={"sync": [4.0, 0.5], "idle": [6.0, 0.0]}))
    assert found["source"] == {
        "wall": 10.0, "processor": 1.0, "reading": 0.5, "waiting_to_send": 18.0, "throttled": 0
    }  # fmt: skip
    assert found["dest"] == {
        "wall": 10.0, "processor": 1.0, "waiting_to_receive": 17.5, "writing": 1.0, "syncing": 3.5
    }  # fmt: skip


@pytest.mark.parametrize(
    ("source", "line", "advice"),
    [
        (end(link={**SENDS, "throttled": [8.0, 0.0]}), Line(limit=12 * MIB), "Raise bwlimit"),
        (end(link=SENDS), Line(interface=12 * MIB), "line is full"),
        (end(link=SENDS), Line(interface=1000 * MIB), "slow part"),
        (end(link=SENDS), Line(), "slow part"),
    ],
)
def test_a_slow_network_has_several_reasons(source, line, advice):
    found = of_stream(source, end(link=RECEIVES), line)
    assert found["name"] == "network" and advice in found["advice"], found


@pytest.mark.parametrize(
    ("spent", "sent", "line", "expected", "said"),
    [
        ({"source": end(processor=9.5)}, MIB, Line(), "source_cpu", "95 %"),
        ({"source": end(processor=1.0), "dest": end(processor=9.0)}, MIB, Line(), "destination_cpu", "90 %"),
        ({"source": end()}, 90 * MIB, Line(limit=10 * MIB), "network", "bwlimit"),
        ({"source": end()}, 90 * MIB, Line(interface=10 * MIB), "network", "interface"),
        ({"source": end()}, 9 * MIB, Line(interface=10 * MIB), "none", "cannot be seen"),
    ],
)
def test_of_a_program_only_what_shows_outside_is_said(spent, sent, line, expected, said):
    found = find_bottleneck(spent, TransferFacts("rsync", 1, sent), line)
    assert found["name"] == expected and said in found["evidence"], found
    assert found["advice"]


def test_what_is_short_says_nothing():
    found = of_stream(end(wall=1.4, link=SENDS), end(wall=1.5, link=RECEIVES))
    assert found["name"] == "none" and "too short" in found["evidence"]
    assert find_bottleneck({}, TransferFacts("rsync"), Line())["name"] == "none"


def disk(busy=9.4, seconds=10.0, read=0, written=180 * MIB, **pool):
    return {"disk": {"seconds": seconds, "busy": busy, "read": read, "written": written, **pool}}


BUSY_WRITER = {"write": [19.0, 1.0], "receive": [1.0, 0.0]}
BUSY_READER = {"read": [19.0, 1.0], "send": [1.0, 0.0]}
CALLS = ("The destination spent 90 % of 10 s writing to its disk (10.0 MiB/s sent)",)


@pytest.mark.parametrize(
    ("method", "source", "dest", "name", "words"),
    [
        # the kernel counts the device
        (
            "stream",
            end(link=SENDS),
            {**end(link=BUSY_WRITER), **disk()},
            "destination_disk",
            ("The destination's disk was busy for 94 % of 10 s (18.0 MiB/s written): a faster disk there",),
        ),
        (
            "stream",
            {**end(link=BUSY_READER), **disk(read=50 * MIB, written=0)},
            end(link=RECEIVES),
            "source_disk",
            ("The source's disk was busy for 94 % of 10 s (5.0 MiB/s read)", "more streams would not"),
        ),
        # it does not, or the time passes elsewhere (a throttled control group): the time spent in calls counts
        ("stream", end(link=SENDS), end(link=BUSY_WRITER), "destination_disk", CALLS),
        ("stream", end(link=SENDS), {**end(link=BUSY_WRITER), **disk(busy=0.1)}, "destination_disk", CALLS),
        ("stream", end(link=SENDS), {**end(link=BUSY_WRITER), "disk": {}}, "destination_disk", CALLS),
        # a busy disk that nobody waits for: what was received is written in the background
        ("stream", end(link=SENDS), {**end(link=RECEIVES), **disk(busy=9.9)}, "network", ("waited for the network",)),
        # nobody waits for long, and a disk has no time left
        (
            "stream",
            end(link={"read": [8.0, 3.0], "send": [2.0, 2.0]}),
            {**end(link={"receive": [2.0, 0.1], "write": [8.0, 6.0]}), **disk(busy=9.0)},
            "destination_disk",
            ("busy for 90 % of 10 s",),
        ),
        # programs
        ("rsync", end(), {**end(), **disk()}, "destination_disk", ("busy for 94 % of 10 s (18.0 MiB/s written)",)),
        ("sftp", {**end(), **disk(read=MIB)}, end(), "source_disk", ("The source's disk was busy for 94 % of 10 s",)),
        ("rsync", end(processor=8.5), {**end(), **disk()}, "destination_disk", ("94 %",)),
        (
            "rsync",
            end(processor=30.0),
            {**end(), **disk()},
            "source_cpu",
            ("The source used 300 % of a processor for each stream of rsync (10.0 MiB/s sent): ",),
        ),
        ("rsync", end(), {**end(), **disk(busy=7.5)}, "destination_disk", ("busy for 75 % of 10 s",)),
        ("rsync", end(processor=7.5), {**end(), **disk(busy=5.0)}, "none", ("cannot be seen",)),
        ("rsync", end(), {**end(), **disk(busy=5.0)}, "none", ("cannot be seen from outside", "method: stream")),
    ],
)
def test_a_disk_is_named_by_what_the_kernel_counts_or_by_the_time_in_calls(method, source, dest, name, words):
    found = find_bottleneck({"source": source, "dest": dest}, TransferFacts(method, 1, 100 * MIB), NO_LINE)
    assert found["name"] == name, found
    for word in words:
        assert word in found["sentence"], found
    assert found["sentence"].lower().endswith(f": {found['advice'].lower()}."), found


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        ({"pool_state": "ONLINE", "pool_full": 0.5}, ()),
        ({"pool_state": "ONLINE", "pool_full": 0.92}, ("its ZFS pool is 92 % full", "free space in the pool")),
        ({"pool_state": "DEGRADED", "pool_full": 0.2}, ("its ZFS pool is DEGRADED: repair the pool first",)),
        ({"pool_state": "DEGRADED", "pool_full": 0.9}, ("is DEGRADED and is 90 % full", "repair the pool first")),
        ({"pool_state": "\x1b[2J", "pool_full": "full"}, ()),
        ({"pool_state": ["DEGRADED"], "pool_full": -1}, ()),
    ],
)
def test_a_pool_that_is_degraded_or_nearly_full_is_said(pool, words):
    found = of_stream(end(link=SENDS), {**end(link=BUSY_WRITER), "disk": pool})
    assert found["name"] == "destination_disk" and ("ZFS" in found["sentence"]) == bool(words)
    assert all(word in found["sentence"] for word in words), found
    elsewhere = of_stream({**end(link=SENDS), "disk": pool}, end(link=RECEIVES))
    assert elsewhere["name"] == "network" and ("at the source, its ZFS pool" in elsewhere["evidence"]) == bool(words)


@pytest.mark.parametrize(
    ("encrypted", "sends", "cause"), [(True, 9.0, "cipher"), (False, 9.0, ""), (True, 2.0, ""), (False, 2.0, "")]
)
def test_a_processor_that_mostly_encrypts_is_told_from_others(encrypted, sends, cause):
    source = end(link={"read": [10.0 - sends, 10.0 - sends], "send": [sends, sends]})
    dest = end(link={"receive": [9.0, 1.0], "write": [1.0, 0.5]})
    facts = TransferFacts("stream", 1, 100 * MIB, encrypted)
    found = find_bottleneck({"source": source, "dest": dest}, facts, NO_LINE)
    assert (found["name"], found["cause"]) == ("source_cpu", cause)
    expected = "was encrypting and sending for 90 % of 10 s" if cause else "was at work for 100 % of 10 s"
    assert f"The source's processor {expected} (10.0 MiB/s sent): " in found["sentence"]


@pytest.mark.parametrize(("encryption", "cause"), [(0.0, ""), (4.0, ""), (8.0, "cipher"), (1e300, "cipher")])
def test_a_program_whose_ssh_needs_most_of_the_processor_is_slowed_by_its_cipher(encryption, cause):
    source = {**end(processor=9.0), "encryption": encryption}
    found = find_bottleneck({"source": source}, TransferFacts("rsync", 1, 100 * MIB), NO_LINE)
    assert (found["name"], found["cause"]) == ("source_cpu", cause)
    assert ("AES" in found["advice"]) == bool(cause) and len(found["sentence"]) < 400


def test_two_ends_that_both_compute_all_the_time_are_slow_by_that():
    found = of_stream(end(link={"read": [10.0, 9.5]}), end(link={"write": [10.0, 8.5], "receive": [0.1, 0.0]}))
    assert found["name"] == "source_cpu"


JSON = st.recursive(
    st.none() | st.integers(-5, 50) | st.floats(-5, 50) | st.sampled_from(["roles", "wall", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["source", "dest", "wall", "processor", "roles", "link", "read", "send", "disk", "seconds", "busy"]
            ),
            inner,
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["source", "dest"]), JSON), st.sampled_from(["stream", "rsync"]))
def test_whatever_a_host_says_is_survived(spent, method):
    found = find_bottleneck(spent, TransferFacts(method, encrypted=True), Line(5, 5))
    assert found["name"] and found["sentence"].endswith(".") and found["advice"]


@pytest.mark.parametrize("odd", [10**400, float("inf"), float("nan")])
def test_a_number_without_bounds_is_survived(odd):
    found = of_stream({**end(link=SENDS), "wall": odd}, end(link=RECEIVES))
    assert 0 <= found["source"]["wall"] <= 1e15


def test_a_thread_accounts_for_what_it_does_and_others_for_theirs():
    def work():
        time_accounting.enter("test", time_accounting.READ)
        before = time_accounting.switch(time_accounting.SEND)
        assert before == time_accounting.READ
        time.sleep(0.2)
        time_accounting.switch(before)
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            pass
        time_accounting.switch(time_accounting.IDLE)

    assert time_accounting.switch(time_accounting.SEND) == time_accounting.IDLE  # this thread has no account
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _number: work(), range(2)))
    account = time_accounting.account()
    spent = account["roles"]["test"]
    assert set(spent) <= {"read", "send", "queued"}
    assert spent["send"][0] >= 0.4 and spent["send"][1] < 0.1
    assert 0.2 <= spent["read"][1] <= spent["read"][0]
    assert account["wall"] >= 0.3 and account["processor"] > 0.2 and account["cores"] >= 1


@pytest.mark.parametrize(
    ("queued", "name", "cause"),
    [(0.0, "source_disk", ""), (2.0, "source_disk", ""), (14.0, "source_cpu", "contention")],
)
def test_who_waits_for_a_processor_does_not_wait_for_its_disk(queued, name, cause):
    source = end(processor=3.0, link={"read": [19.0, 3.0], "send": [1.0, 0.0], "queued": [queued, 0.0]})
    found = of_stream(source, end(link={"receive": [19.0, 0.5], "write": [1.0, 0.1], "queued": [0.0, 0.0]}))
    assert (found["name"], found["cause"]) == (name, cause), found
    assert ("waited for a processor that others used" in found["evidence"]) == bool(cause)
    assert ("let other work there wait" in found["advice"].lower()) == bool(cause)
    assert found["source"]["waiting_for_a_processor"] == queued


@pytest.mark.skipif(
    not os.path.exists("/proc/self/schedstat"), reason="cannot run here: this system does not say who waits"
)
def test_a_thread_beside_another_on_one_processor_waits_for_it():
    begun = multiprocessing.Event()

    def spin():
        begun.set()
        while True:
            pass

    def work():
        time_accounting.enter("beside another", time_accounting.READ)
        until = time.monotonic() + 1
        while time.monotonic() < until:
            pass
        time_accounting.leave()

    allowed = os.sched_getaffinity(0)
    other = multiprocessing.get_context("fork").Process(target=spin, daemon=True)
    with ThreadPoolExecutor(1) as pool:
        try:
            os.sched_setaffinity(0, {min(allowed)})
            other.start()
            assert begun.wait(10)
            pool.submit(work).result()
        finally:
            os.sched_setaffinity(0, allowed)
            other.kill()
            other.join()
    spent = time_accounting.account()["roles"]["beside another"]
    waited = spent["read"][0] - spent["read"][1]
    assert waited > 0.2 and 0.7 * waited < spent["queued"][0] < 1.3 * waited
