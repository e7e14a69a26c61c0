# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Forecast of the downtime of a job or a group, from what was measured of its own pair. Pure.

A final pass takes as long as the last pass, or as its entries take at a measured rate. A comparison takes as long as
its bytes take at the rate of an earlier comparison, of a benchmark, or of the first copy. What was never measured is
not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypedDict

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

from ...benchmark.measurement import BenchmarkResult, DiskMeasurement
from ...benchmark.recommend import OF_COMPARISON, OF_PASS, asked_seconds
from ...common.units import format_bytes, format_duration, format_entries, seconds_of
from .state import ComparisonResult, MeasuredRates, MigrationState, TransferSummary

UNKNOWN = "not known yet"
_WITHOUT_HOOKS = "hooks come on top"
_SHORT_COPY = 300.0  # seconds of a first copy that counts as a pass
_LARGE = 2**30  # bytes of contents, of which the rate counts whatever share of the tree they are
_FEW = 2**26  # bytes of contents in a pass whose time is that of looking at entries


class Forecast(TypedDict, total=False):
    """How long the source will be stopped; empty if it was switched over, without ``seconds`` if nobody knows."""

    seconds: float
    lasted: str  # in words
    why: str
    with_hooks: bool  # whether the time of hooks is among it


class BenchmarkRates(NamedTuple):
    """Rates of a pair from a benchmark, of the slower host; 0: not measured."""

    entries: float = 0.0  # a second
    compared: float = 0.0  # bytes a second, read and hashed
    asked_by_pass: float = 0.0  # seconds in which Ansible asks both hosts for a pass
    asked_by_comparison: float = 0.0


def rates_of(benchmark: BenchmarkResult | None) -> BenchmarkRates | None:
    """Return the rates of a kept benchmark; None without one."""
    if benchmark is None:
        return None
    disks = [benchmark.measurement.disks.get(side, DiskMeasurement()) for side in ("source", "dest")]
    asked = [asked_seconds(benchmark.measurement, executions) for executions in (OF_PASS, OF_COMPARISON)]
    return BenchmarkRates(min(one.entries for one in disks), min(one.compared for one in disks), *asked)


class StepForecast(NamedTuple):
    """How long one step takes; None: not known. ``why`` says how that is known, or why not."""

    seconds: float | None
    why: str


class JobForecast(NamedTuple):
    """How long the final pass and the comparison of a job take."""

    name: str
    copy: StepForecast
    compare: StepForecast

    @property
    def seconds(self) -> float | None:
        """The time of both; None if one of them is not known."""
        if self.copy.seconds is None or self.compare.seconds is None:
            return None
        return round(self.copy.seconds + self.compare.seconds, 1)


# What is measured


def with_pass(rates: MeasuredRates | None, one: TransferSummary) -> MeasuredRates:
    """Add what a pass, or a prediction of one, has measured of its pair."""
    rates = rates or MeasuredRates()
    content = one.bytes_sent if one.bytes_content is None else one.bytes_content
    copying = _seconds_of_phase(one, "transfer") or one.duration
    if one.attached or one.resumed or one.duration <= 0:  # its time is not that of all that it did
        return rates
    if one.files_total and content < max(_FEW, one.bytes_total // 100):
        rates = replace(rates, entries=round(one.files_total / one.duration, 3), entries_at=one.at)
    if content and (2 * content >= one.bytes_total or content >= _LARGE) and copying > 0:
        rates = replace(rates, copied=round(content / copying, 1), copied_at=one.at)
    return rates


def with_prediction(rates: MeasuredRates | None, one: TransferSummary) -> MeasuredRates:
    """Add what a prediction has measured: it reads no contents, so it gives the rate of entries alone."""
    looked = with_pass(None, replace(one, bytes_content=0))
    rates = rates or MeasuredRates()
    return replace(rates, entries=looked.entries, entries_at=looked.entries_at) if looked.entries else rates


def with_comparison(rates: MeasuredRates | None, one: ComparisonResult) -> MeasuredRates:
    """Add what a comparison has measured of its pair."""
    rates = rates or MeasuredRates()
    size = max(one.source.bytes, one.dest.bytes)
    entries = max(one.source.entries, one.dest.entries)
    if one.duration <= 0:
        return rates
    if one.compared == "checksum" and size:
        return replace(rates, compared=round(size / one.duration, 1), compared_at=one.at)
    if one.compared == "size" and entries:
        return replace(rates, compared_entries=round(entries / one.duration, 3), compared_entries_at=one.at)
    return rates


def _seconds_of_phase(one: TransferSummary, name: str) -> float:
    seconds = one.phases.get(name)
    return float(seconds) if isinstance(seconds, (int, float)) else 0.0


# What is forecast


def forecast_job(state: MigrationState, benchmark: BenchmarkRates | None = None) -> JobForecast:
    """Return how long the final pass and the comparison of a job take."""
    known, rates = benchmark or BenchmarkRates(), state.rates or MeasuredRates()
    return JobForecast(state.name, _forecast_pass(state, rates, known), _forecast_comparison(state, rates, known))


def _forecast_pass(state: MigrationState, rates: MeasuredRates, known: BenchmarkRates) -> StepForecast:
    passes, seed = state.phases.sync.passes if state.phases.sync else [], state.phases.seed
    if passes:
        took = passes[-1].duration
        return StepForecast(took, "as long as the last pass")
    if seed is None:
        return StepForecast(None, "no copy was made")
    for rate, asked, source in (
        (rates.entries, 0.0, "as measured before"),
        (known.entries, known.asked_by_pass, "as in the benchmark"),
    ):
        if rate:
            took = asked + seed.files_total / rate
            return StepForecast(took, f"{format_entries(seed.files_total)} at {rate:,.0f} a second, {source}")
    if seed.duration <= _SHORT_COPY:
        return StepForecast(seed.duration, "no longer than the first copy")
    return StepForecast(None, "no pass was made after the first copy")


def _forecast_comparison(state: MigrationState, rates: MeasuredRates, known: BenchmarkRates) -> StepForecast:
    wanted, last = state.run.verify, state.passes[-1] if state.passes else None
    if wanted in ("", "none"):
        return StepForecast(0.0, "no comparison")
    if last is None:
        return StepForecast(None, "no copy was made")
    if wanted == "size":
        entries = (
            (rates.compared_entries, 0.0, "as in an earlier comparison"),
            (rates.entries, 0.0, "as in the last pass"),
            (known.entries, known.asked_by_comparison, "as in the benchmark"),
        )
        for rate, asked, source in entries:
            if rate:
                told = f"{format_entries(last.files_total)} at {rate:,.0f} a second, {source}"
                return StepForecast(asked + last.files_total / rate, told)
        return StepForecast(None, "no rate of looking at entries was measured")
    size = max(last.bytes_apparent, last.bytes_total)
    contents = (
        (rates.compared, 0.0, "as in an earlier comparison"),
        (known.compared, known.asked_by_comparison, "as in the benchmark"),
        (rates.copied, 0.0, "no slower than the first copy"),
    )
    for rate, asked, source in contents:
        if rate:
            told = f"{format_bytes(size)} at {format_bytes(rate)}/s, {source}"
            return StepForecast(asked + size / rate, told)
    return StepForecast(None, "no rate of reading was measured")


def forecast_downtime(
    state: MigrationState,
    members: Mapping[str, MigrationState | None],
    time_of: Callable[[Mapping[str, float]], float],
    benchmarks: Mapping[str, BenchmarkRates | None] | None = None,
) -> Forecast:
    """Return the downtime to expect of a job, or of the whole group that it is in.

    ``members`` are the jobs that switch over with it, itself among them; one without a state has not begun. ``time_of``
    returns how long all of them take, from the seconds of each.
    """
    if state.is_switched or state.is_back:  # what goes back stops nobody
        return {}
    states = [one for one in members.values() if one is not None]
    rehearsed = _rehearsed(states) if len(states) == len(members) else None
    if rehearsed:
        return rehearsed
    if not any(one.passes for one in states):
        return {}
    jobs = [forecast_job(one, (benchmarks or {}).get(one.name)) for one in states]
    unknown = [f"{name}: no run has begun it" for name, one in members.items() if one is None]
    unknown += [f"{job.name}: {_unknown_of(job)}" for job in jobs if job.seconds is None]
    if unknown:
        is_group = len(members) > 1
        return {"lasted": UNKNOWN, "why": "; ".join(unknown) if is_group else unknown[0].split(": ", 1)[1]}
    seconds = {job.name: job.seconds or 0.0 for job in jobs}
    if len(jobs) == 1:
        (job,) = jobs
        return _made(seconds[job.name], f"{_tell_steps(job)}; {_WITHOUT_HOOKS}")
    longest = max(jobs, key=lambda job: job.seconds or 0.0)
    why = (
        f"the final passes and comparisons of {counted(len(jobs), 'job', 'jobs')}. {longest.name} takes longest, "
        f"{format_duration(longest.seconds or 0.0)}: {_tell_steps(longest)}"
    )
    return _made(time_of(seconds), f"{why}; {_WITHOUT_HOOKS}")


def _tell_steps(job: JobForecast) -> str:
    steps = [("the final pass", job.copy), ("the comparison", job.compare)]
    return ", ".join(f"{name} {format_duration(one.seconds)} ({one.why})" for name, one in steps if one.seconds)


def _made(seconds: float, why: str, with_hooks: bool = False) -> Forecast:
    seconds = round(seconds, 1)
    return {"seconds": seconds, "lasted": format_duration(seconds), "why": why, "with_hooks": with_hooks}


def _unknown_of(job: JobForecast) -> str:
    return job.copy.why if job.copy.seconds is None else job.compare.why


def _rehearsed(states: Sequence[MigrationState]) -> Forecast | None:
    """Return the forecast by a rehearsal that all made; None if one did not."""
    found = [one.phases.rehearsal for one in states if one.phases.rehearsal is not None]
    if not found or len(found) < len(states):
        return None
    ends = [seconds_of(one.at) or 0 for one in found]
    begins = [seconds_of(one.since) or 0 for one in found]
    seconds = float(max(0, max(end - begin for begin, end in zip(begins, ends))))
    return _made(seconds, f"as in the rehearsal of {max(one.at for one in found)}", with_hooks=True)
