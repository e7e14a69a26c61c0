# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The job that has consistent sources undoes them when it is asked, when nobody reads them, and after a kill."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job import launcher, state
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.engine import pack_engine


class JobWithCopy:
    """A source tree with a database, and the job that has a copy of it."""

    def __init__(self, folder: Path) -> None:
        self.src, self.engine = folder / "src", folder / "engine.pyz"
        self.src.mkdir()
        with sqlite3.connect(self.src / "app.db") as database:
            database.execute("CREATE TABLE t (x)")
        database.close()
        self.engine.write_bytes(pack_engine())
        self.folder = state.JobFolder(os.urandom(8).hex(), "source")
        self.sources: list[dict[str, Any]] = [
            {
                "kind": "sqlite",
                "root": str(self.src),
                "into": str(self.src / ".longhaul-dumps/sqlite"),
                "keep": False,
                "files": ["app.db"],
            }
        ]

    def start(self, undo_after: float = 600) -> Any:
        request = {
            "side": "source",
            "part": "consistent",
            "root": "",
            "peer_name": "vault",
            "sources": self.sources,
            "readers": [str(self.src)],
            "undo_after": undo_after,
        }
        return launcher.start(self.folder, str(self.engine), "consistent", request, {}, ("serving",), 30)

    @property
    def dumped(self) -> bool:
        return (self.src / ".longhaul-dumps/sqlite/app.db").exists()

    def end(self) -> None:
        launcher.stop(self.folder, succeeded=True)


@pytest.fixture(name="held")
def _held(tmp_path: Path) -> Iterator[JobWithCopy]:
    held = JobWithCopy(tmp_path)
    yield held
    held.end()
    held.folder.remove()


def wait_for(reached: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_sources_are_held_until_the_job_is_ended(held):
    status = held.start()
    assert (status["state"], status["alive"], status["idle"]) == ("serving", True, True) and held.dumped
    assert status["progress"]["files_done"] == 1
    assert held.folder.transfer_id not in [one["id"] for one in state.list_jobs()]
    status = launcher.stop(held.folder, succeeded=True)
    assert status["state"] == "finished" and os.listdir(held.src) == ["app.db"]


def test_without_a_control_node_sources_go_when_nothing_reads_them(held):
    """The control node has died after the sources were prepared, and a transfer still reads them."""
    reader = state.JobFolder(os.urandom(8).hex(), "source")
    reader.create()
    reader.request = {"part": "serve", "root": str(held.src / "below")}
    lock = reader.lock()
    try:
        held.start(undo_after=0.3)
        wait_for(lambda: not held.folder.status["idle"])
        time.sleep(0.5)
        assert held.dumped and held.folder.is_running()
        reader.status = {"state": "serving", "idle": True}  # its peer has all, and nobody ends it
        wait_for(lambda: not held.folder.is_running())
    finally:
        os.close(lock)
        reader.remove()
    assert held.folder.status["state"] == "finished" and os.listdir(held.src) == ["app.db"]


def test_what_a_killed_job_left_goes_with_the_next_look(held):
    held.start()
    os.kill(held.folder.status["pid"], signal.SIGKILL)
    wait_for(lambda: not held.folder.is_running())
    assert held.dumped
    held.end()
    assert os.listdir(held.src) == ["app.db"]


def test_a_failure_says_why_and_leaves_nothing(held):
    held.sources.append({**held.sources[0], "into": str(held.src / "more"), "files": ["*.sqlite"]})
    status = held.start()
    assert (status["state"], status["alive"]) == ("failed", False)
    assert status["failure"] == "no file matches *.sqlite in the source. Correct files"
    assert os.listdir(held.src) == ["app.db"]
