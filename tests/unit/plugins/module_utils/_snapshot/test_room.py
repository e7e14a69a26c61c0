# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The room that a backup must leave, and a repository that has less."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.actions import Holders, do_action
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Busy, Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.room import (
    LeastFree,
    Room,
    explain_too_full,
    find_room,
    parse_least_free,
)

NOBODY = Holders(lambda _path: None, lambda _path: None)
TIB = 1 << 40


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("50G", LeastFree(50 << 30)),
        ("1048576", LeastFree(1 << 20)),
        ("10%", LeastFree(percent=10.0)),
        (" 2.5 % ", LeastFree(percent=2.5)),
        ("0", LeastFree()),
    ],
)
def test_what_must_be_free_is_read(text, least):
    assert parse_least_free(text) == least


@pytest.mark.parametrize("text", ["100%", "-1%", "ten", "10 G%", "5X", "%"])
def test_what_is_neither_bytes_nor_per_cent_is_refused(text):
    with pytest.raises(Refused, match=r"min_free is '.*Write"):
        parse_least_free(text)


@pytest.mark.parametrize(
    ("room", "least", "reason"),
    [
        (Room(TIB, TIB // 4, 1000, 500), LeastFree(percent=25.0), ""),
        (Room(TIB, TIB // 4 - 1, 1000, 500), LeastFree(percent=25.0), "256.0 GiB of 1.0 TiB are free"),
        (Room(TIB, TIB // 2, 1000, 99), LeastFree(percent=10.0), "99 of 1000 inodes are free, and 100 must be"),
        (Room(TIB, TIB // 2, None, None), LeastFree(percent=10.0), ""),
        (Room(TIB, TIB // 2, 1000, 0), LeastFree(bytes=TIB // 2), ""),
        (Room(TIB, 0, None, None), LeastFree(bytes=1), "0 B of 1.0 TiB are free, and 1 B must be"),
        (Room(TIB, TIB, 0, 0), LeastFree(bytes=2 * TIB), "all of it is 1.0 TiB, so 2.0 TiB can never be free"),
        (Room(TIB, 0, 0, 0), LeastFree(), ""),
    ],
)  # fmt: skip
def test_a_file_system_is_too_full_by_bytes_or_inodes(room, least, reason):
    assert explain_too_full(room, least).startswith(reason) and bool(explain_too_full(room, least)) == bool(reason)


def test_nothing_is_begun_where_too_little_is_free(bench):
    place = (str(bench.repository), "web1", "data")
    free = find_room(bench.repository)
    assert free.bytes_total == os.statvfs(bench.repository).f_blocks * os.statvfs(bench.repository).f_frsize
    for dry in (True, False):
        with pytest.raises(Refused, match=r"too full: .* are free.*\(min_free is 99%\)"):
            do_action("begin", place, {"run": "one", "min_free": "99%"}, NOBODY, dry)
        assert list(bench.repository.iterdir()) == []
    assert do_action("begin", place, {"run": "one", "min_free": "1"}, NOBODY).result["changed"]


def test_what_was_begun_goes_on_although_too_little_is_free(bench):
    place = (str(bench.repository), "web1", "data")

    def begin(run, holders=NOBODY, **options):
        return do_action("begin", place, {"run": run, "min_free": "99%", **options}, holders).result

    do_action("begin", place, {"run": "one"}, NOBODY)
    assert begin("one")["resumed"]
    with pytest.raises(Refused, match="too full"):
        begin("two")
    writing = Holders(lambda _path: "a transfer", lambda _path: None)
    with pytest.raises(Busy):
        begin("two", writing)
    assert begin("two", writing, takeover=True)["resumed"]
    bench.path(names.UNFINISHED, "data/file").touch()
    do_action("finish", place, {"run": "two"}, NOBODY)
    assert begin("two")["finished"]
    with pytest.raises(Refused, match="too full"):
        begin("three")
