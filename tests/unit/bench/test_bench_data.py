# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The benchmark's trees are what its page says they are."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.bench import data, run

MIB = 1 << 20


def test_small_files(tmp_path: Path) -> None:
    data.make_small(tmp_path / "tree", 250)
    files = [path for path in (tmp_path / "tree").rglob("*") if path.is_file()]
    sizes = sorted(path.stat().st_size for path in files)
    assert len(files) == 250 and len(os.listdir(tmp_path / "tree")) == 3
    assert sizes[0] == 0 and sizes[-1] < data.SMALL_MOST
    assert data.tree_size(tmp_path / "tree") == sum(sizes)
    together = b"".join(path.read_bytes() for path in sorted(files))
    assert len(zlib.compress(together)) > 0.99 * len(together)


def test_a_sparse_image_takes_the_room_of_its_data(tmp_path: Path) -> None:
    data.make_sparse(tmp_path / "tree", 48 * MIB)
    status = (tmp_path / "tree/image").stat()
    assert status.st_size == 48 * MIB
    assert 3 * MIB <= status.st_blocks * 512 < 4 * MIB


def test_text_compresses_as_logs_do(tmp_path: Path) -> None:
    data.make_text(tmp_path / "tree", 4 * MIB)
    files = sorted((tmp_path / "tree").iterdir())
    assert len(files) == 4 and data.tree_size(tmp_path / "tree") == 4 * MIB
    content = files[0].read_bytes()
    assert 4 < len(content) / len(zlib.compress(content, 6)) < 5
    assert content[:300].count(b" host ") > 1


def test_entries_are_counted_with_directories_and_the_first_file_is_not_empty(tmp_path: Path) -> None:
    data.make_entries(tmp_path / "tree", 1000)
    found = sorted((tmp_path / "tree").rglob("*"))
    files = [path for path in found if path.is_file()]
    assert len(found) == 1000
    assert files[0].stat().st_size == 1000 and files[1].stat().st_size == 0


@pytest.mark.parametrize("size", [MIB, 10 * MIB + 123])
def test_an_edit_changes_the_share_that_it_says_and_keeps_the_size(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(size))
    said = data.edit(path, 0.01)
    content = path.read_bytes()
    changed = size - content.count(0)
    assert len(content) == size
    assert 0.98 * size * 0.01 < said <= size * 0.01
    assert 0.98 * said < changed <= said  # of random bytes some are what was there


def test_quick_gives_way_to_what_is_said() -> None:
    options = run.options_of(run.parse(["--quick", "--files", "7", "--tools", "scp,iperf3"]))
    assert (options.mib, options.files, options.repeat) == (32, 7, 1)
    assert options.only == {"scp", "iperf3"} and options.large == 32 * MIB
    assert run.options_of(run.parse([])).repeat == 3


def test_the_tree_of_very_many_entries_must_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert "entries" not in run.parse([]).parts
    assert "entries" in run.parse(["--entries", "1000"]).parts
    for wrong, said in ((["--only", "entries"], "--entries 1000000"), (["--only", "lagre"], "no such part: lagre")):
        with pytest.raises(SystemExit):
            run.parse(wrong)
        assert said in capsys.readouterr().err
