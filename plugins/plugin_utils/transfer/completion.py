# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of a transfer: what is left to rsync, the comparison of both trees, the last steps; or why it failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import as_object, member
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome

from ..common.host_text import harmless_data
from ..common.refusal import Refusal
from ..hosts.host_runner import ControllerGone, HostFailed, LeaseLost
from . import steps
from .comparison import SIDES, Comparison, Digest, parse_after, parse_quick_digest
from .owner_census import judge
from .owners import add_owners, merged
from .plan import CHANGES_LISTED, Ends, Plan
from .repair import add_repair
from .report import TransferError, failure_of_paths, with_server_side, with_unreachable
from .result import Result
from .rsync_fallback import plan_by_rsync
from .status import Status
from .transfer_hosts import TransferHosts
from .verification import Verification

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import Compare, Step

_READ_WAIT = 30.0  # seconds in which a source is read whose entries are no more than these
_MOST_READ = 200_000


@dataclass(frozen=True)
class Uncompared:
    """A destination that is still to be compared with the source, which was read."""

    before: Sequence[Step]  # the last steps at the destination, before its tree is read
    compare: Compare
    after: Sequence[Step]
    send_again: Callable[[], Result]  # compares both sides, and sends what differs; raises as Session.finish does


@dataclass
class Completion:
    """Ends a transfer that succeeded on both hosts, and completes the result of its task.

    ``send_again`` runs a plan to its end, and raises TransferError. ``owners_counted``: before the transfer.
    """

    hosts: TransferHosts
    ends: Ends
    result: Result
    owners_counted: bool
    send_again: Callable[[Plan], Outcome]
    uncompared: Uncompared | None = None
    dest_probe: object = None  # what the destination has in the end, where it was probed again

    def run(self, plan: Plan, status: Status) -> None:
        """End what ran by a plan with this last status. Raises TransferError, with the result, and HostFailed."""
        outcome = status.outcome or Outcome()
        answers = {plan.driver: status.then} if status.then else {}
        ended = with_outcome(plan, outcome)
        if outcome.deferred:
            self._hand_to_rsync(ended, outcome.deferred)
            answers = {}
        if not self.hosts.steps.compares:
            last = {side: self.hosts.steps.end(ended, side) for side in SIDES}
            with self.hosts.phase("finish"):
                answers.update(self.hosts.ask({side: last[side] for side in SIDES if side not in answers}))
            self._note_last_steps(last["dest"], answers["dest"], "finish")
            return
        if "dest" in answers:
            self._note_last_steps(self._after(ended, "dest"), parse_after(answers["dest"][-1]))
        comparison = replace(
            self.hosts.comparison(ended, outcome.kept_mounts),
            expects_entries=self.result["files_total"],
            expects_bytes=self.result["bytes_apparent"],
        )
        digests = first_digests(plan, outcome, answers)
        if not self._read_source(ended, comparison, digests):
            self._verify(ended, comparison, digests)

    def _after(self, plan: Plan, side: str) -> list[Step]:
        return self.hosts.steps.after(plan, self.ends[side])

    def _hand_to_rsync(self, plan: Plan, paths: list[str]) -> None:
        """Let rsync bring the files that stream left to it, and add that to the result."""
        hosts, ends, left = self.hosts, self.ends, counted(len(paths), "file", "files")
        hosts.say(f"{hosts.steps.label}: content moved in {left}, so rsync sends that")
        with hosts.phase("finish"):
            hosts.stop(plan.sides, succeeded=True, clear=True)
        try:
            by_rsync = plan_by_rsync(plan, hosts.steps.options, ends["source"], ends["dest"], paths)
            add_repair(self.result, self.send_again(by_rsync), CHANGES_LISTED)
        except (Refusal, TransferError) as error:
            raise TransferError(
                f"all but {left} arrived. That was left to rsync (delta), which failed: {error}", self.result
            ) from error
        self.result["by_rsync"] = len(paths)

    def _verify(self, plan: Plan, comparison: Comparison, digests: Mapping[str, Digest | None]) -> None:
        """Compare both trees by each host's own walk. The transfer's last steps are sent in the same executions."""
        hosts, options = self.hosts, self.hosts.steps.options
        verification = Verification(
            plan=plan,
            comparison=comparison,
            before={side: [steps.stop(hosts.steps.folder(side))] for side in SIDES},
            after={side: self._after(plan, side) for side in SIDES},
            label=hosts.steps.label,
            say=hosts.say,
            phase=hosts.phase,
            send_again=self.send_again,
        )
        found = verification.run(self.result, digests)
        self._note_last_steps(self._after(plan, "dest"), found.after.get("dest", ()))
        self.result["verified"] = options["verify"]
        if found.owners and not self.owners_counted:
            with hosts.phase("verify"):
                judged = judge(hosts.runners["dest"], found.owners, True, plan.settings["owner_map"])
            add_owners(self.result, judged.mismatches, judged.hints, hosts.steps.names, options["owner_warnings"])

    def _read_source(self, plan: Plan, comparison: Comparison, digests: Mapping[str, Digest | None]) -> bool:
        """Read the source, and leave the destination to the step that completes the snapshot; False if it cannot."""
        hosts, result = self.hosts, self.result
        if not hosts.steps.compares_later or not comparison.is_of_one_walk or result["files_total"] > _MOST_READ:
            return False
        digest, stop = digests.get("source"), {side: steps.stop(hosts.steps.folder(side)) for side in SIDES}
        if "source" not in digests:
            with hosts.phase("verify"):
                read = comparison.quick_digest_step("source", self._after(plan, "source"), _READ_WAIT)
                digest = parse_quick_digest(hosts.runners["source"].run(stop["source"], read)[-1])
        if digest is None or digest.errors_total:
            return False
        result["unstable"] = result["differences_total"] = 0
        result["compared"] = {"algorithm": "", "source": digest.counts, "dest": digest.counts}
        result["verified"] = hosts.steps.options["verify"]
        self.uncompared = Uncompared(
            before=[stop["dest"]],
            compare={"request": comparison.request("dest"), "sums": digest.sums},
            after=self._after(plan, "dest"),
            send_again=partial(self._compare_again, replace(plan, short=False), replace(comparison, short=False)),
        )
        return True

    def _compare_again(self, plan: Plan, comparison: Comparison) -> Result:
        self._verify(plan, comparison, {})
        return harmless_data(self.result)

    def _note_last_steps(self, asked: Sequence[Step], answers: Sequence[object], phase: str = "verify") -> None:
        """Keep what the destination says of itself in the end, and count the time until its disk had everything."""
        for step, said in zip(asked, answers):
            if step["do"] == "probe":
                self.dest_probe = said
            elif step["do"] == "sync":
                seconds = member(as_object(said, "the answer to sync"), "seconds", float)
                self.hosts.count_apart("sync", seconds, phase)


def with_outcome(plan: Plan, outcome: Outcome) -> Plan:
    """Return a plan with what owners became and how the destination keeps times, for what comes after its transfer."""
    owner_map = merged(plan.settings["owner_map"], outcome.owners)
    return replace(plan, settings={**plan.settings, "owner_map": owner_map, "time_units": dict(outcome.time_units)})


def first_digests(plan: Plan, outcome: Outcome, answers: Mapping[str, Sequence[object]]) -> dict[str, Digest | None]:
    """Return the digests that were made with the last steps of a transfer, by side.

    One is None if the tree could not be read at once, or if it was read without what the transfer found.
    """
    if outcome.time_units != plan.settings["time_units"] or outcome.kept_mounts:
        return dict.fromkeys(answers)
    return {side: parse_quick_digest(said[-1]) for side, said in answers.items()}


def clean_up_failed(hosts: TransferHosts, plan: Plan, status: Status) -> str:
    """Return why a transfer failed that ended with this status, and clean up on the hosts; empty if it did not."""
    failure = find_failure(status)
    if not failure:
        return ""
    try:
        with hosts.phase("finish"):
            said = hosts.stop(plan.sides)
            hosts.ask({side: [steps.clear(hosts.steps.folder(side))] for side in plan.sides})
    except (ControllerGone, LeaseLost):
        raise
    except HostFailed as error:
        return with_unreachable(failure, error)
    return with_server_side(failure, said, plan.driver)


def find_failure(status: Status) -> str:
    """Return why a transfer failed, by the last status of its connecting side; empty if it did not."""
    outcome = status.outcome or Outcome()
    failure = status.failure or outcome.failure or failure_of_paths(outcome)
    if failure or (status.state == "finished" and status.outcome is not None):
        return failure
    return f"the transfer ended as {status.state}"
