# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Members of an object that was read from JSON, each of the type that the reader expects."""

from __future__ import annotations

from typing import Any, Mapping, TypeVar

T = TypeVar("T")


class WrongShape(ValueError):
    """A value has another type than its reader expects; the message names the member and what it holds."""


def as_object(value: object, what: str) -> Mapping[str, Any]:
    """Return a JSON object, to read its members from; ``what`` names it in the error."""
    if not isinstance(value, dict):
        raise WrongShape(f"{what} is {_shown(value)}, and an object is expected")
    return value


def member(values: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """Return a member of this type; raise WrongShape if it is missing or of another type."""
    value = values.get(name)
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):  # True is an int for Python
        return value
    raise WrongShape(f"{name} is {_shown(value)}, and a value of type {kind.__name__} is expected")


def check_members(values: Mapping[str, Any], kinds: Mapping[str, type]) -> None:
    """Raise WrongShape unless all these members are there, each of its type."""
    for name, kind in kinds.items():
        member(values, name, kind)


def well_formed(value: object, kinds: Mapping[str, type | tuple[type, ...]]) -> dict[str, object]:
    """Return the members of an object, without those that ``kinds`` knows and that are of another type.

    For what a state file holds that may be damaged: what is no object has no members.
    """
    values = value if isinstance(value, dict) else {}
    return {name: one for name, one in values.items() if isinstance(one, kinds.get(name, object))}


def optional(values: Mapping[str, Any], name: str, kind: type[T]) -> T | None:
    """Return a member of this type, or None if it is null or missing."""
    return None if values.get(name) is None else member(values, name, kind)


def number(values: Mapping[str, Any], name: str) -> float:
    """Return a member that is a number, with a fraction or without."""
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise WrongShape(f"{name} is {_shown(value)}, and a number is expected")
    return value


def texts(values: Mapping[str, Any], name: str) -> list[str]:
    """Return a member that is a list of texts."""
    return list_of(values.get(name), name, str)


def list_of(value: object, name: str, kind: type[T]) -> list[T]:
    """Return a list all of whose items have this type; ``name`` names it in the error."""
    if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
        raise WrongShape(f"{name} is {_shown(value)}, and a list of {kind.__name__} is expected")
    return value


def _shown(value: object) -> str:
    """Return the beginning of a value, for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
