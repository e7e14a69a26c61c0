# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the answers of a repository host about snapshots. Untrusted input. Pure.

Names and times are checked, since they go into reports and file names. Texts that are only shown are made harmless.
Paths are used again, so they stay as they came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import (
    WrongShape,
    as_object,
    list_of,
    member,
    optional,
    texts,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._model.paths import components, unescape
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names

from ..common.host_text import harmless, one_line
from ..common.units import seconds_of

_STATES = ("complete", "aside", "unfinished", "removing")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_LONGEST = 1_000  # characters of a shown text
_MOST = 100_000  # snapshots, rules or counts
_MOST_PATHS = 1_000
_ROOM = ("bytes_total", "bytes_free", "files_total", "files_free")
_LARGEST = 1 << 63  # what is larger counts nothing that a host has


class SnapshotInfo(TypedDict):
    """A snapshot in a list, as far as the control node uses it."""

    name: str
    state: str
    time: str
    age: int
    reason: str  # why it was set aside
    verified: str | None  # when its contents were last found to be intact


class ShownProblem(TypedDict):
    """Something in a snapshot that is not as it was."""

    path: str | None  # None: the snapshot itself
    detail: str
    intact_in: list[str]  # snapshots


def parse_snapshots(value: object) -> list[SnapshotInfo]:
    """Return the snapshots of a list; raise WrongShape if it is none."""
    return [_parse_snapshot(one) for one in list_of(value, "snapshots", dict)]


def parse_answer(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is kept of an answer to any action, each member of its type. Raises WrongShape."""
    kept = {name: parse(values[name], name) for name, parse in _MEMBERS.items() if name in values}
    warnings = [harmless(text)[:_LONGEST] for text in texts(values, "warnings")]
    return {**kept, "changed": optional(values, "changed", bool) or False, "warnings": warnings}


def parse_problems(value: object) -> list[ShownProblem]:
    """Return what a check found, for a report. Raises WrongShape."""
    return [
        {
            "path": None if one.get("path") is None else one_line(member(one, "path", str)),
            "detail": one_line(member(one, "detail", str))[:_LONGEST],
            "intact_in": [_name(name, "intact_in") for name in texts(one, "intact_in")],
        }
        for one in list_of(value, "problems", dict)
    ]


def _parse_snapshot(values: Mapping[str, Any]) -> SnapshotInfo:
    state, name, time = (member(values, one, str) for one in ("state", "name", "time"))
    if state not in _STATES:
        raise WrongShape(f"the state of a snapshot is {state!r}")
    if (name != names.UNFINISHED) if state == "unfinished" else (names.kind_of(name) != state):
        raise WrongShape(f"a snapshot has the state {state} and the name {name!r}")
    try:
        if not _TIME.fullmatch(time):
            raise ValueError
        seconds_of(time)
    except ValueError:
        raise WrongShape(f"the time of a snapshot is {time!r}") from None
    reason = one_line(optional(values, "reason", str) or "")[:_LONGEST]
    verified = optional(values, "verified", str)
    if verified is not None and not _TIME.fullmatch(verified):
        raise WrongShape(f"a snapshot was verified at {verified!r}")
    age = member(values, "age", int)
    return {"name": name, "state": state, "time": time, "age": age, "reason": reason, "verified": verified}


def _name(value: object, what: str) -> str:
    if not isinstance(value, str) or not names.kind_of(value):
        raise WrongShape(f"{what} has {value!r}, and the name of a snapshot is expected")
    return value


def _text(value: object, what: str) -> str:
    return member({what: value}, what, str)


def _flag(value: object, what: str) -> bool:
    return member({what: value}, what, bool)


def _counts(value: object, what: str) -> dict[str, int]:
    counts = as_object(value, what)
    found = {one_line(name): member(counts, name, int) for name in list(counts)[:_MOST]}
    if any(not 0 <= count < _LARGEST for count in found.values()):
        raise WrongShape(f"{what} has a number that cannot be")
    return found


def _space(value: object, what: str) -> Mapping[str, int]:
    """Return the room of a repository; what is not known is left out."""
    room = as_object(value, what)
    return _counts({name: one for name, one in room.items() if name in _ROOM and one is not None}, what)


def _checked(value: object, what: str) -> Mapping[str, object]:
    """Return the counts of a check, and the lists of what it looked at."""
    checked = as_object(value, what)
    lists = {name: checked[name] for name in ("snapshots", "parts") if name in checked}
    return {
        **_counts({name: one for name, one in checked.items() if name not in lists}, what),
        **{name: list_of(one, name, str if name == "snapshots" else int) for name, one in lists.items()},
    }


def _kept(value: object, what: str) -> dict[str, list[str]]:
    kept = as_object(value, what)
    return {
        _name(name, what): [one_line(rule) for rule in list_of(kept[name], name, str)] for name in list(kept)[:_MOST]
    }


def _file(values: Mapping[str, Any], *texts_of: str) -> Mapping[str, object]:
    """Return a path and the snapshots that have it. A path is used again, so it stays as it is."""
    path = member(values, "path", str)
    components(unescape(path))
    return {
        "path": path,
        "snapshots": [_name(name, "snapshots") for name in texts(values, "snapshots")],
        **{name: one_line(member(values, name, str))[:_LONGEST] for name in texts_of},
    }


_MEMBERS: Mapping[str, Callable[[object, str], Any]] = {
    "path": _text,
    "link_dest": lambda value, what: list_of(value, what, str),
    "link_dest_exclude": lambda value, what: list_of(value, what, str),
    "resumed": _flag,
    "differs": _flag,
    "name": lambda value, what: "" if value == "" else _name(value, what),  # empty: none was finished
    "figures": _counts,
    "snapshots": lambda value, _what: parse_snapshots(value),
    "space": _space,
    "kept": _kept,
    "removed": lambda value, what: [_name(one, what) for one in list_of(value, what, str)],
    "checked": _checked,
    "sound": _flag,
    "unproven": lambda value, what: list_of(value, what, str)[:_MOST_PATHS],
    "repaired": lambda value, what: [_file(one, "source") for one in list_of(value, what, dict)[:_MOST_PATHS]],
    "wanted": lambda value, what: [_file(one) for one in list_of(value, what, dict)[:_MOST_PATHS]],
    "left": lambda value, what: member({what: value}, what, int),
}
