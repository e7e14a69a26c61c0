# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A tree divided among several rsyncs: all of it, each once, link groups together, evenly."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.shards import (
    BIG,
    Lists,
    SourceEntry,
    decode_lists,
    divide,
    encode_lists,
    list_source,
)
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import settings as plan
from hypothesis import given, settings
from hypothesis import strategies as st

PATHS = st.binary(min_size=1, max_size=20).filter(lambda path: b"\0" not in path)
ENTRIES = st.lists(
    st.builds(
        SourceEntry,
        PATHS,
        st.booleans(),
        st.one_of(st.integers(0, 10_000), st.integers(BIG, BIG * 20)),
        st.one_of(st.none(), st.tuples(st.just(7), st.integers(0, 5))),
    ),
    unique_by=lambda entry: entry.path,
    max_size=80,
)


@settings(max_examples=60, deadline=None)
@given(entries=ENTRIES, count=st.integers(1, 6))
def test_everything_is_in_one_list(tmp_path_factory, entries, count):
    folder = tmp_path_factory.mktemp("lists")
    lists = divide(entries, count, str(folder))
    found = {}
    for path in lists.shards:
        for name in names(path):
            assert name not in found
            found[name] = path
    files = [entry for entry in entries if not entry.is_directory]
    assert sorted(found) == sorted(entry.path for entry in files)
    assert names(lists.directories) == [entry.path for entry in entries if entry.is_directory]
    assert (lists.files, lists.bytes) == (len(files), sum(entry.size for entry in files))
    for link in {entry.link for entry in files if entry.link}:
        assert len({found[entry.path] for entry in files if entry.link == link}) == 1
    assert len(lists.shards) <= count


def names(path: str) -> list[bytes]:
    with open(path, "rb") as stream:
        entries = stream.read().split(b"\0")[:-1]
    assert all(entry.startswith(b"./") for entry in entries)
    return [entry[2:] for entry in entries]


def test_big_files_are_spread(tmp_path):
    entries = [SourceEntry(b"%d" % number, False, BIG * (number + 1)) for number in range(9)]
    lists = divide(entries, 3, str(tmp_path))
    loads = [sum(BIG * (int(name) + 1) for name in names(path)) for path in lists.shards]
    assert max(loads) - min(loads) <= 2 * BIG


def test_what_may_travel_is_listed(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "two\nlines").write_text("xyz")
    (tmp_path / "skip.tmp").write_text("")
    os.link(tmp_path / "a" / "two\nlines", tmp_path / "other")
    entries = list(list_source(os.fsencode(tmp_path), plan(rules=["- *.tmp"])))
    assert sorted(entry.path for entry in entries) == [b"", b"a", b"a/two\nlines", b"other"]
    assert entries[-1].link == next(entry.link for entry in entries if entry.path == b"a/two\nlines")


def test_what_the_other_end_says_of_its_lists_is_whole_or_refused():
    lists = Lists("/job/lists/directories", ["/job/lists/shard-0", "/job/lists/shard-2"], 7, 4096)
    said = encode_lists(lists)
    assert decode_lists(said, "/far") == Lists(":/far/directories", [":/far/shard-0", ":/far/shard-2"], 7, 4096)
    for length in range(len(said) - 1):
        with pytest.raises(ValueError, match="did not say"):
            decode_lists(said[:length], "/far")
    for wrong in (b"[]", b'{"shards": 3, "files": 1, "bytes": 1}', b'{"shards": [], "files": 1e999, "bytes": 1}'):
        with pytest.raises(ValueError, match="did not say"):
            decode_lists(wrong, "/far")
    foreign = b'{"shards": ["../x", "shard-1", "directories"], "files": 1, "bytes": 1}'
    assert decode_lists(foreign, "/far").shards == [":/far/shard-1"]
