# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option ``owner_map`` as one table of numbers, and what is said where two hosts mean different people. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Dict, List

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted, entries_text
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import OwnerMismatch
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.owners import KINDS

from ..common.refusal import Refusal
from .result import Result

_LARGEST = 2**32 - 2  # the number above it means "no change" to chown
_LISTED = 10  # in a warning; the result has all
_NOBODY = {"user": "nobody", "group": "no group"}
_LETTER = {"user": "uid", "group": "gid"}

Table = Dict[str, List[List[int]]]  # as Python 3.8 reads it: tests of what runs on hosts import this


def check_owner_map(owner_map: Mapping[str, Any] | None) -> None:
    """Refuse a map that no pair of hosts could follow. Raises Refusal."""
    for kind in KINDS:
        for key, value in ((owner_map or {}).get(kind) or {}).items():
            _check(f"a key of owner_map.{kind}", key)
            _check(f"owner_map.{kind}, what {key} becomes,", value)


def _check(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise Refusal(f"{what} is {value!r}: give a name, in quotes where YAML would read it otherwise, or a number")
    if isinstance(value, int) and not 0 <= value <= _LARGEST:
        raise Refusal(f"{what} is {value}: ids are numbers from 0 to {_LARGEST}")
    if isinstance(value, str) and not value.strip():
        raise Refusal(f"{what} is empty: give a name or a number")
    if isinstance(value, str) and value.strip().lstrip("+-").isdigit():
        raise Refusal(
            f"{what} is {value!r}, a text of digits, which could be a name or a number: write the number without "
            "quotes, in YAML. JSON cannot say it: keys there are texts"
        )


def names_to_look_up(owner_map: Mapping[str, Any] | None, side: str) -> dict[str, list[str]]:
    """Return the names that a host must look up: those of the keys at the source, of the values at the destination."""
    if not owner_map:
        return {}
    found = {}
    for kind in KINDS:
        pairs = (owner_map.get(kind) or {}).items()
        found[kind] = [one for one in (pair[side == "dest"] for pair in pairs) if isinstance(one, str)]
    return found


def owner_table(
    owner_map: Mapping[str, Any] | None,
    known: Mapping[str, Mapping[str, Mapping[str, int | None]]],
    names: Mapping[str, str],
) -> tuple[Table, list[str]]:
    """Return the map in numbers, and warnings. ``known`` has what each side looked up, ``names`` the hosts' names.

    Raises Refusal.
    """
    table: Table = {}
    warnings = []
    for kind in KINDS:
        numbers: dict[int, int] = {}
        spelled: dict[int, object] = {}
        for key, value in ((owner_map or {}).get(kind) or {}).items():
            new = known["dest"][kind][value] if isinstance(value, str) else value
            old = known["source"][kind][key] if isinstance(key, str) else key
            if new is None:
                raise Refusal(
                    f"owner_map.{kind} makes {key} of {names['source']} the {kind[:-1]} {value}, and {names['dest']} "
                    f"has no such {kind[:-1]}: make it there, or name one that is there"
                )
            if old is None:
                warnings.append(
                    f"owner_map.{kind} names {key}, and {names['source']} has no such {kind[:-1]}: nothing there "
                    "belongs to it"
                )
                continue
            if old in numbers:
                raise Refusal(
                    f"owner_map.{kind} names {spelled[old]} and {key}, which are the same {kind[:-1]} on "
                    f"{names['source']} (number {old}): leave one of them out"
                )
            numbers[old], spelled[old] = new, key
        if numbers:
            table[kind] = [[old, new] for old, new in sorted(numbers.items())]
    return table, warnings


def refuse_lost_map(owner_map: Mapping[str, Any] | None, preserve: Collection[str]) -> None:
    """Refuse a map of owners that the transfer does not keep. Raises Refusal."""
    for kind, word in (("users", "owner"), ("groups", "group")):
        if (owner_map or {}).get(kind) and word not in preserve:
            raise Refusal(
                f"owner_map.{kind} is set, but this transfer does not keep the {word} of anything: add {word} to "
                f"preserve (which needs root at the destination), or leave {kind} out of owner_map"
            )


def merged(one: Mapping[str, Sequence[Sequence[int]]], other: Mapping[str, Sequence[Sequence[int]]]) -> Table:
    """Return two tables as one; the numbers of the first count where both have one."""
    found: Table = {}
    for kind in KINDS:
        pairs = {old: new for table in (other, one) for old, new in table.get(kind, ())}
        if pairs:
            found[kind] = [[old, new] for old, new in sorted(pairs.items())]
    return found


def is_serious(one: OwnerMismatch) -> bool:
    """Whether a disagreement of the hosts is worth a transfer's warning: somebody else gets something, or could not.

    A number that is unknown at the destination, with a name that is unknown there as well, is what a copy by numbers to
    a host without these users is meant to have.
    """
    return not one["numeric_ids"] or bool(one["name_there"]) or one["id_there"] is not None


def owner_text(one: OwnerMismatch, source: str, dest: str) -> str:
    """Describe in a clause what differs between the two hosts."""
    kind, name = one["type"], one["name"]
    letter = _LETTER[kind]
    there = _called(kind, one["name_there"])
    if not one["numeric_ids"] and name:
        who = name if kind == "user" else f"the group {name}"
        now = f", which is {there} there" if one["name_there"] else ""
        keep = counted(one["entries"], "entry keeps", "entries keep")
        return f"{who} does not exist on {dest}: {keep} the number {one['id']}{now}"
    where = ""
    if one["id_there"] is not None:
        where = f", where {name} is {one['id_there']}"
    elif name:
        where = f", where there is no {name}"
    count = entries_text(one["entries"])
    return f"{letter} {one['id']} is {_called(kind, name)} on {source} and {there} on {dest}{where}: {count}"


def _called(kind: str, name: str) -> str:
    return f"the user {name}" if name == "nobody" else name or _NOBODY[kind]


def owner_warnings(mismatches: Sequence[OwnerMismatch], hints: Sequence[str], source: str, dest: str) -> list[str]:
    """Return what a transfer warns of: one sentence, however many users that are."""
    serious = [one for one in mismatches if is_serious(one)]
    if not serious:
        return []
    listed = "; ".join(owner_text(one, source, dest) for one in serious[:_LISTED])
    more = f"; and {len(serious) - _LISTED} more (see owner_mismatches)" if len(serious) > _LISTED else ""
    numbers = any(one["numeric_ids"] for one in serious)
    advice = (
        "Numbers were kept; numeric_ids: false goes by names, owner_map says who becomes whom"
        if numbers
        else "Make them there, or say in owner_map who becomes whom"
    )
    return [f"{source} and {dest} do not mean the same owners: {listed}{more}. {advice}{foreign(hints)}"]


def foreign(hints: Sequence[str]) -> str:
    """Return the advice for trees that have owners of their own, to follow a sentence; empty if there are none."""
    if not hints:
        return ""
    return f". {'; '.join(hints)}: names of the hosts mean nothing for these, so keep their numbers (numeric_ids: true)"


def add_owners(
    result: Result,
    mismatches: Sequence[OwnerMismatch],
    hints: Sequence[str],
    names: tuple[str, str],
    warn: bool = True,
) -> None:
    """Put into a task's result by what the hosts do not mean the same, with a warning where that is wished."""
    result["owner_mismatches"] = list(mismatches)
    result["owner_hints"] = list(hints) if mismatches else []
    warnings = owner_warnings(mismatches, hints, *names) if warn else []
    if warnings:
        result["warnings"] = [*result.get("warnings", []), *warnings]
