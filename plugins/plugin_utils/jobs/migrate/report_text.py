# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports of migrations for people: the report on a job, its lines for the terminal, the report on all jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted, entries_text

from ...common.host_text import markdown_code, markdown_list, markdown_row, markdown_text
from ...common.units import format_bytes, format_size
from .state import BACK

_PASSES = (
    *("phase", "when", "method", "entries", "changed", "deleted", "changed meanwhile", "bytes", "sent", "seconds"),
    "rate",
)
_JOBS = ("job", "from", "to", "entries", "bytes", "sent", "deleted", "compared", "downtime", "state")
_HOOKS = ("hook", "list", "host", "when", "seconds", "result")


def render_report(report: Mapping[str, Any]) -> str:
    """Return the report on a job, see ``make_report``, in Markdown."""
    run, failure, source = report["run"], report["failure"], report["identity"]["src_host"]
    lines = [
        f"# {report['name']}",
        "",
        " to ".join(_ends(report)),
        "",
        f"Run {run['at']} by {run['by']}, up to phase {run['phase']}. All times are UTC.",
        "",
    ]
    if failure:
        reason = markdown_text(failure["reason"])
        lines += [f"**Stopped in phase {failure['phase']}** ({failure['at']}): {reason}", ""]
    lines += [report["next"], ""]
    if report["deletions"]:
        lines += [f"**Deletions**: {markdown_text(report['deletions'])}", ""]
    lines += [*_table(_PASSES), *(_pass_row(phase, one) for phase, one in _passes(report["phases"])), ""]
    lines += _comparison(report["phases"])
    if report["forecast"]:
        lines += ["", f"**Downtime to expect**: {_forecast(report)}."]
    if _is_switched(report):
        by = f" by {report['switch']['by']}" if "by" in report["switch"] else ""
        lines += ["", f"**Switched over** on {report['switch']['at']}{by}."]
    if report["downtimes"]:
        lines += ["", "**Downtime**, from the first hook of before_cutover until a host serves again", ""]
    for one in report["downtimes"]:
        rehearsal = " (rehearsal)" if one.get("rehearsal") else ""
        lines += [f"* {one['lasted']} ({one['from']} to {one['to']}), then served by {one['serves']}{rehearsal}"]
    if report["quiesced"] and "quiesced_at" in report:
        lines += ["", f"**Downtime**: {source} is stopped since {report['quiesced_at']}."]
    if report["hooks"]:
        lines += ["", *_table(_HOOKS), *map(_hook_row, report["hooks"])]
    return "\n".join([*lines, *markdown_list("Warnings", report["warnings"]), ""])


def render_summary(report: Mapping[str, Any]) -> list[str]:
    """Return the lines about a job for the terminal."""
    identity, phases, failure = report["identity"], report["phases"], report["failure"]
    predicted, compared = report["predicted"], phases.get("verify")
    made = [one for phase, one in _passes(phases) if phase in ("seed", "sync", "cutover")]
    source, dest = (f"{identity[f'{end}_host']}:{identity[end]}" for end in ("src", "dest"))
    lines = [f"{report['name']}: {source} to {dest}"]
    if report["deletions"]:
        lines.append(f"DELETIONS: {report['deletions']}")
    if predicted:
        deleted = entries_text(predicted["files_deleted"])
        sent = f"would send {format_bytes(predicted['bytes_sent'])} and delete {deleted}"
        lines.append(f"{_amount(predicted)}; {sent} ({_method(predicted)})")
    if made:
        sent = ", then ".join(format_bytes(one["bytes_sent"]) for one in made)
        lines.append(f"{_amount(made[-1])}; sent {sent} ({_method(made[-1])})")
    if compared:
        how, entries = "content" if compared["compared"] == "checksum" else "size", compared["dest"]["entries"]
        lines.append(f"compared: the trees are the same, by {how} and attributes, {entries} entries")
    if report["downtimes"]:
        lines.append(f"downtime: {_lasted(report['downtimes'])}{_foreseen(report)}")
    if report["forecast"]:
        lines.append(f"downtime to expect: {_forecast(report)}")
    lines += [f"warning: {warning}" for warning in report["warnings"] if warning != report["deletions"]]
    if failure:
        lines.append(f"stopped in phase {failure['phase']}: {failure['reason']}")
    lines.append(f"next: {report['next']}")
    return "\n".join(lines).splitlines()


def render_overall(reports: Sequence[Mapping[str, Any]], now: str, by: str) -> str:
    """Return the report on all jobs in Markdown. Their reports may be of earlier versions."""
    failed = [one for one in reports if one["failure"]]
    lines = ["# Migration", "", f"Made {now} by {by}. All times are UTC.", ""]
    if failed:
        lines += ["## Stopped", "", *map(_stop_line, failed), "", "## All jobs", ""]
    lines += [*_table(_JOBS), *map(_job_row, [*failed, *(one for one in reports if not one["failure"])])]
    moved = [one for one in reports if not _goes_back(one)]
    totals = [one.get("totals", {}) for one in moved]
    entries, size, sent, deleted = (
        sum(one.get(name, 0) for one in totals) for name in ("entries", "bytes", "bytes_sent", "files_deleted")
    )
    figures = f"{entries} | {format_bytes(size)} | {format_bytes(sent)} | {deleted}"
    states = f"{len(failed)} stopped, {sum(map(_is_switched, reports))} switched over"
    lines.append(f"| **sum of {len(moved)}** | | | {figures} | | | {states} |")
    return "\n".join([*lines, ""])


def _table(names: Sequence[str]) -> list[str]:
    return [markdown_row(*names), f"|{'---|' * len(names)}"]


def _passes(phases: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the transfers of a job in their order, each with the phase that made it."""
    found = [
        ("preflight (predicted)", phases.get("preflight", {}).get("predicted")),
        ("seed", phases.get("seed")),
        *(("sync", one) for one in phases.get("sync", {}).get("passes", ())),
        ("rehearsal", phases.get("rehearsal", {}).get("cutover")),
        ("cutover", phases.get("cutover")),
    ]
    yield from ((phase, one) for phase, one in found if one)


def _pass_row(phase: str, one: Mapping[str, Any]) -> str:
    total = one["files_total"]
    return markdown_row(
        phase,
        one["at"],
        one["method"],
        total,
        min(one["files_created"] + one["files_updated"] + one["attributes_changed"], total),
        one["files_deleted"],
        one.get("changed_meanwhile", {}).get("count", ""),
        _size(one),
        format_bytes(one["bytes_sent"]),
        round(one["duration"], 1),
        f"{format_bytes(int(one.get('throughput') or 0))}/s",
    )


def _comparison(phases: Mapping[str, Any]) -> list[str]:
    """Return the lines about the last comparison of both trees."""
    found = phases.get("verify", phases.get("verify_failed"))
    if not found:
        return ["**Comparison**: not made yet."]
    places = counted(found["differences_total"], "place", "places")
    verdict = "the trees are the same" if found["identical"] else f"they differ in {places}"
    how = f"content ({found['algorithm']})" if found["compared"] == "checksum" else "size"
    source, dest = (
        f"{one['entries']} entries and {format_bytes(one['bytes'])}" for one in (found["source"], found["dest"])
    )
    return [
        f"**Comparison** ({found['at']}): {verdict}, by {how} and attributes; {source} at the source, {dest} at the "
        f"destination; {round(found['duration'], 1)} s.",
        "",
        *map(_difference, found["differences"]),
    ]


def _difference(one: Mapping[str, Any]) -> str:
    fields = f" in {markdown_text(', '.join(one['fields']))}" if one["fields"] else ""
    return f"- {markdown_code(one['path'])}: {markdown_text(one['kind'])}{fields}"


def _hook_row(one: Mapping[str, Any]) -> str:
    result = one["result"] if one["result"] == "done" else f"**{markdown_text(one['result'])}**"
    return markdown_row(markdown_text(one["name"]), *(one[name] for name in ("kind", "host", "at", "seconds")), result)


def _stop_line(report: Mapping[str, Any]) -> str:
    failure = report["failure"]
    where, reason = f"stopped in phase {failure['phase']} ({failure['at']})", markdown_text(failure["reason"])
    return f"* **{report['name']}** {where}: {reason}. {report['next']}"


def _job_row(report: Mapping[str, Any]) -> str:
    totals, name, phases = report.get("totals"), report["name"], report["phases"]
    predicted = " (predicted)" if report.get("predicted") else ""
    size, sent = (format_bytes(totals[one]) if totals else "" for one in ("bytes", "bytes_sent"))
    entries, deleted = (totals.get(one, "") if totals else "" for one in ("entries", "files_deleted"))
    downtime = _lasted([one for one in report.get("downtimes", ()) if "rehearsal" not in one])
    if not downtime and report.get("forecast") and not _goes_back(report):
        is_known = "seconds" in report["forecast"]
        downtime = f"{'about ' if is_known else ''}{report['forecast']['lasted']} (forecast)"
    state = "switched over" if _is_switched(report) else list(phases)[-1] if phases else "not begun"
    if _goes_back(report) and "sync" in phases:
        state = "copied back"
    if report["failure"]:
        state = f"stopped in {report['failure']['phase']}"
    figures = (entries, size, f"{sent}{predicted}", f"{deleted}{predicted}")
    compared = "the same" if "verify" in phases else "not yet"
    return markdown_row(f"[{name}]({name}.md)", *_ends(report), *figures, compared, downtime, state)


def _ends(report: Mapping[str, Any]) -> list[str]:
    identity = report["identity"]
    return [f"{identity[f'{end}_host']}:{markdown_code(identity[end])}" for end in ("src", "dest")]


def _goes_back(report: Mapping[str, Any]) -> bool:
    """Return whether a job copies back what the new host has: nothing stops for that, and no tree moves."""
    return bool(report["identity"]["dest"].endswith(BACK))


def _is_switched(report: Mapping[str, Any]) -> bool:
    return bool(report["switch"].get("done"))


def _forecast(report: Mapping[str, Any]) -> str:
    told = report["forecast"]
    return f"about {told['lasted']}, {told['why']}" if "seconds" in told else f"{told['lasted']}: {told['why']}"


def _foreseen(report: Mapping[str, Any]) -> str:
    """Return what was forecast beside what it came to, for the end of a line; empty if there is nothing to say."""
    found = report.get("foreseen", {})
    if "forecast" not in found or "real" not in found:
        return ""
    return f"; {found['of']} took {found['real_lasted']}, and the forecast was {found['forecast_lasted']}"


def _lasted(downtimes: Sequence[Mapping[str, Any]]) -> str:
    return ", then ".join(one["lasted"] for one in downtimes)


def _amount(one: Mapping[str, Any]) -> str:
    return f"{one['files_total']} entries, {_size(one)}"


def _size(one: Mapping[str, Any]) -> str:
    return format_size(one["bytes_total"], one.get("bytes_apparent", 0))


def _method(one: Mapping[str, Any]) -> str:
    return f"method {one['method']}{'' if one.get('encrypted') else ', not encrypted'}"
