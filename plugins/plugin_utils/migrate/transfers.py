# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a migration keeps of the result of a transfer, and whether it had anything to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..fleet.source_changes import tell_changes

# What the reports keep of a transfer's result.
KEPT = (
    "transfer_id",
    "state",
    "method",
    "method_reason",
    "streams",
    "encrypted",
    "trust",
    "bytes_apparent",
    "bytes_total",
    "bytes_content",
    "bytes_sent",
    "bytes_matched",
    "bytes_from_basis",
    "bytes_shared",
    "files_total",
    "files_created",
    "files_updated",
    "files_deleted",
    "deleted",
    "files_unchanged",
    "attributes_changed",
    "vanished",
    "errors_total",
    "unstable",
    "source_missing",
    "errors",
    "resumed",
    "attached",
    "verified",
    "preserved",
    "owner_mismatches",
    "owner_hints",
    "duration",
    "throughput",
    "phases",
    "warnings",
    "changed",
)
_MOST_DIFFERENCES = 20  # that are kept
_COUNTS = ("files_created", "files_updated", "files_deleted", "attributes_changed", "vanished", "errors_total")


def summary_of(result: Mapping[str, Any], now: str) -> Mapping[str, Any]:
    """Return what is kept of a transfer's result; ``now`` is when it ended."""
    changes = tell_changes(result)
    kept = {name: result[name] for name in KEPT if name in result}
    return {**kept, "at": now, "changed_meanwhile": {name: changes[name] for name in ("count", "example", "only")}}


def comparison_of(result: Mapping[str, Any], verify: str, now: str) -> Mapping[str, Any]:
    """Return what is kept of a comparison: one that was a part of a transfer, or the result of the module verify.

    ``verify`` is what was compared: checksum or size.
    """
    total = int(result.get("differences_total", 0))
    counted = result.get("compared") or {name: result[name] for name in ("algorithm", "source", "dest")}
    return {
        **counted,
        "identical": not total,
        "at": now,
        "compared": verify,
        "duration": result["phases"].get("verify", 0.0) if "phases" in result else result["duration"],
        "differences": list(result.get("differences", ()))[:_MOST_DIFFERENCES],
        "differences_total": total,
    }


def finds_nothing_to_do(predicted: Mapping[str, Any]) -> bool:
    """Whether the prediction of a transfer, empty if there was none, found a complete copy."""
    return predicted.get("state") == "finished" and not any(predicted.get(name, 0) for name in _COUNTS)
