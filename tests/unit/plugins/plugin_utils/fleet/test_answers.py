# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What hosts say of their transfers, honest or not."""

from __future__ import annotations

import json

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.answers import parse_answer

TRANSFER = {
    "id": "5f3c0d2a9b17e846",
    "side": "source",
    "part": "drive",
    "method": "rsync",
    "peer": "new",
    "root": "/srv/data",
    "state": "running",
    "pid": 7,
    "started": 100.0,
    "updated": 195.0,
    "paused": False,
    "bwlimit": 0,
    "failure": "",
    "progress": {"phase": "transfer", "bytes_done": 5, "bytes_total": 10, "files_done": 1, "files_total": 2},
    "rate": 2.5,
}


def answer(**changes):
    return {"now": 200.0, "transfers": [{**TRANSFER, **changes}]}


def test_an_honest_answer():
    (one,) = parse_answer("old", answer()).transfers
    assert (one.host, one.id, one.side, one.method, one.peer) == ("old", "5f3c0d2a9b17e846", "source", "rsync", "new")
    assert (one.bytes_done, one.bytes_total, one.files_done, one.files_total) == (5, 10, 1, 2)
    assert one.runs and one.age == 5.0 and one.rate == 2.5


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "../../etc"},
        {"id": "a" * 65},
        {"id": 'x"} 1\nfoo{a="'},
        {"side": "both"},
        {"part": "lead"},
        {"state": "splendid"},
        {"state": ["running"]},
        {"paused": 1},
        {"updated": float("nan")},
        {"updated": "now"},
        {"rate": float("inf")},
        {"progress": [1]},
        {"progress": {"bytes_done": "much"}},
        {"progress": {"bytes_done": True}},
        {"failure": None},
    ],
    ids=str,
)
def test_what_is_not_as_it_must_be_is_refused(changes):
    with pytest.raises(ValueError, match="old returned no list of transfers"):
        parse_answer("old", json.loads(json.dumps(answer(**changes))))


@pytest.mark.parametrize("value", [None, [], "x", {}, {"now": 1.0}, {"now": 1.0, "transfers": [1]}])
def test_what_is_no_answer_is_refused(value):
    with pytest.raises(ValueError, match="old returned no list"):
        parse_answer("old", value)


def test_a_host_that_names_too_many_is_refused():
    with pytest.raises(ValueError, match="20000 transfers"):
        parse_answer("old", {"now": 1.0, "transfers": [TRANSFER] * 20_000})


def test_texts_and_numbers_are_bounded_and_harmless():
    huge = {"bytes_done": -5, "bytes_total": 10**30, "files_done": 0, "files_total": 1}
    lies = answer(failure="\x1b[2Jno\nspace\u202e" + "x" * 5000, root="/a\udcff", progress=huge, rate=-1.0)
    (one,) = parse_answer("old", lies).transfers
    assert one.failure.startswith("\\x1b[2Jno space\\u202exx") and len(one.failure) == 1000
    assert one.root == "/a\\udcff"
    assert (one.bytes_done, one.bytes_total, one.rate) == (0, 2**63 - 1, 0.0)


def test_a_clock_that_was_set_back_makes_no_figure_younger_than_now():
    (one,) = parse_answer("old", answer(updated=900.0)).transfers
    assert one.age == 0.0


def test_records_are_found_by_their_ids_which_are_ids():
    record = {"id": "aa", "age": 1.0, "record": {"phase": "seed"}}
    assert parse_answer("old", {**answer(), "records": [record]}).records == {"aa": record}
    with pytest.raises(ValueError, match="id is"):
        parse_answer("old", {**answer(), "records": [{**record, "id": "../x"}]})
