# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the task of a transfer returns, as RETURN of modules/transfer.py describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import OwnerMismatch, PathError
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.digest import Difference

from .bottleneck import Bottleneck


class _Counts(TypedDict):
    bytes_apparent: int
    bytes_total: int
    bytes_content: int
    bytes_sent: int
    bytes_matched: int
    bytes_from_basis: int
    bytes_shared: int
    files_total: int
    files_created: int
    files_updated: int
    files_deleted: int
    files_unchanged: int
    attributes_changed: int
    vanished: int
    left_out: int
    errors_total: int
    errors_unstable: int


class _Always(_Counts):
    changed: bool
    state: str  # running, finished or failed
    transfer_id: str
    method: str
    method_reason: str
    encrypted: bool
    trust: str
    confinement: dict[str, list[str]]  # by side
    preserved: list[str]
    errors: list[PathError]
    only_unstable: bool
    deleted: list[str]
    changes: list[str]
    changes_total: int
    changes_truncated: bool
    resumed: bool
    streams: int
    attached: bool
    verified: str
    by_rsync: int
    repaired: list[str]
    repaired_total: int
    duration: float
    throughput: int
    phases: dict[str, float]
    cmd: dict[str, list[str]]
    stderr: str


class Result(_Always, total=False):
    """The result of a transfer. It is what Ansible gets, so it stays a dict of plain data."""

    bottleneck: Bottleneck
    warnings: list[str]
    owner_mismatches: list[OwnerMismatch]
    owner_hints: list[str]
    compared: Mapping[str, object]
    unstable: int
    differences_total: int
    differences: list[Difference]
    diff: dict[str, str]
