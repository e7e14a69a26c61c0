# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The progress of a job over time: a bounded number of samples, kept with its state for the charts of reports. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...common.typed_json import SPARSE

MOST_SAMPLES = 200  # of a job
_POINTS = 60  # of one pass, about, before it is thinned
_GAP = 4  # usual distances between two samples after which nothing is known of the time between
_LEAST_GAP = 60  # seconds
_PREDICTS = "preflight"  # the phase that only predicts a transfer


@dataclass
class ProgressSample:
    """How far a transfer was at a time."""

    at: int  # seconds since 1970
    phase: str
    bytes_done: int = field(default=0, metadata=SPARSE)
    bytes_total: int = field(default=0, metadata=SPARSE)  # 0: not known yet
    files_done: int = field(default=0, metadata=SPARSE)
    files_total: int = field(default=0, metadata=SPARSE)
    bwlimit: int = field(default=0, metadata=SPARSE)  # bytes a second that were allowed; 0: any number


def is_due(samples: Sequence[ProgressSample], phase: str, now: float) -> bool:
    """Whether a sample is worth its room: one a second at the begin of a pass, and fewer the longer it takes.

    None is of the preflight, which copies nothing: it would be taken for what is left of a pass.
    """
    if phase == _PREDICTS:
        return False
    if not samples or samples[-1].phase != phase:
        return True
    since = now - samples[-1].at
    if since < 1:
        return False
    passes = split_passes(samples)
    return since >= (now - passes[-1][0].at) / _POINTS


def add_sample(samples: Sequence[ProgressSample], new: ProgressSample) -> list[ProgressSample]:
    """Return the samples with a new one. Where they are too many, every second one of the longest pass is dropped."""
    kept = [*samples, new]
    if len(kept) <= MOST_SAMPLES:
        return kept
    passes = split_passes(kept)
    longest = max(range(len(passes)), key=lambda number: len(passes[number]))
    if len(passes[longest]) < 4:  # more passes than there is room for
        return kept[-MOST_SAMPLES:]
    passes[longest] = [*passes[longest][:-1:2], passes[longest][-1]]
    return [one for part in passes for one in part]


def split_passes(samples: Sequence[ProgressSample]) -> list[list[ProgressSample]]:
    """Return the samples of each pass: one ends where the phase changes, or where less is done than before."""
    passes: list[list[ProgressSample]] = []
    for one in samples:
        before = passes[-1][-1] if passes else None
        if before is None or one.phase != before.phase or one.bytes_done < before.bytes_done or one.at < before.at:
            passes.append([])
        passes[-1].append(one)
    return passes


def split_gaps(samples: Sequence[ProgressSample]) -> list[list[ProgressSample]]:
    """Return the samples of a pass in parts, between which the run was interrupted."""
    distances = sorted(after.at - before.at for before, after in zip(samples, samples[1:]))
    usual = distances[len(distances) // 2] if distances else 0
    parts: list[list[ProgressSample]] = []
    for one in samples:
        if not parts or one.at - parts[-1][-1].at > max(_LEAST_GAP, _GAP * usual):
            parts.append([])
        parts[-1].append(one)
    return parts


def latest_rate(samples: Sequence[ProgressSample]) -> float | None:
    """Return the bytes a second of the last pass of late: over the last third of its samples. None: not known."""
    if not samples:
        return None
    part = split_gaps(split_passes(samples)[-1])[-1]
    first, last = part[-max(2, len(part) // 3) :][0], part[-1]
    if last.at <= first.at:
        return None
    return (last.bytes_done - first.bytes_done) / (last.at - first.at)


def bytes_left(samples: Sequence[ProgressSample]) -> int | None:
    """Return the bytes that the last pass had left at its last sample; None if that is not known."""
    last = samples[-1] if samples else None
    return max(0, last.bytes_total - last.bytes_done) if last is not None and last.bytes_total else None
