# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of a benchmark as lines for a terminal. Pure."""

from __future__ import annotations

from ..common.host_text import one_line
from ..common.units import format_bytes, format_duration
from .measurement import (
    BenchmarkResult,
    Candidate,
    DiskMeasurement,
    LinkRates,
    PairMeasurement,
    Prediction,
    ProcessorMeasurement,
)
from .recommend import describe

_LISTED = 20  # gaps
_UNKNOWN = "not measured"
_COMPRESSES = 1.05  # from this factor on
_FASTEST_DISK = 12e9  # bytes a second: faster than one NVMe disk
_HEAD = ("method", "plain", "compressed", "first byte", "cores", "resumes", "")


def result_lines(result: BenchmarkResult) -> list[str]:
    """Return the whole result: what was measured, the table of methods, the recommendation and the predictions."""
    measured = result.measurement
    cost = f"{measured.seconds:.0f} s, {format_bytes(measured.bytes_sent)} sent"
    lines = [f"{measured.source} -> {measured.dest}: benchmark ({cost})", *_measured_lines(measured), ""]
    lines += _table([_HEAD, *(_row(one) for one in result.candidates)])
    lines += ["", *_concluded_lines(result)]
    if measured.gaps:
        lines += ["Not measured:", *(f"  {one_line(gap)}" for gap in measured.gaps[:_LISTED])]
        lines += [f"  and {len(measured.gaps) - _LISTED} more"] if len(measured.gaps) > _LISTED else []
    return lines


def _measured_lines(measured: PairMeasurement) -> list[str]:
    link = measured.link
    facts = [f"round trip {link.round_trip * 1000:.1f} ms", f"loss {link.loss:.1%}"]
    facts += [f"path MTU {link.path_mtu}"] if link.path_mtu else []
    facts += [one_line(link.congestion)] if link.congestion else []
    lines = [
        f"  line there:  {_link(link.forth)}; {', '.join(facts)}",
        f"  line back:   {_link(link.back)}",
    ]
    for side, name, verb in (("source", measured.source, "reads"), ("dest", measured.dest, "writes")):
        disk = measured.disks.get(side, DiskMeasurement())
        note = f"; {one_line(disk.note)}" if disk.note else ""
        counts = f"{_count(disk.small)} small files/s, looks at {_count(disk.entries)} entries/s"
        said = f"{verb} {tell_rate(disk.large)}{_of_memory(disk)}, {counts}"
        lines.append(f"  disk:        {name} {said}{note}" if disk.large else f"  disk:        {name} {_UNKNOWN}{note}")
    for side, name in (("source", measured.source), ("dest", measured.dest)):
        one = measured.processors.get(side, ProcessorMeasurement())
        known = {"TLS": one.ciphers.get("tls", 0.0), **one.hashes, **one.compression}
        rates = ", ".join(f"{one_line(what)} {tell_rate(rate)}" for what, rate in known.items() if rate)
        cores = f"{one.cores} core{'' if one.cores == 1 else 's'}, {one.load:.0%} used by others"
        lines.append(f"  processor:   {name} {cores}{'; one core: ' + rates if rates else ''}")
    tree = measured.tree
    if tree.entries:
        whole = "" if tree.is_complete else ", estimated from a part of it"
        lines.append(
            f"  tree:        {tree.entries:,} entries, {format_bytes(tree.bytes_on_disk)} on disk, "
            f"{format_bytes(tree.large_bytes)} in large files, {_compression(tree.ratio)}{whole}"
        )
    return lines


def _compression(ratio: float) -> str:
    return f"compresses by a factor of {ratio:.1f}" if ratio >= _COMPRESSES else "does not compress"


def _of_memory(disk: DiskMeasurement) -> str:
    """Return a note on a rate that no disk has; empty for others."""
    return " (from memory: no disk is that fast)" if disk.large > _FASTEST_DISK else ""


def _link(rates: LinkRates) -> str:
    if not (rates.one_stream or rates.several_streams):
        return _UNKNOWN
    return (
        f"{tell_rate(rates.one_stream)} on one connection, {tell_rate(rates.several_streams)} on {rates.streams}, "
        f"{tell_rate(rates.encrypted)} encrypted"
    )


def _row(one: Candidate) -> tuple[str, ...]:
    refused = f"not allowed: {one_line(one.refused)}" if not one.allowed else ""
    kind = ("derived" if one.derived else "measured") + ("" if one.encrypted else ", not encrypted")
    if not one.plain:
        return (describe(one), "-", "-", "-", "-", "-", refused or _UNKNOWN)
    return (
        describe(one),
        tell_rate(one.plain),
        tell_rate(one.compressed) if one.compressed else "-",
        f"{one.first_byte:.1f} s",
        "+".join(f"{one.processor.get(side, 0.0):.1f}" for side in ("source", "dest")),
        one.resumes,
        f"{kind}; {refused}" if refused else kind,
    )


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Return rows with columns of equal width; the last one is as long as it is."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD) - 1)]
    lines = []
    for row in rows:
        numbers = [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:], strict=True)]
        lines.append("  ".join(["", row[0].ljust(widths[0]), *numbers, row[-1]]).rstrip())
    return lines


def _concluded_lines(result: BenchmarkResult) -> list[str]:
    found = result.recommendation
    if found is None:
        return ["No method is allowed and can run, or the line was not measured: see the table."]
    streams = f"{found.streams} stream{'' if found.streams == 1 else 's'}"
    lines = [
        f"Recommended: {describe(found)}, {streams}, compress: {found.compress}, connect: {found.connect}",
        f"  {one_line(found.reason)}",
    ]
    if result.bottleneck:
        lines.append(f"Bottleneck: {one_line(result.bottleneck)} {one_line(result.advice)}".rstrip())
    if result.measurement.tree.entries:
        lines += [
            f"First copy:          {_times(found.first_copy)}",
            f"Without changes:     {_times(found.unchanged)}",
            f"Content comparison:  {_times(found.comparison)}",
        ]
    return lines


def _times(took: Prediction) -> str:
    return f"{format_duration(took.seconds)} ({format_duration(took.low)} to {format_duration(took.high)})"


def tell_rate(rate: float) -> str:
    """Return bytes a second; 0 was not measured."""
    return f"{format_bytes(rate)}/s" if rate else _UNKNOWN


def _count(rate: float) -> str:
    return f"{rate:,.0f}" if rate else "?"
