# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recommend a method for a measured pair, and predict how long its transfers take, with a range. Pure.

A prediction is the time of the whole task: what Ansible takes to ask both hosts, the start of the method, its slowest
part, and the comparison by size at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..common.units import format_bytes, format_duration
from ..transfer.diagnosis import DEST_CPU, DEST_DISK, NETWORK, SOURCE_CPU, SOURCE_DISK
from ..transfer.methods import METHODS
from .abilities import Ability
from .candidates import (
    COMPARED,
    COSTS,
    READ,
    SIDES,
    best_algorithm,
    count_streams,
    disk_of,
    file_speed,
    find_parts,
    machine_speed,
    processor_of,
)
from .measurement import (
    BenchmarkResult,
    Candidate,
    DiskMeasurement,
    PairMeasurement,
    Prediction,
    ProcessorMeasurement,
    Recommendation,
)

# The whole task less its job, of a transfer of one file: docs/benchmarks.md, "start", on hosts beside the control node.
ASKED = 1.4
# As many executions of Ansible as measured on the pair: what a task takes beside its job, as twelve trees of a quiet
# machine had it (make soak ARGS="predictions 12"). A transfer that has run before needs no probe of its own.
_OF_FIRST, OF_PASS, OF_COMPARISON = 6.5, 4.3, 3.7
_WORTH = 1.1  # compression must make it so many times as fast
_AS_GOOD = 1.05  # times the fastest method's time: then the first in the order of transfer/methods is taken
_HOLES_SENT = ("rsync", "rsyncd", "scp", "sftp")  # as zeros: docs/choose-a-method.md
# Shares by which a prediction may miss: two runs of one program on one machine differ by a tenth (docs/benchmarks.md,
# "spread"), and what is derived from parts by twice that. Each thing that is not known widens the range.
_SPREAD, _OF_GAP, _OF_ESTIMATE, _MOST = 0.2, 0.1, 0.2, 0.6
_UNSTEADY = 1.0  # seconds by which the fixed part differs, at least


@dataclass(frozen=True)
class Way:
    """One method as it would run for a tree, and how long the first copy takes."""

    ability: Ability
    candidate: Candidate
    compress: str  # as the option of transfer
    seconds: float


def conclude(
    measured: PairMeasurement,
    abilities: tuple[Ability, ...],
    candidates: tuple[Candidate, ...],
    src: str = "",
    dest: str = "",
) -> BenchmarkResult:
    """Return the whole result for a pair. ``candidates`` are those of the abilities, in their order."""
    ways = _sort_ways(measured, abilities, candidates)
    recommendation = _recommend(measured, ways) if ways else None
    sentence, advice = explain_bottleneck(measured, ways[0]) if ways else ("", "")
    return BenchmarkResult(
        measurement=measured,
        candidates=candidates,
        recommendation=recommendation,
        bottleneck=sentence,
        advice=advice,
        src=src,
        dest=dest,
    )


def _sort_ways(
    measured: PairMeasurement, abilities: tuple[Ability, ...], candidates: tuple[Candidate, ...]
) -> list[Way]:
    """Return the ways that are allowed and of known speed, the best first."""
    ways = []
    for ability, candidate in zip(abilities, candidates, strict=True):
        if candidate.allowed and candidate.plain > 0:
            compress = _choose_compression(measured, ability, candidate)
            ways.append(Way(ability, candidate, compress, copy_seconds(measured, ability, candidate, compress)))
    asked = asked_seconds(measured, _OF_FIRST)
    quickest = min((way.seconds - asked for way in ways), default=0.0)

    def order(way: Way) -> tuple[bool, int, bool, float]:
        if way.seconds - asked > quickest * _AS_GOOD:
            return True, 0, False, way.seconds
        return False, METHODS.index(way.ability.method), not way.candidate.encrypted, way.seconds

    return sorted(ways, key=order)


def _choose_compression(measured: PairMeasurement, ability: Ability, candidate: Candidate) -> str:
    """Return the value of the option: auto with stream, which measures on its way, where compression pays."""
    if candidate.compressed <= candidate.plain * _WORTH:
        return "none"
    return "auto" if ability.method == "stream" else best_algorithm(measured, ability)


def _recommend(measured: PairMeasurement, ways: list[Way]) -> Recommendation:
    best = ways[0]
    return Recommendation(
        method=best.ability.method,
        variant=best.ability.variant,
        streams=count_streams(measured, best.ability.method),
        compress=best.compress,
        connect=measured.link.connect or "auto",
        reason=_reason(measured, ways),
        first_copy=predict_first_copy(measured, best),
        unchanged=predict_unchanged(measured, best.ability),
        comparison=predict_comparison(measured),
    )


def _reason(measured: PairMeasurement, ways: list[Way]) -> str:
    best, name = ways[0], describe(ways[0].ability)
    top = _rate(best)
    known = "moves" if not best.candidate.derived else "can move"
    text = f"{name} {known} {format_bytes(top)} of files a second between these hosts"
    if best.compress != "none":
        text += (
            f" with compression by a factor of {measured.tree.ratio:.1f}, {format_bytes(best.candidate.plain)} without"
        )
    others = [way for way in ways if way.ability.method != best.ability.method]
    if not others:
        return f"{text}, and no other method is allowed and can run."
    other = others[0]
    rate = _rate(other)
    faster = _faster_ways(measured, [way for way in others if _rate(way) > top])
    took = f"{format_duration(best.seconds)} for the first copy against {format_duration(other.seconds)}"
    if measured.tree.entries:
        return f"{text}, the next best, {describe(other.ability)}, {format_bytes(rate)}: {took}.{faster}"
    return f"{text}, the next best, {describe(other.ability)}, {format_bytes(rate)}.{faster}"


def _rate(way: Way) -> float:
    """Return the bytes of files a second that a way can move, with the compression that it would use."""
    return max(way.candidate.plain, way.candidate.compressed if way.compress != "none" else 0.0)


def _faster_ways(measured: PairMeasurement, ways: list[Way]) -> str:
    """Return a sentence on why methods with a higher rate are not recommended; empty if there are none."""
    if not ways:
        return ""
    if measured.tree.entries:
        named = [f"{describe(way.ability)} {format_bytes(_rate(way))} ({format_duration(way.seconds)})" for way in ways]
        why = "but their first copy of this tree takes longer, or is hardly shorter"
    else:
        named = [
            f"{describe(way.ability)} {format_bytes(_rate(way))} (after {format_duration(way.candidate.first_byte)})"
            for way in ways
        ]
        why = "but start later, which decides if no tree is known"
    return f" Others have a higher rate, {why}: {', '.join(named)}."


def describe(ability: Ability | Candidate | Recommendation) -> str:
    """Return a method with its variant, as tables and sentences name it."""
    return f"{ability.method} ({ability.variant})" if ability.variant else ability.method


# Predictions


def predict_first_copy(measured: PairMeasurement, way: Way) -> Prediction:
    """Return how long the first copy of the tree takes."""
    return _with_range(measured, asked_seconds(measured, _OF_FIRST), way.seconds)


def predict_unchanged(measured: PairMeasurement, ability: Ability) -> Prediction:
    """Return how long a pass takes that finds nothing to do."""
    costs, entries = COSTS[ability.method], measured.tree.entries
    started = costs.start / _slower_core(measured) + costs.start_trips * measured.link.round_trip
    looked = max(_look_seconds(measured), entries * costs.entry / _file_speed(measured))
    asked = asked_seconds(measured, OF_PASS)
    return _with_range(measured, asked, asked + started + looked + _compared_by_size(measured))


def predict_comparison(measured: PairMeasurement) -> Prediction:
    """Return how long both trees take to be compared by content. Both are read at the same time."""
    seconds = max(_read_seconds(measured, side) for side in SIDES)
    asked = asked_seconds(measured, OF_COMPARISON)
    return _with_range(measured, asked, asked + max(seconds, _compared_by_size(measured)))


def copy_seconds(measured: PairMeasurement, ability: Ability, candidate: Candidate, compress: str) -> float:
    """Return the seconds of the first copy, of which each part of the way takes its own at the same time."""
    tree, costs, speed = measured.tree, COSTS[ability.method], _file_speed(measured)
    moved = max(part_seconds(measured, ability, compress).values(), default=0.0)
    if not candidate.derived:  # it ran here: what was seen of it counts
        seen = max(candidate.plain, candidate.compressed if compress != "none" else 0.0)
        moved = max(_content(measured, ability.method) / seen, tree.files * costs.file / speed)
    return (
        asked_seconds(measured, _OF_FIRST)
        + candidate.first_byte
        + max(moved, _look_seconds(measured))
        + _compared_by_size(measured)
    )


def part_seconds(measured: PairMeasurement, ability: Ability, compress: str) -> dict[str, float]:
    """Return the seconds that each part of the way takes for the tree, by the names of transfer/bottleneck."""
    tree, costs, speed = measured.tree, COSTS[ability.method], _file_speed(measured)
    content = _content(measured, ability.method)
    parts = find_parts(measured, ability, compressed=compress != "none")
    took = {name: content / rate for name, rate in parts.rates.items() if rate > 0}
    for side, name in (("source", SOURCE_DISK), ("dest", DEST_DISK)):
        disk = disk_of(measured, side)
        if content > tree.large_bytes and disk.small > 0:
            large = tree.large_bytes / disk.large if disk.large > 0 else 0.0
            took[name] = max(took.get(name, 0.0), large + tree.files / disk.small)
    for name in (SOURCE_CPU, DEST_CPU):
        took[name] = took.get(name, 0.0) + tree.files * costs.file / speed
    took[NETWORK] = took.get(NETWORK, 0.0) + tree.files * costs.file_trips * measured.link.round_trip
    return took


def _content(measured: PairMeasurement, method: str) -> int:
    """Return the bytes of files that a method sends of the tree, before compression."""
    tree = measured.tree
    if method in _HOLES_SENT or not tree.bytes_on_disk:
        return tree.bytes_apparent
    return min(tree.bytes_on_disk, tree.bytes_apparent or tree.bytes_on_disk)


def _look_seconds(measured: PairMeasurement) -> float:
    """Return the seconds in which all entries of the tree are looked at, where that takes longest."""
    rates = [disk_of(measured, side).entries for side in SIDES]
    return max((measured.tree.entries / rate for rate in rates if rate > 0), default=0.0)


def _compared_by_size(measured: PairMeasurement) -> float:
    return max(_look_seconds(measured), measured.tree.entries * COMPARED / _file_speed(measured))


def _read_seconds(measured: PairMeasurement, side: str) -> float:
    """Return the seconds in which one side reads and hashes the whole tree. Holes are hashed as zeros."""
    tree, disk = measured.tree, disk_of(measured, side)
    content = min(tree.bytes_on_disk or tree.bytes_apparent, tree.bytes_apparent)
    hashed = max(processor_of(measured, side).hashes.values(), default=0.0)
    rate = disk.compared or min((one for one in (disk.large, hashed) if one > 0), default=0.0)
    if rate <= 0:
        return 0.0
    took = content / rate + (tree.bytes_apparent - content) / (hashed or rate)
    if content > tree.large_bytes:
        opened = tree.files * READ / _file_speed(measured)
        if side == "source" and disk.small > 0:  # at the destination it is the rate of writing them
            opened = max(opened, tree.files / disk.small)
        took += opened + _compared_by_size(measured)
    return took


def _slower_core(measured: PairMeasurement) -> float:
    """Return the speed of the slower host's cores, of which others leave a part."""
    return min(machine_speed(one) * _idle_core(one) for one in _processors(measured))


def _processors(measured: PairMeasurement) -> list[ProcessorMeasurement]:
    return [processor_of(measured, side) for side in SIDES]


def _idle_core(one: ProcessorMeasurement) -> float:
    """Return the part of a core that others leave."""
    return max(0.1, min(1.0, one.cores * (1.0 - one.load)))


def _file_speed(measured: PairMeasurement) -> float:
    """Return the speed at which the slower host works on files with one core, of which others leave a part."""
    return min(file_speed(measured) * _idle_core(one) for one in _processors(measured))


def asked_seconds(measured: PairMeasurement, executions: float) -> float:
    """Return the seconds of a task without its job: those in which Ansible asks both hosts."""
    return measured.execution * executions or ASKED


def _with_range(measured: PairMeasurement, asked: float, seconds: float) -> Prediction:
    """Return a time, of which Ansible takes ``asked``, with the range in which it is to be expected."""
    load = max((one.load for one in measured.processors.values()), default=0.0)
    spread = _SPREAD + _OF_GAP * len(measured.gaps) + (0.0 if measured.tree.is_complete else _OF_ESTIMATE)
    spread = min(_MOST, spread)
    unsteady = max(_UNSTEADY, asked * _SPREAD)
    low = max(0.0, (seconds - asked) * (1.0 - spread) + asked - unsteady)
    return Prediction(seconds, low, (seconds - asked) * (1.0 + spread + load) + asked + unsteady)


# The bottleneck


_WORDS = {
    SOURCE_DISK: "the source's disk",
    SOURCE_CPU: "one core of the source",
    NETWORK: "the network",
    DEST_CPU: "one core of the destination",
    DEST_DISK: "the destination's disk",
}
_ADVICE = {
    SOURCE_DISK: "A faster disk at the source would help; a faster network or more streams would not.",
    SOURCE_CPU: "A faster processor or a cheaper cipher at the source would help; a faster disk would not.",
    NETWORK: "A faster line or compression would help; faster disks and processors would not.",
    DEST_CPU: "A faster processor or a cheaper cipher at the destination would help; a faster disk would not.",
    DEST_DISK: "A faster disk at the destination would help; a faster network or more streams would not.",
}


def explain_bottleneck(measured: PairMeasurement, way: Way) -> tuple[str, str]:
    """Return one sentence that names the slowest part of the recommended way, with numbers, and one of advice."""
    took = part_seconds(measured, way.ability, way.compress)
    if not any(took.values()):  # no tree: one byte as good as another
        rates = find_parts(measured, way.ability, compressed=way.compress != "none").rates
        took = {name: 1.0 / rate for name, rate in rates.items() if rate > 0}
    slowest = sorted((name for name in took if took[name] > 0), key=lambda name: -took[name])
    if not slowest:
        return "", ""
    content = _content(measured, way.ability.method) or 1
    said = [
        f"{_WORDS[name]}{_by_small_files(measured, name)}, with {format_bytes(content / took[name])}/s"
        for name in slowest[:2]
    ]
    sentence = f"The slowest part of the way for {describe(way.ability)} is {said[0]}"
    next_one = f"; the next is {said[1]}" if len(said) > 1 else ""
    return f"{sentence}{next_one}.", _ADVICE[slowest[0]]


def _by_small_files(measured: PairMeasurement, name: str) -> str:
    """Return a clause that a disk is slow with the small files of the tree, if these take most of its time."""
    tree, side = measured.tree, {SOURCE_DISK: "source", DEST_DISK: "dest"}.get(name)
    disk = disk_of(measured, side) if side else DiskMeasurement()
    if not (tree.entries and disk.small > 0 and disk.large > 0):
        return ""
    return " with small files" if tree.files / disk.small > tree.bytes_on_disk / disk.large else ""
