# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A tree is counted, or extrapolated, and a sample is taken of its files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._benchmark import tree
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.dirfd import Root

MIB = 1 << 20


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Iterator[int]:
    for number in range(10):
        folder = tmp_path / f"folder{number}"
        folder.mkdir()
        for name in range(9):
            (folder / f"file{name}").write_bytes(b"log line " * 100)
    (tmp_path / "folder0/large").write_bytes(os.urandom(2 * MIB))
    os.link(tmp_path / "folder0/large", tmp_path / "folder1/again")
    with open(tmp_path / "sparse", "wb") as sparse:
        sparse.truncate(64 * MIB)
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


def test_a_tree_is_counted_with_links_once_and_without_holes(root: int) -> None:
    found = tree.survey(root, [], False, 10.0)
    assert found.counted == {
        "entries": 1 + 10 + 90 + 3,
        "files": 92,
        "bytes_apparent": 90 * 900 + 66 * MIB,
        "bytes_on_disk": 90 * 900 + 2 * MIB,
        "large_bytes": 2 * MIB,
        "is_complete": True,
    }
    assert [file.path for file in found.large] == [b"folder0/large"]
    assert len(found.small) == 90
    assert found.rate > 0
    assert found.unreadable == 0


def test_rules_leave_out_and_one_name_is_enough(root: int) -> None:
    assert tree.survey(root, ["- /folder*"], False, 10.0).counted["entries"] == 2
    assert tree.survey(root, [], False, 10.0, b"sparse").counted["files"] == 1


def test_a_tree_that_takes_too_long_is_extrapolated(root: int) -> None:
    found = tree.survey(root, [], False, 0.0)
    assert found.counted["is_complete"] is False
    assert 70 <= found.counted["entries"] <= 140


@pytest.mark.parametrize(
    ("path", "part"),
    [(b"", 0.0), (b"a", 0.0), (b"b", 0.5), (b"b/x", 0.5), (b"b/y", 0.75), (b"b/gone", 0.5), (b"b/y/z", 0.75)],
)
def test_the_place_of_an_entry_says_which_part_came_before(path: bytes, part: float) -> None:
    folders = {b"": [b"b", b"a"], b"b": [b"y", b"x"], b"b/y": [b"z"]}
    assert tree.part_before(path, lambda folder: folders.get(folder, [])) == part


@pytest.mark.parametrize(
    ("part", "most", "entries"), [(0.25, 0, 400), (0.25, 300, 300), (0.25, 50, 100), (0.0, 0, 10**8), (1.0, 0, 100)]
)
def test_extrapolation_has_bounds(part: float, most: int, entries: int) -> None:
    found = {**dict.fromkeys(("files", "bytes_apparent", "bytes_on_disk", "large_bytes"), 10), "entries": 100}
    made = tree.extrapolate({**found, "is_complete": False}, part, most)
    assert made["entries"] == pytest.approx(entries)
    assert made["files"] == pytest.approx(entries / 10)
    assert not made["is_complete"]


def test_a_sample_has_the_share_of_large_files(root: int) -> None:
    found = tree.survey(root, [], False, 10.0)
    with Root(root) as opened:
        text = tree.take_sample(opened, found.large, found.small, 0.0)
        noise = tree.take_sample(opened, found.large, [], 1.0)
        gone = tree.take_sample(opened, [tree.ChosenFile(b"gone", 5)], [], 1.0)
    assert len(text) == 90 * 900
    assert tree.ratio_of(text) < 0.1
    assert len(noise) == 2 * MIB  # one file alone gives more of it
    assert tree.ratio_of(noise) > 0.99
    assert gone == b""
    assert tree.ratio_of(gone) == 1.0


@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.0])
def test_made_data_compress_as_they_are_meant_to(ratio: float) -> None:
    made = tree.made_like(ratio, MIB + 5)
    assert len(made) == MIB + 5
    assert tree.ratio_of(made) == pytest.approx(ratio, abs=0.05)
