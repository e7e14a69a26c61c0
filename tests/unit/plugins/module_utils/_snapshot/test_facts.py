# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lies beside a snapshot is read, whichever version wrote it, and written as it always was."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.atomic_io import read_json, write_json
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.facts import (
    CheckRecord,
    ContentCheckTimes,
    Figures,
    Finding,
    parse_checked,
    parse_facts,
)

# As version 0.1.0 wrote them.
COMPLETE = """\
{
 "algorithm": "blake2b",
 "aside": "",
 "base": "2026-11-20T173009Z",
 "before": 3,
 "bytes": 4711,
 "entries": 7,
 "files": 5,
 "finished": 1795282300,
 "format": 1,
 "gone": 1,
 "host": "web1",
 "job": "www",
 "new_bytes": 11,
 "new_files": 2,
 "origin": "transfer",
 "run": "0123456789abcdef",
 "time": 1795282209,
 "unreadable": 0
}
"""
UNFINISHED = """\
{
 "adopted": "daily.3",
 "base": "",
 "format": 1,
 "host": "web1",
 "job": "www",
 "origin": "rsnapshot",
 "run": "adopt daily.3",
 "time": 1795282209
}
"""
CHECKED = """\
{
 "checked": 1795282400,
 "damaged": [
  "a/b"
 ],
 "level": "contents",
 "shares": {
  "of": 12,
  "times": {
   "10": 1795282400,
   "9": 1795282300
  }
 },
 "verified": null
}
"""
NEVER_READ = """\
{
 "checked": 1795282400,
 "damaged": [],
 "level": "structure",
 "shares": {},
 "verified": null
}
"""


@pytest.mark.parametrize(
    "text, parse",
    [(COMPLETE, parse_facts), (UNFINISHED, parse_facts), (NEVER_READ, parse_checked)],
)
def test_what_an_earlier_version_wrote_is_written_the_same(tmp_path, text, parse):
    (tmp_path / "old").write_text(text)
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        write_json(fd, "new", read_json(fd, "old", parse).dump())
    finally:
        os.close(fd)
    assert (tmp_path / "new").read_text() == text


def test_members_have_their_places(tmp_path):
    (tmp_path / "a").write_text(COMPLETE)
    (tmp_path / "b").write_text(CHECKED)
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        facts, checked = read_json(fd, "a", parse_facts), read_json(fd, "b", parse_checked)
    finally:
        os.close(fd)
    assert facts.figures == Figures(7, 5, 4711, 2, 11, 1, 3, 0) and (facts.aside, facts.adopted) == ("", None)
    assert checked == CheckRecord(
        1795282400,
        "contents",
        None,
        ContentCheckTimes(12, {10: 1795282400, 9: 1795282300}),
        (Finding("damaged", "a/b"),),
    )
    assert parse_checked(checked.dump()) == checked


def test_what_a_version_did_not_count_is_not_known():
    facts = parse_facts({"format": 1, "time": 5, "finished": 6, "entries": 7, "later": {"member": 1}})
    assert facts.figures == Figures(entries=7) and facts.figures.dump() == {"entries": 7}
    assert parse_checked({}) == CheckRecord()


@pytest.mark.parametrize(
    "parse, value, said",
    [
        (parse_facts, [], r"the file is \[\], and an object is expected"),
        (parse_facts, {"format": 1}, "time is None"),
        (parse_facts, {"time": 5, "base": 7}, "base is 7"),
        (parse_facts, {"time": 5, "entries": "7"}, "entries is '7'"),
        (parse_checked, {"damaged": "a"}, "damaged is 'a'"),
        (parse_checked, {"shares": {"of": 7}}, "times is None"),
        (parse_checked, {"shares": {"of": 7, "times": {"0": "x"}}}, "0 is 'x'"),
    ],
)
def test_damage_is_told_by_name(parse, value, said):
    with pytest.raises(WrongShape, match=said):
        parse(value)
