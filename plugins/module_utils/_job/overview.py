# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Status of all transfers of this user on this host, for an overview of a fleet. Reads only."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Sequence, cast

from .leases import list_leases
from .records import list_records
from .state import RUNNING, JobInfo, list_jobs

if TYPE_CHECKING:
    from typing import TypedDict

    from .leases import LeaseRow
    from .records import StoredRecord

    class TransferRow(JobInfo):
        """A transfer, and how fast it is."""

        rate: float | None  # bytes a second between the two looks; None: not known

    class HostOverview(TypedDict):
        """All transfers of this user on this host, and the records and leases of jobs that end here."""

        now: float  # by this host's clock, in seconds since 1970
        transfers: list[TransferRow]
        records: list[StoredRecord]
        leases: list[LeaseRow]

else:
    TransferRow = HostOverview = dict

_LONGEST = 10.0  # seconds between two looks


def look(interval: float) -> HostOverview:
    """Return the transfers; what runs is looked at again after ``interval`` seconds, so that its rate is known."""
    first = list_jobs()
    jobs = first
    if interval > 0 and any(job["state"] in RUNNING for job in first):
        time.sleep(min(interval, _LONGEST))
        jobs = list_jobs()
    return {
        "now": time.time(),
        "transfers": with_rates(first, jobs),
        "records": list_records(),
        "leases": list_leases(),
    }


def with_rates(before: Sequence[JobInfo], after: Sequence[JobInfo]) -> list[TransferRow]:
    """Return jobs with how fast they were between two looks, by the times at which they themselves reported. Pure."""
    earlier = {(job["id"], job["side"]): job for job in before}
    return [cast(TransferRow, {**job, "rate": _rate(earlier.get((job["id"], job["side"])), job)}) for job in after]


def _rate(before: JobInfo | None, job: JobInfo) -> float | None:
    if before is None or job["state"] not in RUNNING or before["started"] != job["started"]:
        return None
    seconds = job["updated"] - before["updated"]
    if seconds <= 0:
        return None
    done = job["progress"].get("bytes_done", 0) - before["progress"].get("bytes_done", 0)
    return max(0, done) / seconds
