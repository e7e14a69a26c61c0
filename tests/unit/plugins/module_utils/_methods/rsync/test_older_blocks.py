# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""rsync takes unchanged parts of a large file from the ``link_dest`` folders, as the method stream does."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.tests.support.compare import differences, recorded
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import Pair

SIZE, CHANGED = 8 << 20, 1000


@pytest.mark.parametrize(("method", "connect"), [("rsync", "push"), ("rsync", "pull"), ("rsyncd", "pull")])
def test_what_an_older_tree_has_is_not_sent(tmp_path, method, connect):
    pair = Pair(tmp_path)
    content = os.urandom(SIZE)
    older = tmp_path / "older"
    older.mkdir()
    (older / "image").write_bytes(content)
    (pair.source / "image").write_bytes(content[: SIZE // 2] + os.urandom(CHANGED) + content[SIZE // 2 + CHANGED :])
    os.utime(older / "image", (1_000_000_000, 1_000_000_000))
    before = recorded(older)
    try:
        outcome = pair.over(method, connect, link_dest=[str(older)])
        assert (outcome.failure, outcome.errors) == ("", [])
        assert CHANGED <= outcome.bytes_sent <= 50 * CHANGED
        assert outcome.bytes_from_basis == SIZE - outcome.bytes_sent
        assert differences(pair.source, pair.dest) == [] == differences(before, older)
        (pair.dest / "image").unlink()
        whole = pair.over(method, connect, link_dest=[str(older)], delta="none")
        assert (whole.bytes_sent, whole.bytes_from_basis) == (SIZE, 0)
        assert differences(pair.source, pair.dest) == [] == differences(before, older)
    finally:
        pair.close()
