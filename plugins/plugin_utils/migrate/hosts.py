# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the conductor asks of the two hosts of a migration job. Each function waits for its hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..endpoint import inventory_address, ssh_port
from ..fleet.pair_hosts import PairHosts
from ..host_runner import ControllerGone, HostFailed, HostRunner
from ..host_text import one_line
from ..parallel import run_parallel
from ..steps import keep_record
from .programs import packages_of
from .record import record_id

SIDES = ("source", "dest")
Found = Mapping[str, Any]  # what a host said of itself


class Hosts(PairHosts):
    """Both hosts of a job, and its paths there."""

    def __init__(self, job: Mapping[str, Any], runner: Callable[[str], HostRunner]) -> None:
        """Take the job, and what makes the runner of an inventory host."""
        super().__init__(job["src_host"], job["dest_host"], runner)
        self._paths = {"source": job["src"], "dest": job["dest"]}
        self._record = record_id(job)
        self.has_kept = False  # whether the destination has said that it keeps a record
        self.not_kept = ""  # why it does not

    def probe(self) -> dict[str, Found]:
        """Return what both hosts have. Raises HostFailed, which names all that cannot be used."""
        asked: dict[str, Found | HostFailed] = run_parallel({side: partial(self._probe, side) for side in SIDES})
        failed = {side: found for side, found in asked.items() if isinstance(found, HostFailed)}
        if failed:
            said = ". ".join(
                f"{self.runners[side].name} cannot be used: {error.reason}" for side, error in failed.items()
            )
            raise HostFailed(said, unreachable=all(error.unreachable for error in failed.values()))
        return {side: found for side, found in asked.items() if not isinstance(found, HostFailed)}

    def install(self, side: str, programs: Sequence[str]) -> tuple[list[str], str]:
        """Install the packages of programs on a host; return them, and why that failed, empty if it did not."""
        runner, packages = self.runners[side], []
        try:
            facts = runner.run_module("ansible.builtin.setup", {"gather_subset": ["!all", "!min", "pkg_mgr"]})[
                "ansible_facts"
            ]
            packages = packages_of(programs, str(facts.get("ansible_os_family")))
            if packages:
                arguments = {"name": packages, "state": "present", "use": facts.get("ansible_pkg_mgr", "auto")}
                runner.run_action("ansible.builtin.package", arguments)
        except ControllerGone:
            raise
        except HostFailed as error:
            return [], f"{runner.name}: could not install {', '.join(packages or programs)}: {error.reason}"
        return packages, ""

    def keep(self, record: Mapping[str, object]) -> None:
        """Have the destination keep a record of the job, with the next execution there that is made anyhow."""
        self.runners["dest"].ride(keep_record(self._record, record), self._take_kept)

    def keep_now(self, record: Mapping[str, object]) -> None:
        """Have the destination keep a record of the job at once, if it can be reached."""
        try:
            self._take_kept(self.runners["dest"].run(keep_record(self._record, record))[0])
        except ControllerGone:
            raise
        except HostFailed as error:
            self.not_kept = str(error)

    def _take_kept(self, answer: object) -> None:
        problem = answer.get("problem") if isinstance(answer, dict) else "it gave no answer"
        self.has_kept, self.not_kept = not problem, one_line(str(problem or ""))

    def _probe(self, side: str) -> Found | HostFailed:
        runner, peer = self.runners[side], self.runners["dest" if side == "source" else "source"]
        try:
            arguments = {
                "side": side,
                "path": self._paths[side],
                # A local connection or a container has no ssh port to try, unless the inventory names an address.
                "peer": inventory_address(peer.variables, peer.name, peer.connection),
                "port": ssh_port(peer.variables, peer.connection),
                "transfer_id": self._record if side == "dest" else "",
            }
            return dict(runner.run_module("longhaul.fleet.migrate_info", arguments)["found"])
        except ControllerGone:
            raise
        except HostFailed as error:
            return error
