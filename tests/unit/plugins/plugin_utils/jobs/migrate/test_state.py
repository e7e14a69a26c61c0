# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""States are read as they were written, also those of the version before, and damaged ones are refused."""

from __future__ import annotations

import copy
import dataclasses
import json
import random
import typing
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.typed_json import dump_dataclass, parse_dataclass
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.phases import Phase, Step, decide
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import (
    MigrationState,
    Stage,
    firmness,
    parse_state,
    summary_of,
)

# By when they were written: files that the version before this one wrote.
BEFORE: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("states_before.json").read_text())
CUTOVER = (Step.PREFLIGHT, Step.SYNC, Step.CUTOVER, Step.SWITCH, Step.VERIFY)


def lacking(written: object, known: object, where: str = "") -> list[str]:
    """Return what ``written`` has not of ``known``. A member that is null may be absent."""
    if isinstance(known, dict) and isinstance(written, dict):
        missing = [f"{where}.{name}" for name, one in known.items() if one is not None and name not in written]
        return missing + [
            one for name in known if name in written for one in lacking(written[name], known[name], f"{where}.{name}")
        ]
    if isinstance(known, list) and isinstance(written, list) and len(known) == len(written):
        return [one for old, new in zip(known, written) for one in lacking(new, old, f"{where}[]")]
    return [] if known == written else [f"{where}: {known!r} became {written!r}"]


@pytest.mark.parametrize("name", BEFORE)
def test_a_file_of_the_version_before_is_written_with_the_same_keys_and_values(name: str):
    assert lacking(parse_state(BEFORE[name]).dump(), BEFORE[name]) == []


@pytest.mark.parametrize(
    ("name", "stage", "steps"),
    [
        ("preflight", Stage.SERVING, (Step.PREFLIGHT, Step.SEED, *CUTOVER[1:])),
        ("failed in the first copy", Stage.SERVING, (Step.PREFLIGHT, Step.SEED, *CUTOVER[1:])),
        ("synced", Stage.SERVING, CUTOVER),
        ("in a hook", Stage.STOPPED, CUTOVER),
        ("stopped", Stage.STOPPED, CUTOVER),
        ("differs", Stage.STOPPED, CUTOVER),
        ("back in service", Stage.SERVING, CUTOVER),
        ("rehearsed", Stage.SERVING, CUTOVER),
        ("switching", Stage.SWITCHING, (Step.SWITCH,)),
        ("switching, a hook has run", Stage.SWITCHING, (Step.SWITCH,)),
        ("switched", Stage.SWITCHED, ()),
    ],
)
def test_a_run_goes_on_where_the_version_before_stopped(name: str, stage: Stage, steps: tuple[Step, ...]):
    state = parse_state(BEFORE[name])
    assert state.stage is stage and decide(state, Phase.CUTOVER).steps == steps


def test_what_only_the_version_before_wrote_is_dropped():
    state = {**BEFORE["synced"], "of another version": 1}
    assert "of another version" not in parse_state(state).dump()


def members(value: object, path: tuple[str | int, ...] = ()) -> typing.Iterator[tuple[str | int, ...]]:
    """Yield the path of each member."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield from members(one, (*path, name))


@pytest.mark.parametrize("name", ["switched", "differs", "in a hook", "in a group", "rehearsed"])
@pytest.mark.parametrize("damage", [["torn"], {"torn": ["x"]}], ids=["a list", "an object"])
def test_a_damaged_file_is_refused_and_never_raises_anything_else(name: str, damage: Any):
    """Each member in its turn has another type."""
    refused = 0
    for path in members(BEFORE[name]):
        state = copy.deepcopy(BEFORE[name])
        inner: Any = state
        for one in path[:-1]:
            inner = inner[one]
        inner[path[-1]] = damage
        try:
            parse_state(state)
        except WrongShape as error:
            assert "state" in str(error)
            refused += 1
    assert refused > 20


@pytest.mark.parametrize("value", [None, [], "x", 1, {}, {"name": "data"}, {"identity": {}}, {"name": 1}])
def test_what_is_no_state_is_refused(value: object):
    with pytest.raises(WrongShape, match="state"):
        parse_state(value)


@pytest.mark.parametrize("without", ["name", "identity"])
def test_what_a_state_must_have(without: str):
    with pytest.raises(WrongShape, match=f"the state has no {without}"):
        parse_state({name: value for name, value in BEFORE["synced"].items() if name != without})


def test_a_truth_value_is_no_number_and_a_whole_number_may_be_a_fraction():
    seed = {**BEFORE["synced"]["phases"]["seed"], "duration": 3}
    read = parse_state({**BEFORE["synced"], "phases": {"seed": seed}})
    assert read.phases.seed and read.phases.seed.duration == 3.0
    for wrong in ({"duration": True}, {"files_total": True}, {"changed": 1}, {"files_total": 1.5}):
        with pytest.raises(WrongShape):
            parse_state({**BEFORE["synced"], "phases": {"seed": {**seed, **wrong}}})


def invent(declared: Any, dice: random.Random) -> Any:
    """Return some value of a type."""
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if type(None) in arguments:
        inner = next(one for one in arguments if one is not type(None))
        return None if dice.random() < 0.3 else invent(inner, dice)
    if dataclasses.is_dataclass(declared):
        hints = typing.get_type_hints(declared)
        return declared(**{one.name: invent(hints[one.name], dice) for one in dataclasses.fields(declared)})
    if isinstance(declared, type) and issubclass(declared, Enum):
        return dice.choice(list(declared))
    if origin is list:
        return [invent(arguments[0], dice) for _number in range(dice.randrange(3))]
    if origin is not None:
        return {str(number): invent(arguments[1], dice) for number in range(dice.randrange(3))}
    some = {bool: dice.random() < 0.5, int: dice.randrange(2**63), float: dice.random(), str: dice.choice(["", "é\n"])}
    return some.get(declared, dice.choice(["x", 1, ["y"]]))


@pytest.mark.parametrize("seed", range(30))
def test_any_state_is_read_as_it_was_written(seed: int):
    state = invent(MigrationState, random.Random(seed))
    written = json.loads(json.dumps(state.dump()))
    assert parse_state(written) == state and parse_state(written).dump() == written


@dataclasses.dataclass
class Inner:
    """Something inside."""

    number: int = 1


@dataclasses.dataclass
class Outer:
    """Something with a member of another name."""

    needed: str
    inner: Inner | None = None
    since: str = dataclasses.field(default="", metadata={"key": "from"})


def test_names_and_defaults_of_members():
    read = parse_dataclass(Outer, {"needed": "x", "from": "y", "more": 1, "inner": {}}, "it")
    assert read == Outer("x", None, "y")
    assert dump_dataclass(read) == {"needed": "x", "from": "y"}
    with pytest.raises(WrongShape, match="number of inner of it is no int"):
        parse_dataclass(Outer, {"needed": "x", "inner": {"number": "1"}}, "it")
    with pytest.raises(WrongShape, match="it has no needed"):
        parse_dataclass(Outer, {}, "it")


@pytest.mark.parametrize(
    ("name", "reset", "firm"),
    [("synced", False, None), ("synced", True, False), ("stopped", True, True), ("switching", False, True),
     ("switched", False, False)],
)  # fmt: skip
def test_the_lease_of_a_job_whose_source_may_be_stopped_does_not_expire(name: str, reset: bool, firm: bool | None):
    assert firmness(parse_state(BEFORE[name]), reset) is firm


def test_a_fresh_state_belongs_to_its_trees():
    job = {"name": "data", "src_host": "old", "src": "/srv/", "dest_host": "new", "dest": "/srv.from-new"}
    state = MigrationState.fresh(job)
    assert vars(state.identity) == {name: job[name] for name in ("src_host", "src", "dest_host", "dest")}
    assert state.is_back and state.stage is Stage.SERVING and not state.passes


@pytest.mark.parametrize(
    ("bottleneck", "kept"),
    [
        ({"name": "source_disk", "sentence": "It was slow."}, "It was slow."),
        ({"name": "none", "sentence": "Nothing was sent."}, ""),
        (None, ""),
    ],
)
def test_the_sentence_on_a_bottleneck_is_kept_of_a_transfer(bottleneck: Any, kept: str) -> None:
    summary = summary_of({"bottleneck": bottleneck, "files_total": 5}, "2026-01-01T01:00:00Z")
    assert (summary.bottleneck, summary.files_total) == (kept, 5)
    assert parse_dataclass(type(summary), dump_dataclass(summary), "a summary") == summary
