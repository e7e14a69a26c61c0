# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``make soak ARGS=scale`` with tiny numbers."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.soak import scale, scale_entries, scale_reconnects, scale_sparse
from ansible_collections.longhaul.fleet.tests.soak.scale import Unexpected

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: needs root")


@pytest.fixture(name="said", autouse=True)
def _said(tmp_path, monkeypatch) -> list[str]:
    """Yield a list of what is said; nothing may be left in the folder of temporary files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said: list[str] = []
    yield said
    assert list(tmp_path.iterdir()) == []
    assert str(tmp_path) not in Path("/proc/mounts").read_text()


@needs_root
@pytest.mark.parametrize("disk", scale.DISKS)
def test_many_entries(said, disk):
    try:
        peaks = scale_entries.run(2500, said.append, disk)
    except subprocess.CalledProcessError as error:
        if disk == "ext4" and error.cmd[0] == "mount":
            pytest.skip("cannot run here: no loop devices")
        raise
    assert min(peaks.values()) > 5 and max(peaks.values()) < scale_entries.MOST
    assert "2500 entries" in said[0]


@needs_root
def test_too_much_memory_is_a_failure(said, monkeypatch):
    monkeypatch.setattr(scale_entries, "MOST", 5)
    assert scale.run("entries", 50, 1, 1, said.append) == 1
    assert re.search("FAILED: the (source|dest) needed", said[-1])


@pytest.mark.parametrize("size", [64 << 20, 1 << 36])
def test_a_sparse_file(said, size):
    assert scale_sparse.run(size, said.append) <= 2 << 20


def test_a_dense_copy_is_a_failure(tmp_path):
    with scale.trees() as made:
        for folder in (made.source, made.dest):
            scale_sparse._make(folder / "image", 64 << 20)
        assert len(scale_sparse.data(made.source / "image")) == 4
        with open(made.dest / "image", "r+b") as file:
            file.write(bytes(4096))
        assert len(scale_sparse.data(made.dest / "image")) == 5


def test_connections_that_break(said):
    size, passed = scale_reconnects.run(3, said.append)
    assert passed > size


def test_a_tree_that_differs_is_a_failure():
    with scale.trees() as made:
        for folder in (made.source, made.dest):
            scale_entries._make(folder, 20)
        path = made.dest / "0000/000000/0003"
        path.unlink()
        with pytest.raises(Unexpected, match="other names"):
            scale_entries._compare(os.fsencode(made.source), os.fsencode(made.dest))
