# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Transfers between two testbed hosts that are disturbed on their way, and what that costs."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import compare, leftovers
from .hard_tree import make_big_files, remove_tree
from .playbooks import Playbooks, Run, Running

if TYPE_CHECKING:
    from ..testbed import Process, Testbed

METHODS = ("stream", "rsync", "rsyncd", "tar_nc", "scp", "sftp")
PROGRAMS = ("rsync", "ssh", "sftp", "scp", "sftp-server", "tar", "nc", "nc.openbsd")
MIB = 1 << 20
START_RATE = "2mbit"  # so slow that none has ended when the last one begins
UNDER_WAY = 32 << 10  # bytes at the destination


class Transfer:
    """One task that moves a folder of alpha's /data to beta's, run as often as a test wants.

    ``name`` is that of the folder at the source; where several transfers go on at once, each has its own.
    """

    def __init__(self, bed: Testbed, playbooks: Playbooks, method: str, name: str = "src", **options: Any) -> None:
        self.bed, self.playbooks, self.method = bed, playbooks, method
        self.source, self.dest = bed.root("alpha") / "data" / name, bed.root("beta") / f"data/dest-{name}"
        self.options = {"method": method, "encryption": "none", "src_host": "alpha", "src": f"/data/{name}/"}
        self.options.update({"dest": f"/data/dest-{name}", **options})
        self.size = 0
        self._before = self._snapshot()

    def fill(self, count: int = 3, each: int = 48 * MIB) -> None:
        """Make large files at the source."""
        make_big_files(self.source, count * each, count=count)
        self.size = count * each

    def start(self, *flags: str, **options: Any) -> Running:
        """Start the task."""
        task = {"name": "Move", "longhaul.fleet.transfer": {**self.options, **options}}
        return self.playbooks.start([task], *flags, hosts="beta")

    def run(self, *flags: str, **options: Any) -> dict[str, Any]:
        """Run the task to its end, which must be a good one; give its result."""
        return self.start(*flags, **options).wait().expect_success().result("Move")

    def run_into_failure(self, **options: Any) -> dict[str, Any]:
        """Run the task, which must fail; give its result."""
        return failed(self.start(**options).wait())

    def until(self, share: float, running: Running, begun: int | None = None) -> None:
        """Wait until that share of the files has left alpha since ``begun`` (of ``traffic``; None: since now)."""
        wanted = (self.traffic() if begun is None else begun) + share * self.size
        wait_for(lambda: self.traffic() >= wanted, lambda: _still(running))

    def traffic(self) -> int:
        """Return the bytes that alpha sent into the data network since it came up."""
        lines = Path(f"/proc/{self.bed.pid('alpha')}/net/dev").read_text().splitlines()
        return next(int(line.split()[9]) for line in lines if line.strip().startswith("eth1:"))

    def held(self) -> int:
        """Return the bytes at the destination, in place or not."""
        total = 0
        for folder, _folders, files in os.walk(self.dest):
            for name in files:
                with contextlib.suppress(FileNotFoundError):  # it went to its place just now
                    total += os.stat(os.path.join(folder, name)).st_size
        return total

    def expect_identical(self) -> None:
        """The trees must be the same."""
        found = compare.differences(self.source, self.dest)
        assert not found, found

    def expect_nothing_left(self) -> None:
        """Nothing may be on the hosts but what was there before the first run. Removes both trees."""
        for tree in (self.source, self.dest):
            remove_tree(tree)
        after = self._snapshot()
        left = after - self._before
        gone = {line for line in self._before - after if ": temporary: " not in line}  # a restart empties /run and /tmp
        assert not left | gone, left | gone

    def _snapshot(self) -> set[str]:
        return {f"{host}: {line}" for host in self.bed.hosts for line in leftovers.snapshot(self.bed, host)}

    def kill_side(self, host: str) -> int:
        """Kill all that the transfer runs on a host, at once; give how many processes there were."""
        found = [one for one in self.bed.processes(host) if _is_of_transfer(one.argv)]
        kill(self.bed, host, found)
        return len(found)


def jobs(bed: Testbed, host: str) -> list[Process]:
    """Return the jobs on a host, without their programs."""
    return [process for process in bed.processes(host) if "engine.pyz job" in " ".join(process.argv[:6])]


def kill(bed: Testbed, host: str, processes: list[Process]) -> None:
    """Kill processes at once; some may end by themselves when others do."""
    bed.exec(host, ["kill", "-9", "--", *(str(process.pid) for process in processes)], check=False)


def _is_of_transfer(argv: tuple[str, ...]) -> bool:
    """Whether a process is a job or one of its programs, and not the module that asks how far it is."""
    return os.path.basename(argv[0]) in PROGRAMS or any("/longhaul/" in word for word in argv)


def failed(run: Run) -> dict[str, Any]:
    """Return the result of the transfer task, which must have failed."""
    assert run.rc != 0 and run.failures, run.output
    return _clear(run.result("Move"))


def _clear(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result, whose message must be meant for people."""
    assert "Traceback" not in result["msg"] and "defect" not in result["msg"], result["msg"]
    assert "(at " not in result["msg"] and "Task failed: '" not in result["msg"], result["msg"]
    return result


def wait_for(condition: Callable[[], bool], check: Callable[[], None] = lambda: None, seconds: float = 120) -> None:
    """Wait until something is so. ``check`` may raise when it will never be."""
    until = time.monotonic() + seconds
    while not condition():
        check()
        assert time.monotonic() < until, f"not within {seconds} s"
        time.sleep(0.01)


def _still(running: Running) -> None:
    assert running.process.poll() is None, f"the task ended too early:\n{running.output}"


def several(bed: Testbed, playbooks: Playbooks, methods: Sequence[str], **options: Any) -> list[Transfer]:
    """Return a transfer for each method, each with its own trees: what makes a test wait is waited for only once.

    They share a line. So stream may not try more connections: it would leave nothing of the line to the others.
    """
    given = {"stream": {"streams": 2, **options}}
    return [Transfer(bed, playbooks, method, name=method, **given.get(method, options)) for method in methods]


def run_all(transfers: list[Transfer], **options: Any) -> list[dict[str, Any]]:
    """Run several transfers, one after the other in one playbook, to their good ends; give their results."""
    run = _one_playbook(transfers, options).expect_success()
    assert not [one for one in run.results if one.status != "ok"], run.output
    return [run.result(transfer.method) for transfer in transfers]


def fail_all(transfers: list[Transfer], **options: Any) -> list[str]:
    """Run several transfers, one after the other in one playbook, which must all fail; give their messages."""
    run = _one_playbook(transfers, options)
    assert [one.status for one in run.results] == ["ignored"] * len(transfers), run.output
    return [_clear(run.result(transfer.method))["msg"] for transfer in transfers]


def _one_playbook(transfers: list[Transfer], options: dict[str, Any]) -> Run:
    tasks = [
        {
            "name": transfer.method,
            "longhaul.fleet.transfer": {**transfer.options, **options},
            "ignore_errors": True,
        }
        for transfer in transfers
    ]
    return transfers[0].playbooks.run(tasks, hosts="beta")


def expect_nothing_left(transfers: list[Transfer]) -> None:
    """Nothing may be on the hosts but what was there before the first run. Removes all trees."""
    for transfer in transfers[1:]:
        for tree in (transfer.source, transfer.dest):
            remove_tree(tree)
    transfers[0].expect_nothing_left()


def start_all(transfers: list[Transfer], rate: str) -> list[Running]:
    """Start several transfers at once, on a slow line until each has brought something over; then it has a rate."""
    bed = transfers[0].bed
    bed.shape("alpha", START_RATE)
    running = [transfer.start() for transfer in transfers]

    def check() -> None:
        for one in running:
            _still(one)

    wait_for(lambda: all(transfer.held() > UNDER_WAY for transfer in transfers), check)
    bed.shape("alpha", rate)
    return running
