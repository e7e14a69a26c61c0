# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ways to connect two hosts, tried in turn: the other direction, then a method that needs no port but ssh's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..common.refusal import Refusal
from ..hosts.host_runner import HostFailed
from ..hosts.trust import NO_PORT, NONE
from .methods import METHODS, OWN_PORT
from .plan import Ends, Plan
from .report import TransferError
from .status import Status
from .transfer_hosts import TransferHosts


class Attempt(NamedTuple):
    """A plan that was tried, and the last status of its connecting side."""

    plan: Plan
    status: Status

    def but(self, what: str) -> Attempt:
        """Return this attempt with another sentence in its failure."""
        return self._replace(status=replace(self.status, failure=f"{self.status.failure}. {what}"))


@dataclass(frozen=True)
class Routes:
    """Tries plans for two hosts until one side reaches the other. If none does, the first failure counts.

    ``make_plan`` takes whether the destination connects, and methods to avoid with the reasons. ``transfer`` runs a
    plan, or continues one that has been started, and returns its last status.
    """

    hosts: TransferHosts
    make_plan: Callable[[Ends, bool, Mapping[str, str]], Plan]
    transfer: Callable[[Plan, Ends, Status | None], Status]

    def try_all(self, plan: Plan, ends: Ends, started: Status | None = None) -> Attempt:
        """Try a plan first. ``started`` is its status if it runs already."""
        tried = self._try_directions(plan, ends, {}, started)
        options = self.hosts.steps.options
        if tried.status.unreachable and tried.plan.choice.tentative:
            return self._try_port_of_ssh(tried, ends)
        if tried.status.unreachable and options["trust"] == NONE and options["method"] == "auto":
            return tried.but(NO_PORT)
        return tried

    def _try_directions(
        self, plan: Plan, ends: Ends, avoid: Mapping[str, str], started: Status | None = None
    ) -> Attempt:
        """Let the destination connect where the source cannot."""
        tried = Attempt(plan, self.transfer(plan, ends, started))
        if not tried.status.unreachable or self.hosts.steps.options["connect"] != "auto" or plan.driver == "dest":
            return tried
        self.hosts.say(f"{self.hosts.steps.label}: {tried.status.failure}. Trying the other direction")
        self.hosts.stop(plan.sides, clear=True)
        try:
            other = self.make_plan(ends, True, avoid)
            turned = Attempt(other, self.transfer(other, ends, None))
        except (Refusal, HostFailed, TransferError) as error:
            return tried.but(f"The other direction was tried too: {error}")
        if turned.status.unreachable:
            self.hosts.stop(other.sides)
            return tried.but(f"The other direction was tried too: {turned.status.failure}")
        return turned

    def _try_port_of_ssh(self, tried: Attempt, ends: Ends) -> Attempt:
        self.hosts.say(f"{self.hosts.steps.label}: {tried.status.failure}. Trying without a port of its own")
        self.hosts.stop(tried.plan.sides, clear=True)
        avoid = dict.fromkeys(OWN_PORT, tried.status.failure)
        try:
            ends = self.hosts.probe(METHODS)
            plan = self.make_plan(ends, False, avoid)
        except (Refusal, HostFailed) as error:
            return tried.but(f"Methods that use the port of ssh were looked at too: {error}")
        advice = (
            f"method {tried.plan.choice.method} was tried first, and its port could not be reached, which took time: "
            f"open one between the hosts (port, port_range), or name method {plan.choice.method}"
        )
        return self._try_directions(replace(plan, warnings=(*plan.warnings, advice)), ends, avoid)
