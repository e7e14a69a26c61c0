# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much of a file is none of its holes, on file systems that pack their files, too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job.probe import measure
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import WHOLE_BYTES
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.dirfd import Root
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.holes import count_holes

MIB = 1 << 20


def write(path: Path, size: int, *stretches: tuple[int, int]) -> None:
    """Make a file of which these stretches (start, bytes) are stored, and pack well."""
    with open(path, "wb") as file:
        file.truncate(size)
        for start, count in stretches:
            os.pwrite(file.fileno(), b"x" * count, start)
        os.fsync(file.fileno())


@pytest.mark.parametrize(
    ("size", "stretches", "expected"),
    [
        (64 * MIB, [], 0),
        (64 * MIB, [(0, MIB), (20 * MIB, 2 * MIB)], 3 * MIB),
        (64 * MIB, [(64 * MIB - 4096, 4096)], 4096),
        (8 * MIB + 5, [(8 * MIB, 5)], 5),
        (8 * MIB, [(0, 8 * MIB)], 8 * MIB),
        (WHOLE_BYTES, [], WHOLE_BYTES),  # is sent with its holes
    ],
)
@pytest.mark.parametrize("packed", [1, 8])
def test_holes_count_and_compression_does_not(tmp_path, size, stretches, expected, packed):
    """ZFS allocates as many blocks as what it has packed needs."""
    write(tmp_path / "file", size, *stretches)
    with Root(os.fsencode(tmp_path)) as root:
        entry = root.lstat(b"file")
        assert entry is not None
        if not stretches and not entry.is_sparse:
            pytest.skip("cannot run here: this file system has no holes")
        counted = count_holes(root, entry._replace(blocks=entry.blocks // packed))
        assert counted.content == expected
        assert counted.is_sparse or packed == 1  # where no hole was found, the destination looks for zeros


def test_a_tree_is_measured_without_holes_and_each_file_once(tmp_path):
    write(tmp_path / "image", 64 * MIB, (8 * MIB, MIB))
    if (tmp_path / "image").stat().st_blocks * 512 >= 64 * MIB:
        pytest.skip("cannot run here: this file system has no holes")
    write(tmp_path / "dense", MIB, (0, MIB))
    os.link(tmp_path / "image", tmp_path / "other")
    folder = tmp_path.stat().st_blocks * 512
    found = measure(os.fsencode(tmp_path), 60)
    assert found == {"entries": 4, "content": 2 * MIB + folder, "apparent": 65 * MIB + folder, "complete": True}


def test_a_small_file_takes_its_whole_block(tmp_path):
    (tmp_path / "small").write_text("small")
    taken = sum(path.stat().st_blocks * 512 for path in (tmp_path, tmp_path / "small"))
    found = measure(os.fsencode(tmp_path), 60)
    assert found["content"] == found["apparent"] == taken > len("small")


def test_a_file_that_cannot_be_opened_counts_by_its_blocks(tmp_path):
    write(tmp_path / "image", 64 * MIB, (8 * MIB, MIB))
    with Root(os.fsencode(tmp_path)) as root:
        entry = root.lstat(b"image")
        assert entry is not None
        (tmp_path / "image").unlink()
        assert count_holes(root, entry) == entry
