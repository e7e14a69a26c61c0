# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks are measured with what is there, within bounds, and what cannot be measured is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._benchmark import disk
from ansible_collections.longhaul.fleet.plugins.module_utils._benchmark.tree import ChosenFile
from ansible_collections.longhaul.fleet.plugins.module_utils._core.mounts import Mount
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.dirfd import Root
from ansible_collections.longhaul.fleet.tests.support.small_disk import small_disk

MIB = 1 << 20


@pytest.fixture(name="opened")
def _opened(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


def test_the_files_of_a_source_are_read(tmp_path: Path, opened: int) -> None:
    (tmp_path / "large").write_bytes(os.urandom(4 * MIB))
    (tmp_path / "small").write_bytes(b"small")
    os.sync()
    gaps: list[str] = []
    with Root(opened) as tree:
        large, small = [ChosenFile(b"gone", 5 * MIB), ChosenFile(b"large", 4 * MIB)], [ChosenFile(b"small", 5)]
        found = disk.measure_source(
            tree, os.fsencode(tmp_path), large[1:], small, 5.0, 1.0, 64 * MIB, "sha256", gaps.append
        )
        assert disk.read_large(tree, large, disk.BusyMeter(b"/"), 1.0, MIB).rate.amount == MIB
        assert disk.read_small(tree, [*large[:1], *small], disk.BusyMeter(b"/"), 1.0).amount == 1
    assert min(found["large"], found["small"], found["compared"]) > 0
    assert found["entries"] == 5.0
    assert 0 <= found["busy"] <= 1
    assert [gap for gap in gaps if "memory" not in gap] == []


def test_a_source_without_files_has_gaps(tmp_path: Path, opened: int) -> None:
    gaps: list[str] = []
    with Root(opened) as tree:
        found = disk.measure_source(tree, os.fsencode(tmp_path), [], [], 5.0, 0.5, MIB, "sha256", gaps.append)
    assert (found["large"], found["small"], found["compared"]) == (0.0, 0.0, 0.0)
    assert ["large" in gaps[0], "small" in gaps[1]] == [True, True]


def test_a_destination_is_written_within_its_bounds_and_read_back(tmp_path: Path, opened: int) -> None:
    gaps: list[str] = []
    found = disk.measure_dest(opened, os.fsencode(tmp_path), os.urandom(MIB), 1.0, 8 * MIB, "sha256", gaps.append)
    assert min(found["large"], found["small"], found["compared"], found["entries"]) > 0
    assert 0 <= found["busy"] <= 1
    assert not (tmp_path / "large").exists()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 8 * MIB
    assert [gap for gap in gaps if "memory" not in gap] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_destination_without_room_is_not_written(tmp_path: Path) -> None:
    gaps: list[str] = []
    with small_disk(tmp_path, "size=20m"):
        fd = os.open(tmp_path, os.O_RDONLY)
        found = disk.measure_dest(fd, os.fsencode(tmp_path), b"x", 1.0, 1 << 30, "sha256", gaps.append)
        os.close(fd)
        assert list(tmp_path.iterdir()) == []
    assert found == {**disk.unmeasured(), "note": "in memory (tmpfs)"}
    assert "too little free room" in gaps[0]


@pytest.mark.parametrize(
    ("kind", "source", "note"),
    [
        ("ext4", "/dev/sda1", ""),
        ("nfs4", "nas:/export", "network file system (nfs4)"),
        ("fuse.sshfs", "me@nas:", "FUSE (fuse.sshfs)"),
        ("tmpfs", "tmpfs", "in memory (tmpfs)"),
        ("zfs", "", "ZFS, whose pool cannot be asked"),
    ],
)
def test_the_file_system_is_named_where_it_matters(
    monkeypatch: pytest.MonkeyPatch, kind: str, source: str, note: str
) -> None:
    monkeypatch.setattr(disk, "_mount_of", lambda _path: Mount("0:99", "/", "/", kind, frozenset(), source))
    meter = disk.BusyMeter(b"/")
    with meter.call():
        pass
    assert meter.note() == note
    assert meter.share()[1] is False


def test_a_device_is_as_busy_as_the_kernel_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = tmp_path / "stat"
    counts.write_text("1 0 8 0 1 0 8 0 0 100 100")
    monkeypatch.setattr(disk, "_stat_file", lambda _mount: str(counts))
    meter = disk.BusyMeter(os.fsencode(tmp_path))
    counts.write_text("1 0 8 0 1 0 8 0 0 900000 100")
    assert meter.share() == (1.0, True)
