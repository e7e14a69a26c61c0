# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dataclasses as JSON objects: one parser and one writer for the states that are kept on the control node.

A field has the name of its member, or the one in its metadata (``key``). What is missing in an object has the default
of its field, and members that no field has are dropped: other versions wrote them. None is not written; in a field with
the metadata EMPTY it is an empty object. A field with the metadata SPARSE is written only if it is true or not empty.
An Enum is written as its value, and a tuple of any length as an array.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Hashable, Mapping
from enum import Enum
from typing import Any, TypeVar, Union, cast

from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape, as_object

T = TypeVar("T")
_OPAQUE = (object, Any)
EMPTY = {"empty": True}
SPARSE = {"sparse": True}


def parse_dataclass(kind: type[T], value: object, what: str) -> T:
    """Return the dataclass that an object holds; ``what`` names it in errors. Raises WrongShape."""
    values = as_object(value, what)
    found = {}
    for field, declared in _fields(cast(Hashable, kind)):
        key = field.metadata.get("key", field.name)
        if key in values:
            found[field.name] = _parse(declared, values[key], f"{key} of {what}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise WrongShape(f"{what} has no {key}")
    return kind(**found)


def dump_dataclass(instance: Any) -> dict[str, object]:
    """Return a dataclass as an object of JSON."""
    written: dict[str, object] = {}
    for field, _declared in _fields(cast(Hashable, type(instance))):
        value = getattr(instance, field.name)
        is_written = bool(value) if field.metadata.get("sparse") else value is not None
        if is_written or field.metadata.get("empty"):
            written[field.metadata.get("key", field.name)] = {} if value is None else _dump(value)
    return written


@functools.lru_cache(maxsize=None)
def _fields(kind: Any) -> list[tuple[dataclasses.Field[Any], Any]]:
    hints = typing.get_type_hints(kind)
    return [(field, hints[field.name]) for field in dataclasses.fields(kind)]


def _dump(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return dump_dataclass(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (list, tuple)):
        return [_dump(one) for one in value]
    return {name: _dump(one) for name, one in value.items()} if isinstance(value, dict) else value


def _parse(declared: Any, value: object, what: str) -> Any:
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if declared in _OPAQUE:
        return value
    if origin in (Union, types.UnionType):
        (inner,) = [one for one in arguments if one is not types.NoneType]
        is_absent = value is None or (dataclasses.is_dataclass(inner) and value == {})
        return None if is_absent else _parse(inner, value, what)
    if dataclasses.is_dataclass(declared):
        return parse_dataclass(cast(type, declared), value, what)
    if origin in (list, tuple):
        if not isinstance(value, list):
            raise WrongShape(f"{what} is no list")
        return origin(_parse(arguments[0], one, what) for one in value)
    if origin in (dict, Mapping):
        return {name: _parse(arguments[1], one, what) for name, one in as_object(value, what).items()}
    if issubclass(declared, Enum):
        return _parse_enum(declared, value, what)
    kinds = (int, float) if declared is float else (declared,)
    if isinstance(value, kinds) and (declared is bool or not isinstance(value, bool)):
        return value  # an integer as it is, so that it is written as it was read
    raise WrongShape(f"{what} is no {declared.__name__}")


def _parse_enum(declared: type[Enum], value: object, what: str) -> Enum:
    for one in declared:
        if one.value == value:
            return one
    raise WrongShape(f"{what} is none of {', '.join(str(one.value) for one in declared)}")
