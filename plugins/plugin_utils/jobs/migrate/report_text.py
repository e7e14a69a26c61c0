# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines about a migration job at the end of its run, for the terminal. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...common.units import format_bytes, format_entries, format_size
from .state import SERVED_BY_NEW

_MOST_DOWNTIMES = 3  # in a line


def render_summary(report: Mapping[str, Any]) -> list[str]:
    """Return the lines about a job for the terminal."""
    identity, phases, failure = report["identity"], report["phases"], report["failure"]
    predicted, compared = report["predicted"], phases.get("verify")
    made = _passes(phases)
    source, dest = (f"{identity[f'{end}_host']}:{identity[end]}" for end in ("src", "dest"))
    lines = [f"{report['name']}: {source} to {dest}"]
    if report["deletions"]:
        lines.append(f"DELETIONS: {report['deletions']}")
    if predicted:
        deleted = format_entries(predicted["files_deleted"])
        sent = f"would send {format_bytes(predicted['bytes_sent'])} and delete {deleted}"
        lines.append(f"{_amount(predicted)}; {sent} ({_method(predicted)})")
    if made:
        lines.append(f"{_amount(made[-1])}; {_sent(report)} ({_method(made[-1])})")
    slow = _bottleneck(phases)
    if slow:
        lines.append(f"slowest part: {slow}")
    if compared:
        how, entries = "content" if compared["compared"] == "checksum" else "size", compared["dest"]["entries"]
        lines.append(f"compared: the trees are the same, by {how} and attributes, {format_entries(entries)}")
    if report["downtimes"]:
        lines.append(f"downtime: {_downtimes(report)}{_foreseen(report)}")
    if report["forecast"]:
        lines.append(f"downtime to expect: {_forecast(report)}")
    lines += [f"warning: {warning}" for warning in report["warnings"] if warning != report["deletions"]]
    if failure:
        lines.append(f"stopped in phase {failure['phase']}: {failure['reason']}")
    lines.append(f"next: {report['next']}")
    return "\n".join(lines).splitlines()


def _passes(phases: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the transfers that a job made, in their order."""
    found = [phases.get("seed"), *phases.get("sync", {}).get("passes", ()), phases.get("cutover")]
    return [one for one in found if one]


def _bottleneck(phases: Mapping[str, Any]) -> str:
    """Return what held back the last transfer of which that is known."""
    return next((one["bottleneck"] for one in reversed(_passes(phases)) if one.get("bottleneck")), "")


def _forecast(report: Mapping[str, Any]) -> str:
    told = report["forecast"]
    return f"about {told['lasted']}: {told['why']}" if "seconds" in told else f"{told['lasted']}: {told['why']}"


def _foreseen(report: Mapping[str, Any]) -> str:
    """Return what was forecast beside what it came to, for the end of a line; empty if there is nothing to say."""
    found = report.get("foreseen", {})
    if "forecast" not in found or "real" not in found:
        return ""
    return f"; {found['of']} took {found['real_lasted']}, and the forecast was {found['forecast_lasted']}"


def _sent(report: Mapping[str, Any]) -> str:
    """Return what the transfers of this run sent, and those of all runs if that is more."""
    run, total = report["run"]["at"], report["totals"]["bytes_sent"]
    passes = [one for one in report["history"]["passes"] if one.get("run") == run]
    sent = sum(one.get("bytes_sent", 0) for one in passes)
    told = f"sent {format_bytes(sent) if sent else 'nothing'}"
    told += f" in {len(passes)} passes" if len(passes) > 1 else ""
    return told if total <= sent else f"{told}, {format_bytes(total)} in all runs so far"


def _downtimes(report: Mapping[str, Any]) -> str:
    """Return how long each of the newest downtimes lasted, and of what each was."""
    known = report["downtimes"]
    if len(known) == 1 and known[0]["serves"] == SERVED_BY_NEW:
        return str(known[0]["lasted"])
    left = len(known) - _MOST_DOWNTIMES
    told = [f"{one['lasted']} {_occasion(one)}" for one in known[-_MOST_DOWNTIMES:]]
    return ", ".join([*([f"{left} before"] if left > 0 else []), *told])


def _occasion(downtime: Mapping[str, Any]) -> str:
    if downtime.get("rehearsal"):
        return "in a rehearsal"
    return "at the switch" if downtime["serves"] == SERVED_BY_NEW else "in a cutover that failed"


def _amount(one: Mapping[str, Any]) -> str:
    return f"{format_entries(one['files_total'])}, {_size(one)}"


def _size(one: Mapping[str, Any]) -> str:
    return format_size(one["bytes_total"], one.get("bytes_apparent", 0))


def _method(one: Mapping[str, Any]) -> str:
    return f"method {one['method']}{'' if one.get('encrypted') else ', not encrypted'}"
