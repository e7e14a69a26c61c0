# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers of sparse files: holes stay holes where they are preserved, and only there."""

from __future__ import annotations

import os
import shutil

import pytest
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ALL, Pair, settings

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
needs_sshd = pytest.mark.skipif(SSHD is None or os.geteuid() != 0, reason="needs sshd, and root for owners")
METHODS = ["stream", "tar_nc", pytest.param("scp", marks=needs_sshd), pytest.param("sftp", marks=needs_sshd)]
WITHOUT = [name for name in ALL if name != "sparse"]

SIZES = (8192, 16 << 10, 64 << 10, 128 << 10, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 3 << 20)
LAYOUTS = {
    "hole": lambda size: [],
    "last byte": lambda size: [(size - 1, 1)],
    "first block": lambda size: [(0, 4096)],
    "middle block": lambda size: [(size // 2 // 4096 * 4096, 4096)],
    "every fourth block": lambda size: [(at, 4096) for at in range(0, size - 4095, 16 << 10)],
    "hole in data": lambda size: [
        (0, size // 4096 // 4 * 4096),
        (size // 2 // 4096 * 4096, size - size // 2 // 4096 * 4096),
    ],
}


def pair_of(trees, method, **changes):
    """Make both ends of a transfer."""
    pair = Pair(trees[2], trees[0], trees[1], settings(method, encrypt=False, **changes))
    if method in ("scp", "sftp"):
        pair.use_ssh()
    return pair


def make_sparse_files(source):
    """Make files of all sizes and layouts; return how many of them have holes."""
    for name, layout in LAYOUTS.items():
        for size in SIZES:
            with open(source / f"{name} {size}", "wb") as file:
                file.truncate(size)
                for at, count in layout(size):
                    os.pwrite(file.fileno(), b"\1" * count, at)
                os.fsync(file.fileno())
    return sum(path.stat().st_blocks * 512 < path.stat().st_size for path in source.iterdir())


def blocks(folder):
    """Return the blocks of every file of a folder."""
    return {path.name: path.stat().st_blocks for path in folder.iterdir()}


@pytest.mark.often(3)
@pytest.mark.parametrize("worth", [None, 1], ids=["one process", "several processes"])
@pytest.mark.parametrize("method", METHODS)
def test_holes_of_small_and_large_files_stay(trees, method, worth):
    source, dest = trees[:2]
    if not make_sparse_files(source):
        pytest.skip("this file system has no holes")
    pair = pair_of(trees, method, streams=2)
    pair.worth = worth
    outcome = pair.run()
    assert outcome.get("errors") == [], outcome
    assert differences(source, dest) == []
    at_source, at_dest = blocks(source), blocks(dest)
    assert {name: at_dest[name] for name in at_source if at_dest[name] > at_source[name]} == {}


def test_holes_of_files_that_come_another_way_stay(trees):
    """With attributes of their own they are dressed before they are put in place."""
    source, dest = trees[:2]
    if not make_sparse_files(source):
        pytest.skip("this file system has no holes")
    for path in source.iterdir():
        os.setxattr(path, "user.x", b"1")
    outcome = pair_of(trees, "stream").run()
    assert outcome["errors"] == [] and differences(source, dest) == []
    at_source, at_dest = blocks(source), blocks(dest)
    assert {name: at_dest[name] for name in at_source if at_dest[name] > at_source[name]} == {}


@pytest.mark.parametrize("method", METHODS)
def test_without_sparse_in_preserve_no_file_has_holes(trees, method):
    source, dest = trees[:2]
    if not make_sparse_files(source):
        pytest.skip("this file system has no holes")
    outcome = pair_of(trees, method, preserve=WITHOUT).run()
    assert outcome.get("errors") == [], outcome
    assert differences(source, dest, ignore=["sparse"]) == []
    assert [path.name for path in dest.iterdir() if path.stat().st_blocks * 512 < path.stat().st_size] == []


def test_a_file_that_is_dense_and_else_the_same_is_left(trees):
    source, dest = trees[:2]
    with open(source / "file", "wb") as file:
        file.truncate(100_000)
    (dest / "file").write_bytes(bytes(100_000))
    for path in (source / "file", dest / "file", source, dest):
        os.utime(path, (0, 10**9))
    before = (dest / "file").stat()
    assert not pair_of(trees, "stream").run()["changed"]
    assert (dest / "file").stat() == before
