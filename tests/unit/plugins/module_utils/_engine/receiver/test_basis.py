# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An old version of a file: what a source may take of it, and what shows that it changed."""

from __future__ import annotations

import contextlib
import fcntl
import os

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


def test_who_writes_to_it_is_noticed_and_another_name_is_none_of_it(path):
    with opened(path) as basis:
        assert basis.is_as_it_was()
        os.link(path, path.with_name("a later snapshot"))
        assert basis.is_as_it_was()
        with path.open("r+b") as file:
            file.write(b"x")
        os.utime(path, ns=(1, basis._before.st_mtime_ns + 1))  # pylint: disable=protected-access
        assert not basis.is_as_it_was()


def test_its_time_of_access_stays_where_that_is_allowed(path):
    with opened(path) as basis:
        assert fcntl.fcntl(basis.fd, fcntl.F_GETFL) & os.O_NOATIME
