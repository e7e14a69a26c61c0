# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The overview of a fleet: which hosts are asked, and what the answers come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..hosts.host_runner import HostRunner
from .answers import HostTransfers, parse_answer
from .asking import HostQuestions, threads_for
from .rows import FleetTotals, Job, Row, Standing, hosts_first, hosts_next, make_rows, sum_up


@dataclass(frozen=True)
class Overview:
    """Where a fleet stands."""

    rows: Sequence[Row]
    sums: FleetTotals
    unreachable: dict[str, str]  # hosts that did not answer, and why


def take_overview(
    jobs: Sequence[Job],
    hosts: Sequence[str],
    runner: Callable[[str], HostRunner],
    read_record: Callable[[Job, object], Standing],
    forks: int,
    interval: float,
) -> Overview:
    """Ask the hosts of the jobs, and these other hosts, each in one execution.

    ``runner`` makes the runner of an inventory host, ``read_record`` says where a job stands by what is kept of it here
    and by the record that its destination has. Of the sources only those are asked that know more than their
    destinations: a thousand of them may have twenty.
    """

    def ask(one: HostRunner) -> HostTransfers:
        (said,) = one.run({"do": "overview", "interval": interval})
        return parse_answer(one.name, said)

    asked = HostQuestions(runner, threads_for(forks), ask)
    asked.ask([*hosts_first(jobs), *hosts])
    seen = {host: answer.transfers for host, answer in asked.answers.items()}
    asked.ask(hosts_next(jobs, seen))
    seen = {host: answer.transfers for host, answer in asked.answers.items()}
    jobs = [_with_record(job, asked.answers, read_record) for job in jobs]
    rows = make_rows(jobs, seen, asked.failed)
    return Overview(rows, sum_up(rows), asked.failed)


def _with_record(job: Job, answers: Mapping[str, HostTransfers], read: Callable[[Job, object], Standing]) -> Job:
    """Return a job with what the record at its destination tells of it, and who works on it by its lease."""
    answer = answers.get(job.dest_host)
    if answer is None:
        return job
    found, holder = answer.records.get(job.transfer), answer.leases.get(job.transfer)
    if holder is not None and holder.has_it:
        job = replace(job, holder=holder.who)
    return job if found is None else replace(job, standing=read(job, found))
