# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines about backups for the terminal: those about one, and those about all. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted, entries_text

from ...common.units import format_bytes, format_size
from .copies import CopyState
from .drill import tell_drill
from .health import ASIDE, FAILED, NEVER, OK, STALE, UNCOPIED, JobHealth, sentences
from .state import BackupRecord, PathTransfer

_MOST_LINES = 50  # of jobs that are in the same state
_WORDS = {FAILED: "FAILED", ASIDE: "SET ASIDE", STALE: "STALE", UNCOPIED: "COPY", NEVER: "not run yet", OK: "ok"}


def render_overall(health: Sequence[JobHealth], path: str) -> list[str]:
    """Return the lines about all jobs for the terminal, with the ``path`` of the report, empty if there is none."""
    lines = []
    for state, word in {"": "BUSY", **_WORDS}.items():
        alike = [one for one in health if state == ("" if one.busy else one.state)]
        for one in alike[:_MOST_LINES]:
            line = f"{word} {one.id}"
            if one.record and one.record.newest:
                count = counted(one.record.snapshots or 0, "snapshot", "snapshots")
                line += f": {count}, the newest of {one.record.newest}"
            if one.busy or one.why:
                line += f": {one.busy or sentences(one.why)}"
            lines.append(line)
        if len(alike) > _MOST_LINES:
            lines.append(f"{word} and {len(alike) - _MOST_LINES} more")
    return "\n".join([*lines, *([path] if path else [])]).splitlines()


def render_summary(record: BackupRecord, predicted: bool, only_drill: bool = False) -> list[str]:
    """Return the lines about one backup for the terminal. ``only_drill``: this run made no backup, only a drill."""
    repository, figures = record.repository, record.figures
    failed = [f"failed in {one.step}: {one.reason}" for one in record.failures if one.step == "drill"]
    is_new = record.drill is not None and (not failed and not predicted if only_drill else record.drill.at >= record.at)
    drill = [tell_drill(record.drill)] if record.drill and is_new and not record.drill.failure else []
    if only_drill:
        return "\n".join(f"{record.id}: {line}" for line in [*drill, *failed]).splitlines()
    lines = [f"{record.id}: to {repository['host']}:{repository['path']}{' (predicted)' if predicted else ''}"]
    lines += [_transfer(one, predicted) for one in record.transfers if one.method != "none"]
    if record.snapshot:
        new, gone = format_bytes(figures.get("new_bytes", 0)), counted(figures.get("gone", 0), "name is", "names are")
        moved = figures.get("moved", 0)
        told = f", {counted(moved, 'file was', 'files were')} moved or renamed" if moved else ""
        lines.append(f"{record.snapshot}: {new} are new{told}, {gone} gone")
    if record.removed:
        lines.append(f"{'would remove' if predicted else 'removed'} {', '.join(record.removed)}")
    if record.aside:
        lines.append(f"set aside: {record.aside}")
    lines += [_copy(one) for one in record.copies]
    lines += drill
    lines += [f"warning: {note}" for note in record.notes]
    lines += [f"failed in {failure.step}: {failure.reason}" for failure in record.failures]
    return "\n".join(lines).splitlines()


def _copy(one: CopyState) -> str:
    """Return the line about a copy of the snapshots."""
    if one.error:
        return f"copy in {one.place} failed: {one.error}"
    new = f"; copied {', '.join(one.copied)}, sent {format_bytes(one.bytes_sent)}" if one.copied else ""
    repaired = f"; repaired {counted(one.repaired, 'file', 'files')}" if one.repaired else ""
    return f"copy in {one.place}: {counted(one.snapshots or 0, 'snapshot', 'snapshots')}{new}{repaired}"


def _transfer(one: PathTransfer, predicted: bool) -> str:
    """Return the line about the transfer of one path."""
    size = format_size(one.bytes_total, one.bytes_apparent)
    sent = f"{'would send' if predicted else 'sent'} {format_bytes(one.bytes_sent)}"
    if one.bytes_from_basis:
        sent += f", took {format_bytes(one.bytes_from_basis)} of changed files from the snapshot before"
    if one.bytes_shared:
        sent += f", of which the disk shares {format_bytes(one.bytes_shared)}"
    method = f"method {one.method}{'' if one.encrypted else ', not encrypted'}"
    return f"{one.src}: {entries_text(one.files_total)}, {size}; {sent} ({method})"
