# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a restore for people. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..host_text import markdown_code, markdown_list, markdown_text
from ..units import format_bytes, format_size

_CHECKS = {
    "contents": "by content",
    "files": "by names, sizes and attributes",
    "structure": "the manifest is whole",
    "": "it has none that can be used",
}


def render_report(report: Mapping[str, Any]) -> str:
    """Return the report of a restore, as its JSON file has it, in Markdown."""
    identity, result, problems = report["identity"], report["result"], report["problems"]
    state = {"begun": "Begun", "failed": "**Failed**", "restored": "Restored"}[report["state"]]
    if report["state"] == "restored" and report["check_mode"]:
        state = "Would be restored"
    source = f"{markdown_code(identity['path'] or 'all')} of {identity['snapshot']} ({report['why']})"
    dest = f"{identity['to']}:{markdown_code(identity['dest'])}{', over what was there' if report['over'] else ''}"
    lines = [
        f"# Restore of {identity['from']}, {identity['job']}",
        "",
        f"{state} ({report['at']}): {source} to {dest}",
    ]
    if "failure" in result:
        lines += ["", markdown_text(result["failure"])]
    elif report["state"] == "restored":
        lines += ["", _figures(result), ""]
        if not report["check_mode"]:
            verified = "by content and attributes" if result["verified"] == "checksum" else "by size and attributes"
            lines.append(
                f"Compared with the snapshot {verified}: the same. Before that the snapshot was compared with its "
                f"manifest: {_CHECKS[report['checked']]}."
            )
    if problems:
        lines += ["", f"**Damaged in the snapshot** ({report['problems_total']}):", "", *map(_problem, problems)]
    return "\n".join([*lines, *markdown_list("Warnings", report["warnings"]), ""])


def _figures(result: Mapping[str, Any]) -> str:
    counts = {"files_created": "created", "files_updated": "replaced", "attributes_changed": "with attributes set"}
    counts.update({"files_deleted": "deleted", "files_unchanged": "as they were"})
    size = format_size(result["bytes_total"], result.get("bytes_apparent", 0))
    done = ", ".join(f"{result[name]} {word}" for name, word in counts.items())
    sent = f"{format_bytes(result['bytes_sent'])} sent in {round(result['duration'], 1)} s"
    method = f"method {result['method']}{'' if result['encrypted'] else ', not encrypted'}"
    return f"{result['files_total']} entries, {size}: {done}; {sent} ({method})."


def _problem(one: Mapping[str, Any]) -> str:
    path = "the snapshot itself" if one["path"] is None else markdown_code(one["path"])
    intact = f"; intact in {markdown_text(', '.join(one['intact_in']))}" if one["intact_in"] else ""
    return f"- {path}: {markdown_text(one['detail'])}{intact}"
