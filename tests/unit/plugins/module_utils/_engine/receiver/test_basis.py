# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An old version of a file: what a source may take of it, and what shows that it changed."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import time
from types import SimpleNamespace

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.content import delta
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.basis import Basis
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.frames import FrameError

BLOCK = 32768
BLOCKS = 300


@pytest.fixture(name="path")
def _path(tmp_path):
    path = tmp_path / "old"
    path.write_bytes(os.urandom(BLOCKS * BLOCK + 5))
    return path


@contextlib.contextmanager
def opened(path, size=1 << 30):
    """Yield the basis for a file of a size."""
    basis = Basis(os.open(path, os.O_RDONLY), size, [])
    try:
        yield basis
    finally:
        basis.close()


def hash_all(basis) -> list[bytes]:
    """Hash it, and return the rest of each hash."""
    hasher = delta.Hasher()
    rests = []
    for run, hashes in hasher.hashes(basis.fd, basis.blocks, basis.blocks.stretches(range(basis.blocks.total))):
        basis.note(run, hashes)
        rests += hashes.rests
    hasher.close()
    return rests


@pytest.mark.parametrize(("first", "stop"), [(0, 1), (0, BLOCKS), (127, 129), (256, BLOCKS), (299, 300)])
def test_who_knows_the_hashes_may_take_the_blocks(path, first, stop):
    with opened(path) as basis:
        rests = hash_all(basis)
        proof = basis.blocks.prove(rests[first:stop])
        basis.check(first * BLOCK, (stop - first) * BLOCK, proof)
        with pytest.raises(FrameError, match="does not know"):
            basis.check(first * BLOCK, (stop - first) * BLOCK, bytes(16))


@pytest.mark.parametrize(
    ("offset", "length"),
    [
        *((0, 0), (1, BLOCK), (0, BLOCK + 1), (BLOCKS * BLOCK, 5), (BLOCKS * BLOCK, BLOCK), (1 << 40, BLOCK)),
        ((BLOCKS - 1) * BLOCK, 2 * BLOCK),
    ],
)
def test_what_are_no_blocks_of_it_is_refused(path, offset, length):
    with opened(path) as basis:
        rests = hash_all(basis)
        first = offset // BLOCK
        proof = basis.blocks.prove(rests[first : first + length // BLOCK])
        with pytest.raises(FrameError, match="does not have"):
            basis.check(offset, length, proof)


def test_blocks_whose_hashes_were_not_told_are_refused(path):
    with opened(path) as basis, pytest.raises(FrameError, match="does not have"):
        basis.check(0, BLOCK, basis.blocks.prove([]))


def test_no_more_is_hashed_than_both_versions_have(path):
    with opened(path, 3 * BLOCK + 1) as basis:
        assert (basis.blocks.total, basis.blocks.old_size) == (3, BLOCKS * BLOCK + 5)
    for size in (0, BLOCK - 1):
        with pytest.raises(OSError, match="too small"), opened(path, size):
            pass


def settle(path):
    """Let the last change of a file be so long ago that the next one has another time for certain."""
    time.sleep(max(0.0, path.stat().st_ctime + 2.1 - time.time()))


def test_who_writes_to_it_is_noticed_whatever_else_changes(path):
    settle(path)
    with opened(path) as basis:
        assert basis.is_as_it_was()
        path.chmod(0o600)
        assert not basis.is_as_it_was()
    settle(path)
    with opened(path) as basis, path.open("r+b") as file:
        assert basis.is_as_it_was()
        file.write(b"x")
        file.flush()
        os.utime(path, ns=(1, basis._before.st_mtime_ns))  # pylint: disable=protected-access
        os.link(path, path.with_name("hides it"))
        assert not basis.is_as_it_was()


def test_who_can_write_without_a_trace_is_noticed(path):
    """What is mapped changes without a change of a time, and what changed just now can do so again."""
    with opened(path) as basis:
        assert not basis.is_as_it_was()
    settle(path)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0), opened(path) as basis:
        assert not basis.is_as_it_was()


def test_a_file_system_with_coarse_times_shows_no_change(path, monkeypatch):
    settle(path)

    def coarse(fd):
        status = fstat(fd)
        whole = {name: getattr(status, name) for name in dir(status) if name.startswith("st_")}
        return SimpleNamespace(**{**whole, "st_ctime_ns": status.st_ctime_ns // 10**9 * 10**9})

    fstat = os.fstat
    monkeypatch.setattr(os, "fstat", coarse)
    with opened(path) as basis:
        assert not basis.is_as_it_was()


def test_what_changed_since_it_was_hashed_is_found(path):
    size = BLOCKS * BLOCK
    with opened(path) as basis, contextlib.closing(delta.Hasher()) as hasher:
        hash_all(basis)
        new = path.with_name("new")
        new.write_bytes(path.read_bytes())
        taken = [(0, 5 * BLOCK), (100 * BLOCK, 260 * BLOCK), (260 * BLOCK, size)]
        with new.open("r+b") as file:
            assert basis.differing(file.fileno(), taken, hasher) == []
            for block in (3, 50, 200, 201, 299):
                file.seek(block * BLOCK + 7)
                file.write(b"evil")
            file.flush()
            found = basis.differing(file.fileno(), taken, hasher)
            assert [(start // BLOCK, end // BLOCK) for start, end in found] == [(3, 4), (200, 202), (299, 300)]
            file.truncate(299 * BLOCK)
            assert basis.differing(file.fileno(), taken[2:], hasher) == [(299 * BLOCK, size)]


def test_its_time_of_access_stays_where_that_is_allowed(path):
    with opened(path) as basis:
        assert fcntl.fcntl(basis.fd, fcntl.F_GETFL) & os.O_NOATIME
