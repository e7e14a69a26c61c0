# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The log of a job, and a transfer that finds no room for what it makes first."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._core.state_folder import StateError
from ansible_collections.longhaul.fleet.plugins.module_utils._job import commands, transfer_job
from ansible_collections.longhaul.fleet.plugins.module_utils._job.state import JobFolder
from ansible_collections.longhaul.fleet.plugins.module_utils._job.transfer_job import JobLog
from ansible_collections.longhaul.fleet.tests.support.small_disk import small_disk


@pytest.fixture(name="context")
def _context(tmp_path: Path) -> Any:
    (tmp_path / "dest").mkdir()
    root = os.fsencode(tmp_path / "dest")
    settings = {"id": "a1", "check": False, "partial": True, "method": "stream", "time_units": {}, "mounts": []}
    return SimpleNamespace(
        side="dest",
        root=root,
        top=root,
        root_fd=-1,
        folder=str(tmp_path / "state"),
        settings=settings,
        serve={},
        made=[],
        staged=None,
    )


def fill_inodes(folder: Path, left: int) -> None:
    """Make empty files until a file system has so many inodes left."""
    with contextlib.suppress(OSError):
        for number in itertools.count():
            (folder / f"filler{number}").touch()
    for path in sorted(folder.glob("filler*"))[:left]:
        path.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_destination_without_inodes_for_the_staging_folder_is_full(
    context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    monkeypatch.setattr(transfer_job, "destination_lock", lambda *_given: contextlib.nullcontext())
    dest = tmp_path / "dest"
    with small_disk(dest, "size=1m,nr_inodes=20"):
        fill_inodes(dest, left)
        try:
            with pytest.raises(TransferFailed, match=rf"no space or no inodes left \(see df {dest} and df -i"):
                with transfer_job._explain_full(context):
                    with transfer_job._destination(context, JobFolder("a1", "dest"), None):
                        pytest.fail("there is no room for its folders")
        finally:
            os.close(context.root_fd)


@pytest.mark.parametrize(
    ("side", "named", "words"),
    [
        ("dest", None, "the destination's disk is full"),
        ("dest", b"tmp/x", "the destination's disk is full"),
        ("dest", "STATE/status.json", "state/status.json cannot be written on this host: No space left on device"),
        ("source", None, "state cannot be written on this host: No space left on device"),
    ],
)
def test_what_is_full_is_named(context: Any, side: str, named: Any, words: str) -> None:
    context.side = side
    path = named.replace("STATE", context.folder) if isinstance(named, str) else named
    with pytest.raises(TransferFailed, match=words), transfer_job._explain_full(context):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    with pytest.raises(OSError, match="Input/output"), transfer_job._explain_full(context):
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)


def test_a_step_that_finds_no_room_is_told_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*_given: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/var/lib/longhaul/a1/dest/request.json")

    monkeypatch.setattr(commands, "_STEPS", {"sync": fill})
    with pytest.raises(StateError, match=r"a1/dest/request.json cannot be written on this host: No space left"):
        commands.run_steps([{"do": "sync", "path": "/"}], commands.StepContext({}, ""))


def test_the_log_of_a_job_does_not_grow_without_end(tmp_path):
    path = tmp_path / "log"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        log = JobLog(str(path), fd)
        os.write(fd, b"what Python itself printed\n")
        largest = 0
        for number in range(60_000):
            log(f"port 1: stranger {number} connected, which is not the other host: dropped")
            if number % 1000 == 0:
                largest = max(largest, path.stat().st_size)
        log("x" * 1_000_000)
        log("the transfer failed: \udcff")
    finally:
        os.close(fd)
    assert (
        transfer_job.LOG_KEPT_BYTES < largest <= transfer_job.LOG_BYTES + 100
        and path.stat().st_size <= transfer_job.LOG_BYTES
    )
    lines = path.read_bytes().splitlines()
    assert lines[0] == b"(earlier lines are gone)" and lines[-1] == b"the transfer failed: \xff"
    numbers = [int(line.split()[3]) for line in lines[1:-2]]
    assert numbers == list(range(numbers[0], 60_000)) and len(numbers) > 1000


def test_a_serving_end_accounts_from_its_first_connection_to_its_last(
    context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([False, True, True, False, True, False])
    begun: list[str] = []
    said: list[dict[str, Any]] = []
    context.stop = threading.Event()
    context.settings["timeout"] = 0

    class Served:
        has_succeeded = False

        def active(self) -> bool:
            is_active = next(looks, None)
            if is_active is None:
                context.stop.set()
            return bool(is_active)

    monkeypatch.setattr(transfer_job, "CHECK_INTERVAL", 0)
    monkeypatch.setattr(transfer_job.time_accounting, "begin", lambda: begun.append("begun"))
    monkeypatch.setattr(transfer_job.time_accounting, "account", lambda: {"wall": float(len(said))})
    reporter: Any = SimpleNamespace(set=lambda **values: said.append(values))
    served: Any = Served()
    transfer_job._wait_for_end(context, served, reporter)
    assert begun == ["begun"]
    assert said == [
        {"idle": False},
        {"idle": True, "spent": {"wall": 1.0}},
        {"idle": False},
        {"idle": True, "spent": {"wall": 3.0}},
    ]


@pytest.mark.parametrize(("has_succeeded", "timeout", "patience"), [(True, 300, 120), (True, 5, 5), (False, 300, 300)])
def test_a_serving_end_ends_soon_after_a_transfer_that_succeeded(
    context: Any, monkeypatch: pytest.MonkeyPatch, has_succeeded: bool, timeout: int, patience: int
) -> None:
    now = itertools.count()
    active = itertools.chain([True, True], itertools.repeat(False))
    server: Any = SimpleNamespace(has_succeeded=has_succeeded, active=lambda: next(active))
    context.stop, context.log = threading.Event(), lambda _text: None
    context.settings["timeout"] = timeout
    monkeypatch.setattr(transfer_job, "CHECK_INTERVAL", 0)
    monkeypatch.setattr(transfer_job, "time", SimpleNamespace(monotonic=lambda: float(next(now))))
    monkeypatch.setattr(transfer_job.time_accounting, "begin", lambda: None)
    monkeypatch.setattr(transfer_job.time_accounting, "account", dict)
    reporter: Any = SimpleNamespace(set=lambda **_values: None)
    transfer_job._wait_for_end(context, server, reporter)
    looks = next(now)
    assert patience <= looks <= 2 * patience + 6
