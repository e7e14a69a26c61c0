# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a report of a migration job says beside what the role keeps of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import entries_text

from ..units import format_seconds, seconds_of
from .advice import advice
from .stages import passes_of


class Totals(TypedDict, total=False):
    """What all transfers of a job came to; empty before the first one."""

    entries: int
    bytes: int  # without holes
    bytes_apparent: int  # with them
    bytes_sent: int
    files_deleted: int


class Forecast(TypedDict, total=False):
    """How long the source will be stopped; empty if nothing is known of that, or if it was switched over."""

    seconds: float
    lasted: str  # in words
    why: str


def make_report(
    state: Mapping[str, Any],
    warnings: Sequence[str] = (),
    check_mode: bool = False,
    predicted: Mapping[str, Any] | None = None,
    deletions: str = "",
) -> dict[str, Any]:
    """Return the state of a job with what only reports say.

    That is ``warnings``, those of them that only hold for the last pass or run as ``hints``, ``next`` and
    ``check_mode``; ``totals`` of all transfers; the ``forecast`` of the downtime; ``downtimes`` and ``hooks`` with
    their ``seconds``, and as ``lasted`` in words; and ``predicted`` and ``deletions`` as they were given, but empty if
    a transfer was made since.
    """
    passes = passes_of(state)
    if not predicted or (passes and predicted["at"] <= passes[-1]["at"]):
        predicted, deletions = {}, ""
    notes = state.get("run", {}).get("notes", [])
    hints = [*notes, *([deletions] if deletions else []), *_changed_meanwhile(passes)]
    return {
        **state,
        "warnings": [*hints, *(text for text in warnings if text not in hints)],
        "hints": hints,
        "next": advice(state),
        "check_mode": check_mode,
        "predicted": dict(predicted),
        "deletions": deletions,
        "forecast": _forecast(state, passes),
        "totals": _totals(passes or [predicted] if passes or predicted else []),
        "downtimes": [
            _with_seconds(one, seconds_of(one["from"]), seconds_of(one["to"])) for one in state.get("downtimes", [])
        ],
        "hooks": [_with_seconds(one, one.get("began"), one.get("ended")) for one in state.get("hooks", [])],
    }


def _totals(passes: Sequence[Mapping[str, Any]]) -> Totals:
    """Return what all transfers sent and deleted together, and what the last one found at the source."""
    if not passes:
        return {}
    return {
        "entries": passes[-1].get("files_total", 0),
        "bytes": passes[-1].get("bytes_total", 0),
        "bytes_apparent": passes[-1].get("bytes_apparent", 0),
        "bytes_sent": sum(one.get("bytes_sent", 0) for one in passes),
        "files_deleted": sum(one.get("files_deleted", 0) for one in passes),
    }


def _forecast(state: Mapping[str, Any], passes: Sequence[Mapping[str, Any]]) -> Forecast:
    """Return the downtime to expect: that of the rehearsal, or the last pass again and a comparison, without hooks."""
    rehearsal = state["phases"].get("rehearsal")
    if state["switch"]:
        return {}
    if rehearsal:
        seconds = float(max(0, (seconds_of(rehearsal["at"]) or 0) - (seconds_of(rehearsal["from"]) or 0)))
        return {"seconds": seconds, "lasted": _in_words(seconds), "why": f"as in the rehearsal of {rehearsal['at']}"}
    if not passes or "duration" not in passes[-1]:
        return {}
    copied = float(passes[-1]["duration"])
    compared = _comparison_of(state, passes)
    why = f"as long as the last pass took ({_in_words(copied)})"
    if compared:
        why += f" and a comparison may take ({_in_words(compared)})"
    seconds = round(copied + compared, 1)
    return {"seconds": seconds, "lasted": _in_words(seconds), "why": f"{why}, and the hooks besides"}


def _comparison_of(state: Mapping[str, Any], passes: Sequence[Mapping[str, Any]]) -> float:
    """Return the seconds that a comparison may take: as an earlier one, else as the last look, or reading both trees.

    Both trees are read side by side, hardly slower than the first copy was made; that is the rate that is known.
    """
    wanted = state.get("run", {}).get("verify")
    found = state["phases"].get("verify") or state["phases"].get("verify_failed") or {}
    if found and found.get("compared") == wanted:
        return float(found["duration"])
    if wanted == "size":
        return float(passes[-1]["duration"])
    rate = max((_content_rate(one) for one in passes), default=0.0)
    return float(passes[-1].get("bytes_total", 0)) / rate if wanted == "checksum" and rate else 0.0


def _content_rate(one: Mapping[str, Any]) -> float:
    """Return how many bytes of contents a pass sent in a second, which may be more than went over the wire."""
    rate, sent = float(one.get("throughput") or 0), float(one.get("bytes_sent") or 0)
    return rate * float(one.get("bytes_content", sent)) / sent if sent else rate


def _in_words(seconds: float) -> str:
    return format_seconds(int(seconds)) if seconds >= 60 else f"{round(seconds, 1):g} s"


def _with_seconds(one: Mapping[str, Any], began: float | None, ended: float | None) -> dict[str, Any]:
    seconds = round(max(0.0, float(ended or 0) - float(began or 0)), 1)
    return {**one, "seconds": seconds, "lasted": _in_words(seconds)}


def _changed_meanwhile(passes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the last pass left to the next one. The final pass is strict, so it leaves nothing."""
    changed = passes[-1].get("changed_meanwhile", {}) if passes else {}
    if not changed.get("count"):
        return []
    return [
        f"{entries_text(changed['count'])} changed at the source during this pass, for example {changed['example']}. "
        "The next pass tries again, and the final pass, with the source stopped, brings everything"
    ]
