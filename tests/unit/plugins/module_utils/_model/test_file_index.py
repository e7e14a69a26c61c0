# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An index finds every file by size and time, and by size and name."""

from __future__ import annotations

import tracemalloc

from ansible_collections.longhaul.fleet.plugins.module_utils._model.file_index import FileIndex
from hypothesis import given
from hypothesis import strategies as st

numbers = st.integers(-(1 << 70), 1 << 70)
files = st.lists(st.tuples(st.integers(0, 1 << 62), numbers, st.binary(max_size=4)), max_size=30)


@given(files, files)
def test_it_finds_what_was_added(first, then):
    index = FileIndex()
    for added in (first, first + then):
        for number in range(index.count, len(added)):
            index.add(*added[number], number)
        for number, (size, time, name) in enumerate(added):
            assert number in index.find(size, time, b"no such name")
            assert number in index.find(size, time + 1, name)
    assert index.count == len(first) + len(then)


def test_time_comes_before_name():
    index = FileIndex()
    index.add(10, 1, b"name", 7)
    index.add(10, 2, b"other", 8)
    assert list(index.find(10, 2, b"name")) == [8, 7]
    assert list(index.find(11, 2, b"name")) == []


def test_a_file_takes_little_memory():
    count = 50_000
    tracemalloc.start()
    index = FileIndex()
    for number in range(count):
        index.add(number, number, b"name", number)
    assert number in index.find(number, number, b"name")
    assert tracemalloc.get_traced_memory()[1] < 20 * count + 200_000
    tracemalloc.stop()
