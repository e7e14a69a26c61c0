# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An rsync that waits for ever is ended; one that is slow, or busy on the peer, is not."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync import watch as rsync_watch
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.watch import (
    StallWatch,
    Vitals,
    decode,
    encode,
)
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import Pair

needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="as only Linux tells what a process moves")


@pytest.fixture(name="pair")
def a_pair(tmp_path) -> Pair:
    return Pair(tmp_path)


def put_a_folder_in_the_way(pair: Pair) -> None:
    """Make what rsync 3.5 waits for: a folder with contents where a file with hard links is to be."""
    (pair.source / "a").write_text("f")
    os.link(pair.source / "a", pair.source / "b")
    (pair.dest / "a").mkdir()
    (pair.dest / "a" / "kept").write_text("x")


def rsyncs_at(pair: Pair) -> list[str]:
    """Name the rsyncs that work in the folders of a pair."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", "rb") as stream:
                is_rsync = stream.read() == b"rsync\n"
            folder = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        if is_rsync and folder.startswith(str(pair.folder)):
            found.append(folder)
    return found


@pytest.mark.often(2)
@needs_proc
@pytest.mark.parametrize(
    ("method", "connect"), [("rsync", "push"), ("rsync", "pull"), ("rsyncd", "push"), ("rsyncd", "pull")]
)
@pytest.mark.parametrize("delete", [False, True])
@pytest.mark.parametrize("check", [False, True])
def test_a_run_that_waits_for_ever_is_made_again_without_what_it_waits_for(pair, method, connect, check, delete):
    put_a_folder_in_the_way(pair)
    (pair.source / "z").write_text("z")
    outcome = pair.over(method, connect, timeout=3, check=check, delete=delete)
    assert not outcome.failure and outcome.files_deleted == delete
    assert [(error["path"], "Set delete: true" in error["reason"]) for error in outcome.errors] == (
        [] if delete else [("a", True)]
    )
    deadline = time.monotonic() + 60
    while rsyncs_at(pair) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert rsyncs_at(pair) == []
    if check or not delete:
        assert (pair.dest / "a" / "kept").read_text() == "x"
    else:
        assert differences(pair.source, pair.dest) == []
    assert (pair.dest / "z").exists() != check


def test_a_run_that_breaks_its_own_protocol_is_made_again(pair):
    """What the same version makes of the same, where there are more files."""
    put_a_folder_in_the_way(pair)
    (pair.source / "c").write_text("more")
    outcome = pair.over_shell(timeout=3)
    assert not outcome.failure and [error["path"] for error in outcome.errors] == ["a"]
    assert (pair.dest / "b").read_text() == "f" and (pair.dest / "c").read_text() == "more"


@needs_proc
def test_a_folder_that_the_rules_protect_makes_it_wait_no_longer(pair):
    put_a_folder_in_the_way(pair)
    outcome = pair.over_shell(timeout=3, delete=True, rules=["P kept"])
    assert outcome.failure or outcome.errors
    assert (pair.dest / "a" / "kept").exists()


@pytest.mark.often(1)
@pytest.mark.parametrize("method", ["rsync", "rsyncd"])
def test_a_slow_run_that_moves_is_left_alone(pair, method):
    (pair.source / "slow").write_bytes(os.urandom(28 * 1024))
    outcome = pair.over(method, timeout=5, bwlimit=4096)
    assert (outcome.failure, outcome.errors) == ("", [])
    assert (pair.dest / "slow").read_bytes() == (pair.source / "slow").read_bytes()


IDLE = Vitals(2, 1000, 5)


class Clock:
    """A clock that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(rsync_watch.time, "monotonic", lambda: self.now)


def stalls(clock: Clock, watch: StallWatch, seconds: int) -> bool:
    for _second in range(seconds):
        clock.now += 1
        if watch.check(0):
            return True
    return False


@pytest.fixture(name="clock")
def a_clock(monkeypatch):
    monkeypatch.setattr(rsync_watch, "vitals_below", lambda _pid: IDLE)
    return Clock(monkeypatch)


def test_both_ends_idle_is_a_stall(clock):
    watch = StallWatch(100, lambda: IDLE)
    assert not stalls(clock, watch, 99)
    assert stalls(clock, watch, 30)
    assert watch.has_stalled


def test_signs_of_life_are_no_progress(clock, monkeypatch):
    begun = clock.now

    def chatter():
        return IDLE._replace(moved=IDLE.moved + 4 * int(clock.now - begun))

    monkeypatch.setattr(rsync_watch, "vitals_below", lambda _pid: chatter())
    assert stalls(clock, StallWatch(100, chatter), 150)


@pytest.mark.parametrize("sign", ["moved", "ticks", "busy", "processes"])
@pytest.mark.parametrize("end", ["near", "far"])
def test_an_end_that_is_at_work_is_no_stall(clock, monkeypatch, sign, end):
    begun = clock.now

    def at_work() -> Vitals:
        passed = int(clock.now - begun)
        return IDLE._replace(**{sign: {"moved": 1000 * passed, "ticks": passed, "busy": True}.get(sign, passed)})

    if end == "near":
        monkeypatch.setattr(rsync_watch, "vitals_below", lambda _pid: at_work())
    watch = StallWatch(100, at_work if end == "far" else lambda: IDLE, lambda: True)
    assert not stalls(clock, watch, 1000)


def test_output_is_progress(clock):
    watch = StallWatch(100, lambda: IDLE)
    for _time in range(20):
        assert not stalls(clock, watch, 50)
        watch.heard()


@pytest.mark.parametrize("near", [None, IDLE])
def test_where_an_end_cannot_be_looked_at_only_a_suspect_is_ended(clock, monkeypatch, near):
    monkeypatch.setattr(rsync_watch, "vitals_below", lambda _pid: near)
    assert not stalls(clock, StallWatch(100, lambda: None), 1000)
    assert stalls(clock, StallWatch(100, lambda: None, lambda: True), 150)


@pytest.mark.parametrize(
    ("far", "may_hash", "longest"),
    [("busy", False, rsync_watch.ON_ITS_WORD), ("silent", True, rsync_watch.ON_ITS_WORD), ("silent", False, 3600)],
)
def test_the_word_of_the_peer_does_not_keep_a_run_for_ever(clock, far, may_hash, longest):
    """It may lie, and go on sending signs of life."""
    said = {"busy": IDLE._replace(busy=True), "silent": None}[far]
    watch = StallWatch(100, lambda: said, may_hash=may_hash)
    assert not stalls(clock, watch, int(longest) - 5)
    assert stalls(clock, watch, 30)


# A remote shell that passes on what a server says, up to its list's end, and from then on only signs of life (MSG_NOOP)
ALIVE = """
import os, subprocess, sys, threading, time
process = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def up():
    while True:
        data = os.read(0, 65536)
        if not data:
            break
        os.write(process.stdin.fileno(), data)
threading.Thread(target=up, daemon=True).start()
passed = 0
while passed < int(sys.argv[1]):
    data = os.read(process.stdout.fileno(), 65536)
    os.write(1, data)
    passed += len(data)
while True:
    time.sleep(0.5)
    os.write(1, bytes((0, 0, 0, 7 + 42)))
"""


@needs_proc
def test_a_peer_that_sends_signs_of_life_alone_is_given_up(pair, monkeypatch):
    """With the real rsync, whose own --timeout such a peer keeps from ending it."""
    (pair.source / "file").write_bytes(b"x" * 200_000)
    monkeypatch.setattr(rsync_watch, "UNSEEN", 0.0)
    honest = pair.shell

    def living(side: str, plan: dict[str, object]) -> str:
        words = [sys.executable, str(pair.folder / "alive.py"), "40", *shlex.split(honest(side, plan))]
        (pair.folder / "alive.py").write_text(ALIVE)
        script = pair.folder / "living"
        script.write_text(f'#!/bin/sh\nexec {" ".join(shlex.quote(word) for word in words)} "$@"\n')
        script.chmod(0o755)
        return str(script)

    pair.shell = living
    pair.stop_after = 60.0
    begun = time.monotonic()
    outcome = pair.over_shell(timeout=2)
    assert "rsync made no progress" in outcome.failure, outcome.failure
    assert 15 < time.monotonic() - begun < 50


@pytest.mark.parametrize("text", [b"", b"longhaul-vitals \n", b"longhaul-vitals 1 2 x 0\n", b"refused\n"])
def test_what_is_no_answer_says_nothing(text):
    assert decode(text) is None


def test_an_answer_is_found_among_other_lines():
    assert decode(b"welcome\n" + encode(IDLE)) == IDLE
    assert decode(encode(None)) is None


@needs_proc
def test_only_an_rsync_counts():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert rsync_watch.vitals([other.pid]) is None
        other.communicate(b"\n")
