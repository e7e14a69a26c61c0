# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse what the hosts of a benchmark say they measured. Untrusted input. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import (
    WrongShape,
    as_object,
    list_of,
    member,
    number,
)

from ..common.host_text import harmless, one_line
from .measurement import DiskMeasurement, TreeMeasurement

MOST_RATE = 1e13  # bytes, files or entries a second
_MOST_COUNT = 1 << 62
_MOST_GAPS = 20
_TEXT = 300  # characters


@dataclass(frozen=True)
class DiskAnswer:
    """What a host says of its disk, and the source of the tree."""

    disk: DiskMeasurement
    tree: TreeMeasurement | None
    gaps: tuple[str, ...]


def parse_disk_answer(value: object, has_tree: bool) -> DiskAnswer:
    """Return what a host measured of its disk; ``has_tree``: it is the source. Raises WrongShape."""
    values = as_object(value, "the measurement")
    tree = None
    if has_tree:
        tree = _parse_tree(as_object(values.get("tree"), "tree"), bounded(values, "ratio", 1.0))
    return DiskAnswer(_parse_disk(as_object(values.get("disk"), "disk")), tree, parse_gaps(values))


def _parse_disk(values: Mapping[str, Any]) -> DiskMeasurement:
    return DiskMeasurement(
        large=rate(values, "large"),
        small=rate(values, "small"),
        entries=rate(values, "entries"),
        compared=rate(values, "compared"),
        kernel=member(values, "kernel", bool),
        busy=bounded(values, "busy", 1.0),
        note=text(values, "note"),
    )


def _parse_tree(values: Mapping[str, Any], ratio: float) -> TreeMeasurement:
    return TreeMeasurement(
        entries=count(values, "entries"),
        files=count(values, "files"),
        bytes_apparent=count(values, "bytes_apparent"),
        bytes_on_disk=count(values, "bytes_on_disk"),
        large_bytes=count(values, "large_bytes"),
        is_complete=member(values, "is_complete", bool),
        ratio=ratio,
    )


def parse_gaps(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sentences of a host on what it could not measure. Raises WrongShape."""
    return tuple(one_line(harmless(one[:_TEXT])) for one in list_of(values.get("gaps"), "gaps", str)[:_MOST_GAPS])


def rate(values: Mapping[str, Any], name: str) -> float:
    """Return a member that is a rate. Raises WrongShape."""
    return bounded(values, name, MOST_RATE)


def bounded(values: Mapping[str, Any], name: str, most: float) -> float:
    """Return a member that is a number from 0 to ``most``. Raises WrongShape."""
    found = float(number(values, name))
    if not (math.isfinite(found) and 0 <= found <= most):
        raise WrongShape(f"{name} is {found}, and a number from 0 to {most:g} is expected")
    return found


def count(values: Mapping[str, Any], name: str, most: int = _MOST_COUNT) -> int:
    """Return a member that is a count. Raises WrongShape."""
    found = member(values, name, int)
    if not 0 <= found <= most:
        raise WrongShape(f"{name} is {found}, and a count from 0 to {most} is expected")
    return found


def text(values: Mapping[str, Any], name: str) -> str:
    """Return a member that is a short text, harmless and in one line. Raises WrongShape."""
    return one_line(harmless(member(values, name, str)[:_TEXT]))
