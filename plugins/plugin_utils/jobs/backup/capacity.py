# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The room of repositories, and the day on which each will be full, as pages show it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

from ...common.units import both_times, format_bytes, seconds_of, shown_time
from ...report.charts import thin
from ...report.model import (
    Cell,
    ChartRow,
    Column,
    Curve,
    Fact,
    LineChart,
    Notice,
    PageBlock,
    Point,
    Table,
    Tone,
    Unit,
)
from .health import JobHealth
from .state import RepositorySpace, RunFigures

_DAY = 86400
_MOST_CURVES = 4
_MOST_POINTS = 300  # of the room of a repository, whatever the number of its jobs
_TREND_DAYS = 30.0  # of which the day is told on which a repository is full
_FULL = 0.05  # share of bytes or inodes below which a repository needs attention
_FARTHEST = 3650.0  # days until one is full, beyond which a trend says nothing
_SOON = 14.0  # days until one is full from which on it needs attention


class RepositoryStanding(NamedTuple):
    """The room of a repository, and when it will be full as far as can be told."""

    name: str
    jobs: int
    space: RepositorySpace
    at: str  # when that was
    bytes_a_day: float | None  # that become less
    days_left: float | None  # None: it does not become full, or that is not known
    inode_days_left: float | None
    history: Sequence[RunFigures]  # with free space, the oldest first

    @property
    def days(self) -> float | None:
        """The days until it is full, of bytes or of inodes. None: it does not become full, or that is not known."""
        return min((left for left in (self.days_left, self.inode_days_left) if left is not None), default=None)

    @property
    def full_on(self) -> str:
        """The day on which it is full, as reports have it; empty if that is not known or far away."""
        if self.days is None or not self.at or self.days > _FARTHEST:
            return ""
        return both_times((seconds_of(self.at) or 0) + self.days * _DAY)[: len("2026-01-01")]


class SeenSpace(NamedTuple):
    """The room of a repository at a time."""

    space: RepositorySpace
    at: str


def find_repositories(
    health: Sequence[JobHealth], seen: Mapping[str, SeenSpace] = MappingProxyType({})
) -> list[RepositoryStanding]:
    """Return the repositories whose room is known or once was, in the order of the jobs.

    ``seen`` is the room of repositories (``HOST:PATH``) that were asked now; else that of the last run counts.
    """
    jobs: dict[str, list[JobHealth]] = {}
    for one in health:
        jobs.setdefault(name_of(one), []).append(one)
    return [_standing_of(name, members, seen.get(name)) for name, members in jobs.items()]


def name_of(one: JobHealth) -> str:
    """Return the name of the repository of a job."""
    return f"{one.repository['host']}:{one.repository['path']}"


def _standing_of(name: str, jobs: Sequence[JobHealth], seen: SeenSpace | None) -> RepositoryStanding:
    records = [one.record for one in jobs if one.record is not None]
    history = [figures for record in records for figures in record.history if figures.bytes_free is not None]
    history.sort(key=lambda figures: figures.at)
    history = thin(history, _MOST_POINTS)
    last = max((record for record in records if record.space is not None), key=lambda one: one.ended, default=None)
    if seen is None and last is not None and last.space is not None:
        seen = SeenSpace(last.space, last.ended)
    space, at = seen or SeenSpace(RepositorySpace(), "")
    used = used_a_day([(figures.at, float(figures.bytes_free or 0)) for figures in history])
    inodes = used_a_day(
        [(figures.at, float(figures.files_free)) for figures in history if figures.files_free is not None]
    )
    return RepositoryStanding(
        name,
        len(jobs),
        space,
        at,
        used,
        space.bytes_free / used if used and used > 0 and space.bytes_free is not None else None,
        space.files_free / inodes if inodes and inodes > 0 and space.files_free is not None else None,
        history,
    )


def used_a_day(free: Sequence[tuple[str, float]]) -> float | None:
    """Return how much less is free each day, by the least squares of the last 30 days. None: known for too short."""
    points = [((seconds_of(at) or 0) / _DAY, value) for at, value in free]
    points = [(day, value) for day, value in points if day >= points[-1][0] - _TREND_DAYS]
    if len(points) < 3 or points[-1][0] - points[0][0] < 1:
        return None
    middle = sum(day for day, _value in points) / len(points)
    spread = sum((day - middle) ** 2 for day, _value in points)
    return -sum((day - middle) * value for day, value in points) / spread if spread else None


def repository_notices(one: RepositoryStanding) -> list[Notice]:
    space, found = one.space, []
    for what, free, total, left in (
        ("room", space.bytes_free, space.bytes_total, one.days_left),
        ("inodes", space.files_free, space.files_total, one.inode_days_left),
    ):
        is_low = free is not None and total and free < _FULL * total
        if is_low or (left is not None and left < _SOON):
            shown = "not known" if free is None else format_bytes(free) if what == "room" else f"{free:,}"
            when = f"; full in about {max(0, round(left))} days" if left is not None else ""
            advice = "Prune more, or give it more room, before backups fail."
            found.append(Notice(f"{one.name} has little {what} left", f"{shown} free{when}", advice, Tone.CAUTION))
    return found


def repository_blocks(repositories: Sequence[RepositoryStanding]) -> list[PageBlock]:
    numbers = ("Jobs", "Free", "Inodes free", "Less a day")
    columns = [Column(title, is_number=title in numbers) for title in ("Repository", *numbers, "Full on", "Seen")]
    table = Table("Room on the file system of each repository", columns, [_repository_row(one) for one in repositories])
    drawn = [one for one in repositories if len(one.history) > 1][:_MOST_CURVES]
    if not drawn:
        return [table]
    curves = [
        Curve(one.name, [[Point(seconds_of(seen.at) or 0, float(seen.bytes_free or 0)) for seen in one.history]])
        for one in drawn
    ]
    told = [f"{one.name} {format_bytes(one.space.bytes_free)}" for one in drawn if one.space.bytes_free is not None]
    return [table, ChartRow([LineChart("Free space", f"At last: {', '.join(told)}.", Unit.BYTES, curves)])]


def _repository_row(one: RepositoryStanding) -> Sequence[Cell]:
    space = one.space
    return (
        Cell(one.name),
        Cell(str(one.jobs)),
        _free_cell(space.bytes_free, space.bytes_total, Unit.BYTES),
        _free_cell(space.files_free, space.files_total, Unit.COUNT),
        Cell("not known yet" if one.bytes_a_day is None else format_bytes(max(0.0, one.bytes_a_day))),
        _full_cell(one),
        Cell(shown_time(one.at) or "never"),
    )


def _free_cell(free: int | None, total: int | None, unit: Unit) -> Cell:
    if free is None:
        return Cell("not known" if unit is Unit.BYTES else "no fixed number")
    share = free / total if total else None
    tone = Tone.CAUTION if share is not None and share < _FULL else Tone.PLAIN
    note = f"{100 * share:.0f} % of {unit.format(total or 0)}" if share is not None else ""
    return Cell(unit.format(free), tone, note, share)


def _full_cell(one: RepositoryStanding) -> Cell:
    if one.days is None or not one.at:
        return Cell("not known yet" if one.bytes_a_day is None else "not by this trend")
    if not one.full_on:
        return Cell("in more than 10 years")
    by = " (inodes)" if one.inode_days_left == one.days else ""
    tone = Tone.CAUTION if one.days < _SOON else Tone.PLAIN
    return Cell(f"{one.full_on}{by}", tone, f"in about {round(one.days)} days")


def capacity_fact(repositories: Sequence[RepositoryStanding]) -> Fact:
    """Return the repository that is full first, for a headline."""
    full = [one for one in repositories if one.full_on]
    soonest = min(full, key=lambda one: one.days or 0.0, default=None)
    if soonest is None:
        return Fact("Repositories", "not known when full", counted(len(repositories), "repository", "repositories"))
    days = soonest.days or 0.0
    tone = Tone.CAUTION if days < _SOON else Tone.PLAIN
    return Fact("Repositories", f"full in about {round(days)} days", soonest.name, tone)
