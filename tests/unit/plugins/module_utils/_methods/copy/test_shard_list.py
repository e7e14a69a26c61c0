# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the session tells the SFTP servers: which files a shard has, for as long as it is under way."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy.shard_list import (
    ServedFile,
    ShardLists,
    dump,
    parse,
)
from hypothesis import given
from hypothesis import strategies as st

paths = st.binary(min_size=1, max_size=40).filter(lambda path: b"\0" not in path)


@given(st.dictionaries(st.integers(0, 10**9), st.builds(ServedFile, paths, st.integers(0, 2**63))))
def test_a_list_is_read_as_it_was_written(files):
    assert parse(dump(files.items())) == files


def test_a_shard_is_there_from_its_announcement_until_it_is_removed(tmp_path):
    told = ShardLists(str(tmp_path))
    asked = object.__new__(ShardLists)  # another process has the folder open
    asked.__dict__.update(told.__dict__)
    assert asked.read(3) == {}
    told.write(3, [(0, ServedFile(b"a b/\n", 7))])
    assert asked.read(3) == {0: ServedFile(b"a b/\n", 7)}
    told.write(3, [(1, ServedFile(b"c", 8))])
    assert asked.read(3) == {1: ServedFile(b"c", 8)}
    told.write(4, [])
    assert asked.read(4) == {} and asked.read(3) == {1: ServedFile(b"c", 8)}
    told.remove(3)
    told.remove(3)
    assert asked.read(3) == {}


def test_what_an_earlier_job_left_is_gone(tmp_path):
    ShardLists(str(tmp_path)).write(3, [(0, ServedFile(b"a", 7))])
    assert ShardLists(str(tmp_path)).read(3) == {}


def test_a_folder_that_is_replaced_tells_nothing(tmp_path):
    lists = ShardLists(str(tmp_path))
    lists.write(3, [(0, ServedFile(b"a", 7))])
    os.rename(tmp_path / "shards", tmp_path / "moved")
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / "3").write_bytes(dump([(0, ServedFile(b"evil", 7))]))
    assert lists.read(3) == {0: ServedFile(b"a", 7)}
    os.unlink(tmp_path / "moved" / "3")
    os.symlink(tmp_path / "shards" / "3", tmp_path / "moved" / "3")
    with pytest.raises(OSError, match="symbolic links"):
        lists.read(3)
