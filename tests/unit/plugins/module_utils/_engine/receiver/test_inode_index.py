# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which inodes are claimed, and how much memory that takes."""

from __future__ import annotations

import tracemalloc

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.apply import InodeIndex
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5000) | st.integers(0, 2**64 - 1))))
def test_each_is_claimed_once(inodes):
    index, taken = InodeIndex(), set()
    for inode in [*inodes, *inodes]:
        assert index.claim(*inode) == (inode not in taken)
        taken.add(inode)


@pytest.mark.newest
def test_a_large_older_tree_takes_little_memory():
    index = InodeIndex()
    tracemalloc.start()
    try:
        for number in range(200_000):
            index.claim(7, 10_000_000 + 3 * number)
        used, _most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 200_000
