# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run asks of the hosts of a backup. Each function waits for its host."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import (
    WrongShape,
    as_object,
    list_of,
    optional,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names

from ...common.host_text import one_line
from ...fleet.lock import Lease, Terms, guard, guard_prediction, parse_answer
from ...hosts.host_runner import HostFailed, HostRunner
from ...hosts.pair import PairHosts
from ...transfer.probe import parse_described
from ..snapshot_answers import parse_answer as parse_snapshot_answer
from .audit import HostAnswer, RepositoryAnswer, parse_now, parse_repository
from .jobs import Copy, Run
from .state import BegunSnapshot
from .transfers import links_of, path_of

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.probe import EndDescription
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import Compare, SnapshotStep, Step

    from ...transfer.completion import Uncompared


class RepositoryBusy(HostFailed):
    """Another run is at work on the snapshots of the job."""

    details: Mapping[str, object] = {"busy": True}  # for the result of a transfer


class FilesDamaged(HostFailed):
    """A check has found damaged files, and nothing else that is wrong: a repair may end it."""


def lease_id(run: Run) -> str:
    """Return the id of the lease of a backup at its repository host: of the folder of its snapshots."""
    place = "\0".join(("backup", run["repository"]["path"], run["host"], run["name"]))
    return hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:16]


class BackupHosts(PairHosts):
    """The client and the repository host of a backup."""

    def __init__(
        self,
        run: Run,
        runner: Callable[[str], HostRunner],
        terms: Terms | None = None,
        lease: Lease | None = None,
        by: str = "",
    ) -> None:
        """Take the run, what makes the runner of an inventory host, and who makes the backup. Raises HostFailed.

        All that is asked of the hosts depends on the ``lease``. Check mode takes none, and only looks by its ``terms``
        whether another control node has it.
        """
        super().__init__(run["host"], run["repository"]["host"], runner)
        self._run, self._runner = run, runner
        self._place = [run["repository"]["path"], run["host"], run["name"]]
        self._lease = lease
        self._by: Mapping[str, str] = {"by": by} if by else {}
        if lease is not None:
            guard(self.runners["source"], self.runners["dest"], lease)
        elif terms is not None:
            guard_prediction(self.runners["dest"], terms)

    def with_copy(self, copy: Copy) -> CopyHosts:
        """Return the repository host with that of a copy. Raises HostFailed if that one is described wrongly."""
        return CopyHosts(self._run, copy, self, self._runner, self._by, self._lease)

    @property
    def lost(self) -> str:
        """Why another control node has the backup, if it does."""
        return self._lease.lost if self._lease is not None else ""

    @property
    def taken_over(self) -> str:
        """From whom the backup was taken over; empty if it was not."""
        return self._lease.told if self._lease is not None else ""

    def hold(self) -> None:
        """Have the repository host say that this control node has the backup. Raises HostFailed."""
        self.runners["dest"].run()

    def let_expire(self) -> None:
        """Let the lease expire by itself from now on, since no file of tasks is left to run."""
        if self._lease is not None:
            self._lease.firm = False

    def snapshots(
        self,
        wishes: Mapping[str, Mapping[str, object]],
        check: bool,
        uncompared: Uncompared | None = None,
        is_last: bool = False,
    ) -> dict[str, Mapping[str, Any]]:
        """Do with the snapshots of the run what the module snapshot does; all in one execution.

        If nothing is refused and it ``is_last``, other control nodes may have the backup from then on.

        ``wishes`` are its actions, in their order, with their options; returned is what was said of each, up to the
        first that was refused. Of that is left which the later steps and the report need, ``changed``, the ``warnings``
        and the lines of the ``diff``. With ``check`` nothing changes. The first action compares the tree of an
        ``uncompared`` snapshot; if it ``differs``, nothing is done. Raises HostFailed, also where the first of all was
        refused.
        """
        lease = self._lease if is_last else None
        if lease is not None:
            lease.firm = False  # no file of tasks is left to run, and a firm lease would not be released
        release: list[Step] = [lease.request("release")] if lease is not None else []
        step = self.step(wishes, check, uncompared.compare if uncompared else None, release)
        before, after = (uncompared.before, uncompared.after) if uncompared else ((), ())
        answers = self.runners["dest"].run(*before, step, *after)
        found, left = self._read(list(wishes), answers[len(before)])
        if lease is not None and left:
            with contextlib.suppress(ValueError):  # else the end of the run releases it
                lease.held = not parse_answer(lease.host, left[0]).held
        return found

    def step(
        self,
        wishes: Mapping[str, Mapping[str, object]],
        check: bool,
        compare: Compare | None = None,
        last: Sequence[Step] = (),
    ) -> SnapshotStep:
        """Return the step of the first action. If it is not refused, the others follow, and then the ``last`` steps."""
        (action, options), *others = wishes.items()
        step: SnapshotStep = {
            "do": "snapshot",
            "action": action,
            "place": self._place,
            "options": {**options, **self._by},
            "check": check,
            "then": [self.step(dict(others), check, last=last)] if others else list(last),
        }
        if compare is not None:
            step["compare"] = compare
        return step

    def read(self, actions: Sequence[str], answer: object) -> dict[str, Mapping[str, Any]]:
        """Return what is kept of the answer to a step, as ``snapshots`` does."""
        return self._read(actions, answer)[0]

    def _read(self, actions: Sequence[str], answer: object) -> tuple[dict[str, Mapping[str, Any]], list[Any]]:
        """Return what is kept of the answer to a step, and the results of the last steps."""
        host = self.runners["dest"].name
        found: dict[str, Mapping[str, Any]] = {}
        left: list[Any] = []
        try:
            for action in actions:
                said = as_object(answer, "its answer")
                refused = optional(said, "refused", str)
                if refused is not None:
                    if not found:
                        kinds = {"busy": RepositoryBusy, "repairable": FilesDamaged}
                        kind = next((kind for name, kind in kinds.items() if optional(said, name, bool)), HostFailed)
                        raise kind(refused, host)
                    return found, []
                found[action] = {**parse_snapshot_answer(said), "diff": _changed_lines(said.get("diff"))}
                if not said.get("then"):
                    return found, []
                left = list_of(said["then"], "then", dict)[:1]
                (answer,) = left
        except WrongShape as error:
            raise HostFailed(f"what it says of the snapshots cannot be read: {error}", host) from error
        return found, left


class CopyHosts(BackupHosts):
    """The repository host of a backup, and that of a copy of its snapshots, on which all actions are."""

    def __init__(
        self,
        run: Run,
        copy: Copy,
        first: BackupHosts,
        runner: Callable[[str], HostRunner],
        by: Mapping[str, str],
        lease: Lease | None = None,
    ) -> None:
        """Take what makes the runner of an inventory host. The connection to the ``first`` host is shared.

        What is asked of the host of the copy depends on the ``lease``, too, which the first host has.
        """
        self.runners = {"source": first.runners["dest"], "dest": runner(copy["host"])}
        self._client = first.runners["source"]
        self._paths = (run["repository"]["path"], copy["path"])
        self._place = [copy["path"], run["host"], run["name"]]
        self._lease, self._by = None, by
        if lease is not None:
            self.runners["dest"].guard = lease.at_source(self.runners["source"].run)

    def close(self) -> None:
        """Let go of the connection to the host of the copy."""
        self.runners["dest"].close()

    @property
    def reverse(self) -> PairHosts:
        """The same hosts for a transfer from the copy to the first repository."""
        return _ReversePair(self)

    def identify(self, with_client: bool) -> tuple[EndDescription, EndDescription, EndDescription | None]:
        """Return what the copy's host, the first one, and the client if it is asked, say of themselves.

        Raises HostFailed, with the name of the host; a client that cannot be reached is left out.
        """
        copy = _describe(self.runners["dest"], self._paths[1])
        first = _describe(self.runners["source"], self._paths[0])
        client = None
        with contextlib.suppress(HostFailed):
            client = _describe(self._client, "/") if with_client else None
        return copy, first, client


class _ReversePair(PairHosts):
    def __init__(self, hosts: CopyHosts) -> None:
        self.runners = {"source": hosts.runners["dest"], "dest": hosts.runners["source"]}


def _describe(runner: HostRunner, path: str) -> EndDescription:
    (said,) = runner.run({"do": "describe", "path": path})
    try:
        return parse_described(said)
    except WrongShape as error:
        raise HostFailed(f"what it says of itself cannot be read: {error}", runner.name) from error


class Filling:
    """The snapshot that a transfer fills. It is begun in the execution that probes the repository's host."""

    def __init__(
        self,
        hosts: BackupHosts,
        run: Run,
        part: str,
        begin: Mapping[str, object] | None,
        check: bool,
        compares: bool,
        begun: Callable[[Mapping[str, Mapping[str, Any]]], BegunSnapshot],
    ) -> None:
        """Take the options of the action ``begin``, None if it was done, and what is told of the answer to it.

        ``part`` is the folder in the snapshot's tree that the transfer fills. ``begun`` is called once, with the answer
        by its action if there is a new one, and returns what is known.
        """
        self._hosts, self._part, self._check, self._begun = hosts, part, check, begun
        self._path = path_of(run)  # that the snapshot must have
        self._begin = {"begin": begin} if begin is not None else {}
        self.compares = compares

    @property
    def steps(self) -> list[Step]:
        """The steps that begin it."""
        return [self._hosts.step(self._begin, self._check)] if self._begin else []

    def take(self, answers: Sequence[object]) -> Mapping[str, object]:
        """Return the options of the transfer that the answer decides. Raises HostFailed."""
        said = self._begun(self._hosts.read(["begin"], answers[0]) if answers else {})
        self._begin = {}
        if said.path != self._path:
            raise HostFailed(
                f"the snapshot to fill is {said.path}, and {self._path} was expected",
                self._hosts.runners["dest"].name,
            )
        return links_of(said, self._part)


class CopyFilling(Filling):
    """The copy of a snapshot that a transfer fills, with the manifest beside the tree."""

    def __init__(
        self,
        hosts: CopyHosts,
        run: Run,
        dest: str,
        begin: Mapping[str, object],
        exclude: Sequence[str],
        begun: Callable[[Mapping[str, Mapping[str, Any]]], BegunSnapshot],
    ) -> None:
        """Take the path that is filled, and paths of the tree that must be sent, whatever earlier snapshots have."""
        super().__init__(hosts, run, "", begin, False, False, begun)
        self._path, self._exclude = dest, [f"{names.DATA}/{path}" for path in exclude]

    def take(self, answers: Sequence[object]) -> Mapping[str, object]:
        """Return the options of the transfer that the answer decides. Raises HostFailed."""
        options = super().take(answers)
        known = list_of(options["link_dest_exclude"], "link_dest_exclude", str)
        return {**options, "link_dest_exclude": [*known, *self._exclude]}


def _changed_lines(diff: Any) -> list[str]:
    """Return the difference that the module snapshot shows: the names in the folder of a job and their states."""
    if not isinstance(diff, Mapping) or diff.get("before") == diff.get("after"):
        return []
    before, after = (str(diff.get(when) or "").splitlines() for when in ("before", "after"))
    gone = [f"-{line}" for line in before if line not in after]
    return gone + [f"+{line}" for line in after if line not in before]


def ask_for_audit(runner: HostRunner, repositories: Sequence[str]) -> HostAnswer:
    """Ask a host for its time, and for what its repositories have, in one execution. Raises HostFailed.

    A repository that cannot be read keeps none of the others from being told.
    """
    steps: list[Step] = [{"do": "overview", "interval": 0}]
    for path in repositories:
        steps.append({"do": "snapshot", "action": "audit", "place": [path, "", ""], "options": {}})
    asked = time.time()
    first, *others = runner.run(*steps)
    answered = time.time()
    found: dict[str, RepositoryAnswer] = {}
    refused: dict[str, str] = {}
    try:
        now = last = parse_now(first)
        for path, said in zip(repositories, others):
            reason = optional(as_object(said, "its answer"), "refused", str)
            if reason is not None:
                refused[path] = one_line(reason)
            else:
                found[path] = parse_repository(said)
                last = max(last, found[path].now)
    except WrongShape as error:
        raise HostFailed(f"its answer cannot be read: {error}", runner.name) from error
    return HostAnswer(asked, answered, now, last, found, refused)
