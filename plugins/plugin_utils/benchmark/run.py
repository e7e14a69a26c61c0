# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Benchmark one pair of hosts: measure it, derive or try each method, and conclude."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..common.refusal import Refusal
from ..hosts.endpoint import Endpoint
from ..hosts.host_runner import HostFailed, HostRunner, fails_alone
from ..hosts.interruption import Interruption
from .abilities import PairRules, find_abilities
from .candidates import list_candidates
from .measure import MeasureRequest, measure_pair
from .measurement import BenchmarkResult
from .recommend import conclude
from .trial import Trial, TrialRequest

_CIPHER = re.compile(r"[a-z0-9][a-z0-9@.-]*")
_TEMPORARY = "/var/tmp"


@dataclass(frozen=True)
class BenchmarkRequest:
    """Checked options of the user."""

    measure: MeasureRequest  # without src and dest, no disk is measured
    encryption: str
    trust: str
    tries: bool  # each method really runs
    rsync_floor: str | None = None
    port: int | None = None
    port_range: str | None = None


def benchmark_pair(
    source: HostRunner,
    dest: HostRunner,
    request: BenchmarkRequest,
    say: Callable[[str], None],
    interruption: Interruption,
) -> BenchmarkResult:
    """Return what was measured and concluded. Nothing stays on the hosts.

    Raises Refusal for a request that cannot be met, and HostFailed for hosts that cannot be asked or are at work.
    """
    runners = {"source": source, "dest": dest}
    if source.name == dest.name:
        raise Refusal(f"src_host and dest_host are both {source.name}: name two hosts")
    measured, ends = measure_pair(source, dest, request.measure, say)
    asked = request.measure
    driver = "dest" if measured.link.connect == "pull" else "source"
    peer = "source" if driver == "dest" else "dest"
    rules = PairRules(
        encryption=request.encryption,
        trust=request.trust,
        connect=measured.link.connect,
        has_rules=bool(asked.rules),
        rsync_floor=request.rsync_floor,
        default_ciphers=_find_default_ciphers(runners[driver], runners[peer].name),
    )
    abilities = find_abilities(ends["source"], ends["dest"], rules)
    candidates = list_candidates(measured, abilities)
    if request.tries:
        trial = TrialRequest(
            folders={"source": _TEMPORARY, "dest": _folder_beside(ends["dest"]) if asked.dest else _TEMPORARY},
            bytes=asked.bytes,
            trust=request.trust,
            connect=measured.link.connect or "auto",
            ports={"port": request.port, "port_range": request.port_range},
        )
        measured, candidates = Trial(source, dest, trial, say, interruption).run(measured, abilities, candidates)
    return conclude(measured, abilities, candidates, asked.src, asked.dest)


def _folder_beside(dest: Endpoint) -> str:
    """Return the destination or the nearest folder above it that exists. The path is used on this host alone."""
    path = dest.probe["path"]
    return path["existing"] if path["existing_is_directory"] else path["existing"].rpartition("/")[0] or "/"


def _find_default_ciphers(runner: HostRunner, peer: str) -> tuple[str, ...]:
    """Return the ciphers that a plain ssh from a host would offer to a peer; none if it does not say."""
    asked = {"peers": [{"name": peer}]}
    try:
        found = runner.run_module("longhaul.fleet.ssh_local_offer", asked, {"peers": dict})["peers"]
        return fails_alone(lambda: parse_ciphers(found.get(peer, {}).get("ciphers", [])))
    except HostFailed:
        return ()


def parse_ciphers(found: Iterable[object]) -> tuple[str, ...]:
    """Return names of ciphers that a host says. Untrusted input. Raises ValueError for what cannot be one."""
    said = list(found)
    names = tuple(one for one in said if isinstance(one, str) and _CIPHER.fullmatch(one))
    if len(names) != len(said):
        raise ValueError("the answer of a host names ciphers that cannot be any")
    return names
