# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records that wait in a file: in which order they come back, and what is told where the disk takes no more."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver import disk_stack
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.apply import Applier
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.disk_stack import DiskStack, RecordFile
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.dirfd import Root
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import settings

RECORDS = [bytes([number]) * number for number in range(100)]


@pytest.fixture(name="full")
def _full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the files of this process be on a disk without room."""
    monkeypatch.setattr(disk_stack, "_open_private", lambda _folder: open("/dev/full", "w+b"))  # noqa: SIM115


def test_the_last_record_comes_back_first(tmp_path: Path) -> None:
    with contextlib.closing(DiskStack(str(tmp_path))) as stack:
        for _time in range(2):
            for record in RECORDS:
                stack.push(record)
            assert len(stack) == len(RECORDS) and list(stack.drain()) == RECORDS[::-1] and not len(stack)


@pytest.mark.parametrize("in_memory", [0, 1000, 1 << 20])
def test_a_record_is_found_by_its_place(tmp_path: Path, in_memory: int) -> None:
    with contextlib.closing(RecordFile(str(tmp_path), in_memory)) as file:
        places = {file.put(record): record for record in RECORDS}
        assert all(file.get(place) == record for place, record in places.items())


@pytest.mark.usefixtures("full")
def test_a_full_disk_is_named_by_what_waits_on_it(tmp_path: Path) -> None:
    for keep in (DiskStack(str(tmp_path)).push, RecordFile(str(tmp_path), 0).put):
        with pytest.raises(OSError, match="No space left") as caught:
            for _time in range(2):
                keep(bytes(1 << 20))
        assert caught.value.errno == errno.ENOSPC and caught.value.filename == str(tmp_path)
    stack = DiskStack(str(tmp_path))
    stack.push(b"in the buffer")
    with pytest.raises(OSError, match="No space left") as caught:
        list(stack.drain())
    assert caught.value.filename == str(tmp_path)
    stack.close()


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("is_state", [True, False])
def test_a_transfer_names_the_disk_that_is_full(tmp_path: Path, is_state: bool) -> None:
    job, dest = tmp_path / "job", tmp_path / "dest"
    job.mkdir()
    dest.mkdir()
    context = Context("dest", "serve", os.fsencode(dest), settings("stream"), str(job))
    with Root(os.fsencode(dest)) as root, contextlib.closing(Applier(context, root, Outcome())) as applier:
        error = OSError(errno.ENOSPC, "No space left on device")
        if is_state:
            folder = Entry(b"x" * 255, "d", 0o755, 0, 0, 0, 1, 2, 3, 1, 1, 0, 0)
            with pytest.raises(OSError, match="No space left") as raised:
                for number in range(100_000):
                    applier._spool.push(folder.path + b"%d" % number)  # pylint: disable=protected-access
            error = raised.value
        with pytest.raises(TransferFailed) as caught:
            applier.failed(b"name", error)
    context.staged.close()
    assert (f"{job} cannot be written" in str(caught.value)) is is_state
    assert ("the destination's disk is full" in str(caught.value)) is not is_state
