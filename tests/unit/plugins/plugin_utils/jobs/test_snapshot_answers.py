# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers about snapshots: honest ones, and those of a hostile repository host."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import actions
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.snapshot_answers import (
    parse_answer,
    parse_problems,
    parse_snapshots,
)
from hypothesis import given, strategies

NAME, TIME = "2026-11-21T173009Z", "2026-11-21T17:30:09Z"
ONE: dict[str, Any] = {"name": NAME, "state": "complete", "time": TIME, "age": 5, "reason": ""}
JSON = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | strategies.floats() | strategies.text(),
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(strategies.text(), inner, max_size=3),
    max_leaves=8,
)
MEMBERS = ["path", "link_dest", "resumed", "name", "figures", "snapshots", "kept", "removed", "checked", "sound"]


def test_a_list_of_the_module_is_understood(tmp_path: Any) -> None:
    (tmp_path / "web1/data/.unfinished/data").mkdir(parents=True)
    (tmp_path / "web1/data" / NAME / "data").mkdir(parents=True)
    holders = actions.Holders(lambda _path: None, lambda _path: None)
    done = actions.do_action("list", (str(tmp_path), "web1", "data"), {}, holders)
    answer = parse_answer({**done.result, "warnings": []})
    listed = answer["snapshots"]
    room = os.statvfs(tmp_path)
    assert answer["space"]["bytes_total"] == room.f_blocks * room.f_frsize > answer["space"]["bytes_free"] > 0
    assert [(one["name"], one["state"]) for one in listed] == [(NAME, "complete"), (".unfinished", "unfinished")]


def test_the_room_of_a_job_without_a_folder_is_that_of_its_repository(tmp_path: Any) -> None:
    holders = actions.Holders(lambda _path: None, lambda _path: None)
    done = actions.do_action("list", (str(tmp_path), "web1", "data"), {}, holders, dry=True)
    assert done.result["snapshots"] == [] and done.result["space"]["bytes_free"] > 0


@pytest.mark.parametrize("space", [5, {"bytes_free": "5"}, {"bytes_free": -1}, {"bytes_total": 1 << 70}])
def test_room_that_cannot_be_is_refused(space: object) -> None:
    with pytest.raises(WrongShape):
        parse_answer({"space": space, "warnings": []})


def test_room_that_is_not_known_and_what_else_is_said_of_it_are_left_out() -> None:
    space = {"bytes_free": 5, "files_free": None, "x\x1b": 1}
    assert parse_answer({"space": space, "warnings": []})["space"] == {"bytes_free": 5}


@pytest.mark.parametrize(
    "value",
    [
        [1, {}],
        {},
        "x",
        [{**ONE, "name": "../../etc"}],
        [{**ONE, "name": "../x", "state": "unfinished"}],
        [{**ONE, "name": NAME, "state": "unfinished"}],
        [{**ONE, "state": "aside"}],
        [{**ONE, "time": "9999-99-99T99:99:99Z"}],
        [{**ONE, "state": ["complete"]}],
        [{**ONE, "time": "| <b>"}],
        [{**ONE, "age": "5"}],
        [{**ONE, "verified": "yesterday"}],
        [{**ONE, "age": True}],
    ],
)
def test_what_is_no_list_of_snapshots_is_refused(value: object) -> None:
    with pytest.raises(WrongShape):
        parse_snapshots(value)


def test_a_count_that_no_host_has_is_refused() -> None:
    with pytest.raises(WrongShape, match="figures has a number that cannot be"):
        parse_answer({"figures": {"bytes": 10**400}, "warnings": []})


def test_what_is_shown_is_harmless_and_what_is_used_stays() -> None:
    path = "/srv/a\rb/\x1b/data"
    said = {"path": path, "link_dest": [path], "warnings": ["\x1b[2J"], "snapshots": [{**ONE, "reason": "\x1b"}]}
    kept = parse_answer(said)
    assert (kept["path"], kept["link_dest"]) == (path, [path])
    assert kept["warnings"] == ["\\x1b[2J"] and kept["snapshots"][0]["reason"] == "\\x1b"


@given(strategies.dictionaries(strategies.sampled_from([*MEMBERS, "warnings", "changed"]), JSON))
def test_whatever_an_answer_is_only_its_shape_is_complained_about(values: dict[str, Any]) -> None:
    with contextlib.suppress(WrongShape):
        parse_answer(values)


@given(JSON)
def test_problems_are_texts(value: object) -> None:
    with contextlib.suppress(WrongShape):
        parse_problems(value)
