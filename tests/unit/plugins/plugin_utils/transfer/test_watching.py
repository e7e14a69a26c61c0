# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs on both hosts are watched at the same time, and shown as one."""

from __future__ import annotations

import threading

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import Status, parse_progress
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.watching import Speaker, slower_of, watch_all


def status(alive=True, paused=False, **progress):
    return Status("running" if alive else "finished", alive, progress=parse_progress(progress), paused=paused)


@pytest.mark.parametrize(
    ("source", "dest", "done", "total", "current"),
    [
        (status(bytes_done=9, bytes_total=20, current="a"), status(bytes_done=5, current="b"), 5, 20, "b"),
        (status(bytes_done=3, current="a"), status(bytes_done=5, bytes_total=20, current="b"), 3, 20, "a"),
        (status(alive=False, bytes_done=3), status(bytes_done=5, bytes_total=20), 5, 20, ""),
        (status(alive=False, bytes_done=3), status(alive=False, bytes_done=5), 3, 0, ""),
        (status(bytes_done=3, paused=True), status(bytes_done=1), 1, 0, ""),
    ],
)
def test_both_are_as_far_as_the_slower(source, dest, done, total, current):
    found = slower_of({"source": source, "dest": dest})
    progress = found.progress
    assert (progress.bytes_done, progress.bytes_total, progress.current) == (done, total, current)
    assert found.paused == source.paused


class Host:
    """A host with one answer after the other."""

    def __init__(self, name, answers, met):
        self.name, self._answers, self._met = name, iter(answers), met

    def run(self, _step):
        self._met.wait(20)  # the other host is asked, too, before either answers
        return [next(self._answers)]


def answer(done, alive=True):
    progress = {"phase": "comparing", "bytes_done": done, "bytes_total": 100}
    return {"state": "running" if alive else "finished", "alive": alive, "progress": progress, "ran": done}


def hosts(met):
    return {
        side: (Host(side, [answer(done), answer(100, alive=False)], met), {"id": "x", "side": side})
        for side, done in (("source", 60), ("dest", 40))
    }


BEGUN = {side: status(phase="comparing", bytes_total=100) for side in ("source", "dest")}


def test_both_hosts_are_asked_at_once_and_shown_in_lines_of_their_pair():
    lines = []
    ended = watch_all(hosts(threading.Barrier(2)), BEGUN, "old -> new", lines.append, 5.0)
    assert {side: one.state for side, one in ended.items()} == {"source": "finished", "dest": "finished"}
    assert all(line.startswith("old -> new: comparing, ") for line in lines)
    assert len(lines) == 1 and "40 B of 100 B (40 %)" in lines[0]  # once both have said how far they are


def test_a_speaker_is_told_how_far_they_are_and_that_they_have_ended():
    lines, shown = [], []
    watch_all(hosts(threading.Barrier(2)), BEGUN, "old -> new", Speaker(lines.append, shown.append), 5.0)
    assert not lines and shown[-1] is None
    assert [one.progress.bytes_done for one in shown[:-1]] == [40]


def test_nothing_is_asked_where_nothing_runs():
    assert watch_all({}, {}, "old -> new", print, 5.0) == {}
