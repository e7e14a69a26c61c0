# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Questions that a run asks the two hosts of a migration job. Each function waits for its hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape

from ...common.host_text import one_line
from ...fleet.lock import RENEWED, Lease, Terms, find_holder, guard
from ...hosts.endpoint import inventory_address, ssh_port
from ...hosts.host_runner import ControllerGone, HostFailed, HostRunner
from ...hosts.pair import PairHosts, run_parallel
from ...transfer.steps import keep_record
from ..hooks import PACKAGE_MANAGERS
from .jobs import arrival
from .preflight import packages_of, parse_discovered, parse_tree_users
from .record import record_id
from .state import MigrationState, ProbedHost, TreeUsers

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import Discover, FindTreeUsers, Step

SIDES = ("source", "dest")


class MigrationHosts(PairHosts):
    """Both hosts of a job, and its paths there."""

    def __init__(
        self,
        job: Mapping[str, Any],
        runner: Callable[[str], HostRunner],
        terms: Terms,
        lease: Lease | None = None,
    ) -> None:
        """Take the job, what makes the runner of an inventory host, and the lease, which check mode does without."""
        super().__init__(job["src_host"], job["dest_host"], runner)
        self._terms = terms
        self.lease = lease
        if lease is not None:
            guard(self.runners["source"], self.runners["dest"], lease)
        self._paths = {"source": job["src"], "dest": job["dest"]}
        self._tree = arrival(job)
        self._record = record_id(MigrationState.fresh(job).identity)
        self.has_kept = False  # whether the destination has said that it keeps a record
        self.not_kept = ""  # why it does not

    def probe(self) -> dict[str, ProbedHost]:
        """Return what both hosts have. Raises HostFailed, which names all that cannot be used."""
        asked: dict[str, ProbedHost | HostFailed] = run_parallel({side: partial(self._probe, side) for side in SIDES})
        failed = {side: found for side, found in asked.items() if isinstance(found, HostFailed)}
        if failed:
            said = ". ".join(
                f"{self.runners[side].name} cannot be used: {error.reason}" for side, error in failed.items()
            )
            raise HostFailed(said, unreachable=all(error.unreachable for error in failed.values()))
        return {side: found for side, found in asked.items() if not isinstance(found, HostFailed)}

    def find_tree_users(self) -> TreeUsers:
        """Return the processes at the destination that use the tree there. Raises HostFailed."""
        runner = self.runners["dest"]
        asked: FindTreeUsers = {"do": "find_tree_users", "tree": self._tree, "transfer_id": self._record}
        try:
            return parse_tree_users(runner.run(asked)[0])
        except WrongShape as error:
            raise HostFailed(str(error), runner.name) from error

    def install(self, side: str, programs: Sequence[str]) -> tuple[list[str], str]:
        """Install the packages of programs on a host; return them, and why that failed, empty if it did not."""
        runner, packages = self.runners[side], []
        self.hold()
        try:
            asked = {"gather_subset": ["!all", "!min", "pkg_mgr"]}
            facts = runner.run_module("ansible.builtin.setup", asked, {"ansible_facts": dict})["ansible_facts"]
            packages = packages_of(programs, str(facts.get("ansible_os_family")))
            if packages:
                manager = str(facts.get("ansible_pkg_mgr"))
                if manager not in PACKAGE_MANAGERS:
                    raise HostFailed(
                        f"its package manager is {manager}, and {', '.join(PACKAGE_MANAGERS)} are known", runner.name
                    )
                runner.change_by_module(PACKAGE_MANAGERS[manager], {"name": packages, "state": "present"})
        except ControllerGone:
            raise
        except HostFailed as error:
            return [], f"{runner.name}: could not install {', '.join(packages or programs)}: {error.reason}"
        return packages, ""

    def find_holder(self, found: object) -> str:
        """Return which other control node works on the job, and what to do; ``found`` is what its destination said."""
        return find_holder(self._terms, found)

    def keep(self, record: Mapping[str, object]) -> None:
        """Have the destination keep a record of the job, with the next execution there that is made anyhow."""
        self.runners["dest"].ride(keep_record(self._record, record), self._take_kept)

    def hold(self) -> None:
        """Have the destination say that this control node has the job, unless it just did. Raises HostFailed."""
        if self.lease is not None and not (self.lease.held and self.lease.age < RENEWED * self.lease.life):
            self.runners["dest"].run()

    def keep_now(self, record: Mapping[str, object] | None, releases: bool = False) -> None:
        """Have the destination keep a record of the job at once, if there is one and the destination can be reached.

        With ``releases`` other control nodes may have the job from then on.
        """
        asked: list[Step] = [] if record is None else [keep_record(self._record, record)]
        if releases and self.lease is not None:
            asked.append(self.lease.request("release"))
        try:
            said = self.runners["dest"].run(*asked)
        except ControllerGone:
            raise
        except HostFailed as error:
            self.not_kept = str(error)
        else:
            if releases and self.lease is not None:
                self.lease.held = False
            if record is not None:
                self._take_kept(said[0] if said else None)

    def _take_kept(self, answer: object) -> None:
        problem = answer.get("problem") if isinstance(answer, dict) else "it gave no answer"
        self.has_kept, self.not_kept = not problem, one_line(str(problem or ""))

    def _probe(self, side: str) -> ProbedHost | HostFailed:
        runner, peer = self.runners[side], self.runners["dest" if side == "source" else "source"]
        try:
            step: Discover = {
                "do": "discover",
                "side": side,
                "path": self._paths[side],
                # A local connection or a container has no ssh port to try, unless the inventory names an address.
                "peer": inventory_address(peer.variables, peer.name, peer.connection),
                "port": ssh_port(peer.variables, peer.connection),
                "transfer_id": self._record if side == "dest" else "",
            }
            if side == "dest":
                step["tree"] = self._tree
            return parse_discovered(runner.run(step, guarded=False)[0])
        except WrongShape as error:
            return HostFailed(str(error))
        except ControllerGone:
            raise
        except HostFailed as error:
            return error
