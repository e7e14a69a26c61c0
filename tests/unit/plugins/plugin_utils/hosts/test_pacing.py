# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connections to one host are opened at a pace that its sshd bears, by all workers of a run together."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.pacing import OPENINGS, SESSIONS, WINDOW, Pace

FORK = multiprocessing.get_context("fork")


def begin(folder: str, host: str, has_master: bool, begun: Any, hold: Any) -> None:
    """Be a worker: say when it begins an execution, and end that when told."""
    with Pace(folder, host).turn(lambda: has_master):
        begun.put(time.monotonic())
        hold.wait(60)


def begin_together(folder: Path, workers: int, *, has_master: bool = False) -> list[float]:
    """Return when each of some workers began, in order, the first as 0."""
    begun, hold = FORK.Queue(), FORK.Event()
    made = [FORK.Process(target=begin, args=(str(folder), "old", has_master, begun, hold)) for _one in range(workers)]
    for worker in made:
        worker.start()
    times = sorted(begun.get(timeout=60) for _one in made)
    hold.set()
    for worker in made:
        worker.join(60)
    return [one - times[0] for one in times]


def test_new_connections_are_opened_at_a_pace(tmp_path: Path) -> None:
    times = begin_together(tmp_path, OPENINGS + 3)
    for earlier, later in zip(times, times[OPENINGS:]):
        assert later - earlier > WINDOW * 0.9, times


def test_a_master_carries_its_sessions_at_once_and_others_wait(tmp_path: Path) -> None:
    times = begin_together(tmp_path, SESSIONS + OPENINGS + 1, has_master=True)
    assert times[-1] > WINDOW * 0.9, times  # all sessions were taken, and the connections of this second


def test_a_session_is_given_back(tmp_path: Path) -> None:
    pace = Pace(str(tmp_path), "old")
    begun = time.monotonic()
    for _number in range(3 * (SESSIONS + OPENINGS)):
        with pace.turn(lambda: True):
            pass
    assert not list(tmp_path.glob("*.opened")), "a session was free, and a connection was counted"
    assert time.monotonic() - begun < 30


def test_a_failure_gives_the_session_back(tmp_path: Path) -> None:
    pace = Pace(str(tmp_path), "old")
    for _number in range(SESSIONS + 1):
        try:
            with pace.turn(lambda: True):
                raise ValueError
        except ValueError:
            pass
    assert not list(tmp_path.glob("*.opened"))


def test_another_host_has_its_own_pace_and_a_folder_that_is_gone_stops_nobody(tmp_path: Path) -> None:
    for host in ("one", "two"):
        for _number in range(OPENINGS):
            with Pace(str(tmp_path), host).turn(lambda: False):
                pass
    with Pace(str(tmp_path / "gone"), "one").turn(lambda: False):
        pass
    (tmp_path / "damaged").mkdir()
    damaged = Pace(str(tmp_path / "damaged"), "one")
    Path(f"{damaged._path}.opened").write_text("not a list")
    with damaged.turn(lambda: False):
        pass
