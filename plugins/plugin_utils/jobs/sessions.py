# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The transfer of a job as a session, with the options that a task of its own would have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleError

from ..common.memory import Memory
from ..common.refusal import Refusal
from ..hosts.interruption import Interruption
from ..hosts.pair import PairHosts
from ..hosts.trust import decide_trust
from ..transfer.comparison import ComparisonFailed
from ..transfer.report import TransferError
from ..transfer.session import Session, Snapshot
from .job_options import transfer_options

# What a transfer may raise, and what is no error of the program.
FAILURES: tuple[type[Exception], ...] = (Refusal, TransferError, ComparisonFailed, AnsibleError, ValueError)


def session_of(
    job: Mapping[str, Any],
    hosts: PairHosts,
    check: bool,
    say: Callable[[str], None],
    memory: Memory | None,
    compares_rounded: bool = False,
    snapshot: Snapshot | None = None,
    expects: int = 0,
    **own: Any,
) -> Session:
    """Return the transfer of a job, which does not wait for its end.

    For ``compares_rounded``, ``snapshot`` and ``expects`` see Session. Of the job's keys those count that are options
    of the module transfer; ``own`` are those that the role sets, as far as they are not None. Raises Refusal.
    """
    options = transfer_options(job, f"job {job['name']}", **{**own, "wait": False})
    source, dest = hosts.runners["source"], hosts.runners["dest"]
    trust = decide_trust(options["trust"], {one.name: one.variables for one in (source, dest)})
    return Session(
        source,
        dest,
        {**options, "trust": trust},
        check,
        say,
        Interruption(),
        memory,
        compares_rounded,
        snapshot,
        expects,
    )
