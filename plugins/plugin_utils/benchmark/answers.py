# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse what the hosts of a benchmark say they measured. Untrusted input. Pure."""

from __future__ import annotations

import math
import re
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
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.handshake import MAX_STREAMS
from ansible_collections.longhaul.fleet.plugins.module_utils._model.congestion import NAME

from ..common.host_text import harmless, one_line
from .measurement import DiskMeasurement, LinkMeasurement, LinkRates, ProcessorMeasurement, TreeMeasurement

MOST_RATE = 1e13  # bytes, files or entries a second
_MOST_COUNT = 1 << 62
_MOST_GAPS = 20
_MOST_RATES = 30
_MOST_CORES = 1 << 16
_NAME = re.compile(r"[a-z0-9][a-z0-9@.-]{0,63}")
_LONGEST_TRIP = 100.0  # seconds
_LARGEST_MTU = 1 << 17
_TEXT = 300  # characters


@dataclass(frozen=True)
class DiskAnswer:
    """Answer of a host about its disk, at the source also about the tree."""

    disk: DiskMeasurement
    tree: TreeMeasurement | None
    processor: ProcessorMeasurement | None
    gaps: tuple[str, ...]


def parse_disk_answer(value: object, has_tree: bool) -> DiskAnswer:
    """Return what a host measured of its disk; ``has_tree``: it is the source. Raises WrongShape."""
    values = as_object(value, "the measurement")
    disk = _parse_disk(as_object(values.get("disk"), "disk"))
    if not has_tree:
        return DiskAnswer(disk, None, None, parse_gaps(values))
    tree = _parse_tree(as_object(values.get("tree"), "tree"), bounded(values, "ratio", 1.0))
    return DiskAnswer(disk, tree, parse_processor(values), parse_gaps(values))


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


def parse_processor(values: Mapping[str, Any]) -> ProcessorMeasurement:
    """Return what a host measured of its processor. Raises WrongShape."""
    found = as_object(values.get("processor"), "processor")
    return ProcessorMeasurement(
        cores=max(1, count(found, "cores", _MOST_CORES)),
        load=bounded(found, "load", 1.0),
        ciphers=_parse_rates(found, "ciphers"),
        hashes=_parse_rates(found, "hashes"),
        compression=_parse_rates(found, "compression"),
    )


def _parse_rates(values: Mapping[str, Any], name: str) -> dict[str, float]:
    rates = as_object(values.get(name), name)
    if len(rates) > _MOST_RATES or not all(_NAME.fullmatch(one) for one in rates):
        raise WrongShape(f"{name} has names that are none, or too many")
    return {one: rate(rates, one) for one in rates}


@dataclass(frozen=True)
class LinkAnswer:
    """Answer of the connecting end about the line."""

    link: LinkMeasurement
    bytes_sent: int
    gaps: tuple[str, ...]


def parse_link_answer(value: object, connect: str) -> LinkAnswer:
    """Return what was measured of the line, for which ``connect`` (push or pull) found a way. Raises WrongShape."""
    values = as_object(value, "the measurement")
    sides = {side: as_object(values.get(side), side) for side in ("source", "dest")}
    bonds = {side: text(sides[side], "bond") for side in sides}
    link = LinkMeasurement(
        forth=_parse_direction(as_object(values.get("forth"), "forth")),
        back=_parse_direction(as_object(values.get("back"), "back")),
        connect=connect,
        round_trip=bounded(values, "round_trip", _LONGEST_TRIP),
        loss=bounded(values, "loss", 1.0),
        path_mtu=count(values, "path_mtu", _LARGEST_MTU),
        window=count(values, "window"),
        congestion=_congestion(values),
        interfaces={side: rate(sides[side], "interface") for side in sides},
        bonds={side: mode for side, mode in bonds.items() if mode},
    )
    return LinkAnswer(link, count(values, "bytes"), parse_gaps(values))


def _parse_direction(values: Mapping[str, Any]) -> LinkRates:
    return LinkRates(
        one_stream=rate(values, "one_stream"),
        several_streams=rate(values, "several_streams"),
        streams=count(values, "streams", MAX_STREAMS),
        encrypted=rate(values, "encrypted"),
    )


def _congestion(values: Mapping[str, Any]) -> str:
    """Return the name of a congestion control; empty for what is none."""
    name = member(values, "congestion", str)
    return name if NAME.fullmatch(name) else ""


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
