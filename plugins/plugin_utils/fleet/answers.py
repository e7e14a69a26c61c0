# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host says of its transfers, for an overview: read as what nobody can be trusted with. Pure.

A host may be hostile. Each value has its type and its bounds here, and no host can speak for a pair that it is not in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import (
    WrongShape,
    as_object,
    list_of,
    member,
    number,
    optional,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._job.state import RUNNING

from ..common.host_text import one_line
from .lock import LeaseHolder, parse_seen

_MOST_TRANSFERS = 10_000  # of one host
_LONGEST_TEXT = 1_000  # characters
_LARGEST = 2**63 - 1  # bytes or entries
_SIDES, _PARTS = ("source", "dest"), ("drive", "serve", "compare", "owners")
_STATES = (*RUNNING, "served", "finished", "failed", "paused", "cancelled", "interrupted")


@dataclass(frozen=True)
class ListedTransfer:
    """One side of a transfer or a comparison, as its host sees it. All texts are on one line and harmless."""

    host: str  # in the inventory
    id: str
    side: str  # source or dest
    part: str  # drive, serve, compare or owners
    method: str
    peer: str  # inventory host, as the host was told
    root: str
    state: str
    paused: bool
    failure: str
    age: float  # seconds since it reported this, by the clock of the host
    bytes_done: int
    bytes_total: int  # 0: not known
    files_done: int
    files_total: int
    rate: float | None  # bytes a second
    bytes_sent: int = 0
    bytes_apparent: int = 0  # 0: not known

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.state in RUNNING


@dataclass(frozen=True)
class HostTransfers:
    """What a host says."""

    transfers: Sequence[ListedTransfer] = ()
    records: Mapping[str, object] = field(default_factory=dict)  # of jobs, by their ids, which nobody has read yet
    leases: Mapping[str, LeaseHolder] = field(default_factory=dict)  # likewise, which control node has each


def parse_answer(host: str, value: object) -> HostTransfers:
    """Return what a host says of its transfers; raise ValueError if that cannot be read."""
    try:
        values = as_object(value, "the answer")
        now, transfers = _finite(values, "now"), list_of(values.get("transfers"), "transfers", dict)
        if len(transfers) > _MOST_TRANSFERS:
            raise WrongShape(f"it names {len(transfers)} transfers, and {_MOST_TRANSFERS} are the most")
        records = {_identity(one): one for one in list_of(values.get("records", []), "records", dict)}
        leases = {_identity(one): parse_seen(one) for one in list_of(values.get("leases", []), "leases", dict)}
        return HostTransfers(tuple(_parse_one(host, now, one) for one in transfers), records, leases)
    except WrongShape as error:
        raise ValueError(
            f"{host} returned no list of transfers ({error}). If it runs what this collection sent, report a defect"
        ) from error


def _parse_one(host: str, now: float, values: Mapping[str, Any]) -> ListedTransfer:
    progress = as_object(values.get("progress", {}), "progress")
    updated = _finite(values, "updated")
    rate = _finite(values, "rate") if values.get("rate") is not None else None
    return ListedTransfer(
        host=host,
        id=_identity(values),
        side=_one_of(values, "side", _SIDES),
        part=_one_of(values, "part", ("", *_PARTS)),
        method=_text(values, "method"),
        peer=_text(values, "peer"),
        root=_text(values, "root"),
        state=_one_of(values, "state", _STATES),
        paused=member(values, "paused", bool),
        failure=_text(values, "failure"),
        age=max(0.0, now - updated) if updated else 0.0,
        bytes_done=_count(progress, "bytes_done"),
        bytes_total=_count(progress, "bytes_total"),
        bytes_sent=_count(progress, "bytes_sent"),
        bytes_apparent=_count(progress, "bytes_apparent"),
        files_done=_count(progress, "files_done"),
        files_total=_count(progress, "files_total"),
        rate=None if rate is None else min(max(0.0, rate), float(_LARGEST)),
    )


def _identity(values: Mapping[str, Any]) -> str:
    identity = member(values, "id", str)
    if not (identity.isascii() and identity.isalnum() and len(identity) <= 64):
        raise WrongShape(f"id is {identity[:40]!r}, and letters and digits are expected")
    return identity


def _text(values: Mapping[str, Any], name: str) -> str:
    text = one_line(member(values, name, str)[: 2 * _LONGEST_TEXT])
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 3] + "..."


def _one_of(values: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    value = member(values, name, str)
    if value not in known:
        raise WrongShape(f"{name} is {value[:40]!r}, and one of {', '.join(known)} is expected")
    return value


def _count(values: Mapping[str, Any], name: str) -> int:
    return min(max(0, optional(values, name, int) or 0), _LARGEST)


def _finite(values: Mapping[str, Any], name: str) -> float:
    value = float(number(values, name))
    if not math.isfinite(value):
        raise WrongShape(f"{name} is {value}, and a number is expected")
    return value
