# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The transfer of a job as a session, with the options that a task of its own would have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible_collections.longhaul.fleet.plugins.modules.transfer import DOCUMENTATION

from ..common.argument_spec import spec_from_documentation, validate_options
from ..common.memory import Memory
from ..common.refusal import Refusal
from ..hosts.interruption import Interruption
from ..hosts.pair import PairHosts
from ..hosts.trust import decide_trust
from ..transfer.comparison import ComparisonFailed
from ..transfer.report import TransferError
from ..transfer.session import Session, Snapshot

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
    of the module transfer; ``own`` are those that the role decides, as far as they are not None. Raises Refusal.
    """
    spec = spec_from_documentation(DOCUMENTATION)
    given = {name: value for name, value in job.items() if name in spec and value is not None}
    given = {**given, **{name: value for name, value in own.items() if value is not None}, "wait": False}
    options = validate_options(given, spec, (("port", "port_range"),), f"job {job['name']}")
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
