# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole report: as text for a terminal and for the page in docs, and how it gets into that page. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.longhaul.fleet.tests.bench import machine, table, targets, versions
from ansible_collections.longhaul.fleet.tests.bench.measuring import Figure, figure_from_json

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
REFERENCES = {  # what the tools of a part, by the name before a colon, are compared with
    "start": "rsync -aHAX daemon",
    "large": "rsync -aHAX daemon",
    "small": "rsync -aHAX daemon",
    "warm": "rsync -aHAX daemon",
    "sparse": "rsync -aHAXS daemon",
    "changed": "rsync -aHAX daemon",
    "image backup": "rsync --link-dest daemon",
    "gigabit": "rsync -aHAX daemon",
    "long line": "rsync -aHAX daemon",
    "text": "stream TLS compress none",
    "backup": "rsync --link-dest ssh",
    "prune": "rm -r",
    "entries": "rsync -aHAX daemon",
    "disk": "rsync -aHAX daemon",
}


def as_json(
    described: Mapping[str, Any],
    options: Mapping[str, Any],
    titles: Mapping[str, str],
    sizes: Mapping[str, int],
    figures: Sequence[Figure],
    notes: Sequence[str],
) -> dict[str, Any]:
    """Return the report. ``titles`` say what each part is, ``sizes`` are the bytes that move in it."""
    return {
        "machine": dict(described),
        "options": dict(options),
        "titles": dict(titles),
        "sizes": dict(sizes),
        "figures": [figure.as_json() for figure in figures],
        "targets": [targets.as_json(seen) for seen in targets.judge(figures)],
        "notes": list(notes),
    }


class OtherReport(ValueError):
    """A report that another one cannot be added to."""


def refuse_others(earlier: Mapping[str, Any], described: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raise OtherReport if an earlier report is not of the same sizes, or not of the same machine.

    Each part is measured in one go, but the table of targets has them all.
    """
    sizes = [{name: one[name] for name in ("mib", "files", "repeat")} for one in (earlier["options"], options)]
    machines = [(one["processor"], one["kernel"]) for one in (earlier["machine"], described)]
    if sizes[0] != sizes[1] or machines[0] != machines[1]:
        raise OtherReport("the last report is of another machine or of other sizes, so nothing can be added to it")


def joined(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return a later report with those parts of an earlier one that it has not measured itself.

    Raises OtherReport as ``refuse_others`` does.
    """
    refuse_others(earlier, later["machine"], later["options"])
    parts = {figure["part"] for figure in later["figures"]}
    figures = [figure for figure in earlier["figures"] if figure["part"] not in parts] + later["figures"]
    order = list(later["titles"])
    figures.sort(key=lambda figure: (order.index(figure["part"].partition(":")[0]), order.index(figure["part"])))
    notes = [note for note in earlier["notes"] if note.partition(":")[0] not in parts] + later["notes"]
    reached = [targets.as_json(seen) for seen in targets.judge(figure_from_json(read) for read in figures)]
    options = {**later["options"], "entries": max(one["options"]["entries"] for one in (earlier, later))}
    return {**later, "options": options, "figures": figures, "notes": notes, "targets": reached}


def markdown(report: Mapping[str, Any]) -> str:
    """Write a report for people."""
    figures = [figure_from_json(read) for read in report["figures"]]
    options = report["options"]
    lines = [
        machine.sentence(report["machine"]),
        f"{options['mib']} MiB of large files, {options['files']:,} small ones; median of {options['repeat']}.",
        "",
        table.targets_table(targets.judge(figures)),
    ]
    for part, found in table.by_part(figures).items():
        lines += [f"### {part}: {report['titles'].get(part, part)}", ""]
        lines.append(
            table.figures_table(found, report["sizes"].get(part, 0), REFERENCES.get(part.partition(":")[0], ""))
        )
    lines += versions.section(figures)
    failed = [figure for figure in figures if figure.failed]
    failures = [f"* {one.part}: {one.tool} failed: {_why(one.failed)}" for one in failed]
    remarks = [*failures, *(f"* {note}" for note in report["notes"])]
    if remarks:
        lines += ["Not measured:", "", *remarks, ""]
    return "\n".join(lines)


def _why(failure: str) -> str:
    """Name the kind of a failure; its text may hold paths of the machine, which do not belong on a page."""
    return f"{failure.partition(':')[0]}, see the report"


def replace_figures(page: str, text: str) -> str:
    """Put text between the markers of a page. Raise ValueError if it has not one of each, in this order."""
    before, begin, rest = page.partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in after:
        raise ValueError(f"the page must have {BEGIN} and then {END}, once each, on lines of their own")
    return f"{before}{BEGIN}\n\n{text.strip()}\n\n{END}{after}"
