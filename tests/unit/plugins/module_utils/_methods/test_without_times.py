# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Transfers that do not preserve times: a changed file of the same size is never left as it was."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support import rsync_pair
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ALL, Pair, settings
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.small_tree import make_tree

OLD = 10**18
NO_TIMES = [name for name in ALL if name != "times"]


@pytest.fixture(name="transfer", params=["stream", "tar_nc", "scp", "sftp", "rsync"])
def _transfer(request, tmp_path: Path):
    """Return what runs one transfer from ``source`` to ``dest``, which are there."""
    over = rsync_pair.Pair(tmp_path)

    def run(dest: Path = over.dest, **changes: Any) -> dict[str, Any]:
        plan = {"preserve": NO_TIMES, **changes}
        if request.param == "rsync":
            return over.over_shell(**plan).as_dict()
        pair = Pair(tmp_path / "work", over.source, dest, settings(request.param, encrypt=False, **plan))
        if request.param in ("scp", "sftp"):
            pair.use_ssh()
        return pair.run()

    run.method = request.param
    return run


def fill(path: Path, text: bytes, when: int) -> None:
    path.write_bytes(text)
    os.utime(path, ns=(when, when))


@pytest.mark.often(3)
def test_a_file_of_the_same_size_and_another_time_is_not_left_as_it_was(tmp_path, transfer):
    source, dest = tmp_path / "source", tmp_path / "dest"
    for name, text in (("small", b"new!"), ("large", b"n" * 300_000)):
        fill(source / name, text, OLD)
        fill(dest / name, b"o" * len(text), OLD + 10**9)
    os.link(source / "small", source / "z")
    predicted = transfer(check=True)
    done = transfer()
    assert done["errors"] == [] and not done["failure"]
    assert [(dest / name).read_bytes() for name in ("small", "large", "z")] == [b"new!", b"n" * 300_000, b"new!"]
    for name in ("files_created", "files_updated", "bytes_sent"):
        assert transfer.method == "rsync" or predicted[name] == done[name]
    if transfer.method != "rsync":
        before = (dest / "small").stat().st_mtime_ns
        again = transfer()
        assert not again["changed"] and again["bytes_sent"] == 0 and again["changes"] == []
        assert (dest / "small").stat().st_mtime_ns == before


def test_only_attributes_of_what_has_the_right_content(tmp_path, transfer):
    source, dest = tmp_path / "source", tmp_path / "dest"
    fill(source / "f", b"same", OLD)
    fill(dest / "f", b"same", OLD + 1)
    (source / "f").chmod(0o640)
    done = transfer()
    assert (dest / "f").stat().st_mode & 0o7777 == 0o640
    if transfer.method != "rsync":
        assert (done["attributes_changed"], done["files_updated"], done["bytes_sent"]) == (1, 0, 0)


@pytest.mark.parametrize("method", ["stream", "tar_nc"])
def test_a_file_of_an_earlier_copy_is_taken_for_its_content(tmp_path, method):
    source, old, dest = (tmp_path / name for name in ("source", "old", "dest"))
    for folder in (source, old, dest):
        folder.mkdir()
    fill(source / "changed", b"new!", OLD)
    fill(old / "changed", b"old!", OLD + 1)
    fill(source / "same", b"same", OLD)
    fill(old / "same", b"same", OLD + 1)
    plan = settings(method, encrypt=False, preserve=NO_TIMES, link_dest=[str(old)])
    done = Pair(tmp_path / "work", source, dest, plan).run()
    assert (dest / "changed").read_bytes() == b"new!" and done["bytes_sent"] == 4
    assert (dest / "same").stat().st_ino == (old / "same").stat().st_ino


@pytest.mark.parametrize("method", ["stream", "tar_nc"])
def test_a_tree_without_times_is_right_at_once(tmp_path, method):
    source, dest = tmp_path / "source", tmp_path / "dest"
    source.mkdir()
    dest.mkdir()
    make_tree(source)
    plan = settings(method, encrypt=False, preserve=NO_TIMES)
    assert Pair(tmp_path / "work", source, dest, plan).run()["errors"] == []
    again = Pair(tmp_path / "work", source, dest, plan).run()
    assert not again["changed"] and again["bytes_sent"] == 0 and again["bytes_matched"] == again["bytes_total"]
