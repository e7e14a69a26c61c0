# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a restore, in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypedDict, TypeVar

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape, as_object, optional
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.names import kind_of
from ansible_collections.longhaul.fleet.plugins.modules.transfer import DOCUMENTATION

from ...common.argument_spec import spec_from_documentation, validate_options
from ...common.files import Folder
from ...common.host_text import harmless, one_line
from ...common.memory import Memory
from ...common.refusal import Refusal
from ...common.units import now_text
from ...fleet.console import ProgressPrinter
from ...hosts.host_runner import ControllerGone, HostFailed, HostRunner, fails_alone
from ...hosts.interruption import Interruption
from ...hosts.trust import NONE, decide_trust
from ...report.archive import save_page
from ...transfer.report import TransferError
from ...transfer.result import Result
from ...transfer.session import Answers, Session
from ..sessions import FAILURES
from ..snapshot_answers import SnapshotInfo, parse_snapshots
from .choose import LATEST, ChosenSnapshot, choose
from .load import load_dumps, make_load
from .plan import (
    SnapshotCheck,
    Target,
    accept_destination,
    accept_snapshot,
    failure_of_snapshot,
    find_targets,
    must_predict,
    parse_check,
    parse_name,
    parse_source,
    refuse_occupied,
)
from .report import RestoreReport, keep_result
from .report_page import make_page
from .request import RestoreOptions, RestoreRequest

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import (
        InspectDestination,
        InspectSnapshot,
        SnapshotStep,
        Step,
    )

T = TypeVar("T")
_LOADED = "Another run refuses to load over these: remove them first, or name only the others in restore_consistent"
_UNLOADED = "All files are restored and compared, as the report says. The dumps are not all loaded: "
_ANY = Target("/", "/", "/")  # for what is asked before the paths are known
_CHANGES = ("files_created", "files_updated", "files_deleted", "attributes_changed")


class _Look(NamedTuple):
    """The answers of the host that receives the files about one place."""

    said: object
    probe: object


class _Known(TypedDict):
    """The facts about both hosts that a transfer begins with; see Session.begin."""

    probed: Answers
    seen: Answers


class RestoreWorkflow:
    """One restore, from the choice of the snapshot to the report."""

    def __init__(
        self,
        request: RestoreRequest,
        options: RestoreOptions,
        repository: HostRunner,
        host: HostRunner,
        folder: Folder,
        say: Callable[[str], None],
        interruption: Interruption,
        *,
        check: bool,
        diff: bool,
        by: str = "",
        teller: ProgressPrinter | None = None,
    ) -> None:
        """Take the runners of the host with the snapshots and of the host that receives the files.

        ``folder`` has the reports, ``say`` shows a line, ``by`` is who restores, and ``teller`` shows progress.
        """
        self._say_progress: Callable[[str], None] = teller.speaker(request.name) if teller else say
        self.summary: Mapping[str, object] = {}  # figures of a restore that has ended
        self._request, self._options = request, options
        self._repository, self._host = repository, host
        self._folder, self._say, self._interruption = folder, say, interruption
        self._check, self._diff, self._by = check, diff, by

    def run(self) -> Result:
        """Restore, and return the result of the transfer. Raises OSError and what a transfer raises."""
        options, host = self._options, self._host.name
        snapshot, found, source = self._find_snapshot()
        warning = accept_snapshot(found, snapshot.name, options.damaged)
        if warning:
            self._say(warning)
        if options.consistent and found.kind != "directory":
            raise Refusal(
                "Nothing was restored: restore_consistent loads the dumps of a folder. Name it in restore_path"
            )
        targets = find_targets(self._request, options, snapshot.name, found.kind)
        looks = self._look_at(targets) if len(targets) > 1 else {}
        for target in targets:
            look = looks.get(target) or self._look_at([target])[target]
            is_free = _parse(self._host, look.said, partial(accept_destination, request=self._request, target=target))
            known: _Known = {"probed": {"dest": look.probe}, "seen": source}
            report = self._make_report(snapshot, found, target)
            earlier = "" if is_free else self._read_state(report)
            is_last = target is targets[-1]
            if not must_predict(options.over, is_free, earlier if is_last else ""):
                break
            # What is at the own place of a file is the user's, unless an earlier run has restored it.
            if earlier or is_last:
                if not self._would_change(target, found.kind, known):
                    known = {"probed": {}, "seen": source}  # the prediction was a job of the same transfer
                    break
                looks = {}  # a prediction may take long, and what was seen before it is old
        else:
            raise refuse_occupied(host, target.occupies, found.kind)
        report, _unwritten = self._write(report)
        try:
            # Over existing files, size and time do not prove that a file is the same.
            session = self._make_session(target, options.over, options.delete, options.verify, self._check)
            result = fails_alone(partial(session.run, **known))
            failure = failure_of_snapshot(result, target.dest)
            if failure:
                raise TransferError(failure, result)
        except ControllerGone:
            raise
        except FAILURES as error:
            failure = harmless(str(error))
            self._end(replace(report, state="failed", result={"failure": failure}))
            raise TransferError(
                f"The restore is not complete: {failure}. The snapshot is unchanged. Fix the cause and run the same "
                "command again to resume it",
                getattr(error, "details", None),
            ) from error
        loaded, unloaded = self._load([make_load(load, target.occupies) for load in options.consistent])
        has_loaded = bool(loaded) or (self._check and bool(options.consistent))
        result["changed"] = result["changed"] or has_loaded
        is_noted = (bool(loaded) or any(result.get(name) for name in _CHANGES)) and not self._check
        unnoted = self._note_restore(snapshot.name, target, list(loaded)) if is_noted else ""
        warnings = [*result.get("warnings", []), *([unnoted] if unnoted else [])]
        figures = {**keep_result(result), **({"failure": unloaded} if unloaded else {})}
        state = "unloaded" if unloaded else "restored"
        self._end(replace(report, state=state, result=figures, warnings=warnings, loaded=loaded))
        if unloaded:
            raise TransferError(_UNLOADED + unloaded, result)
        return result

    # Questions to the hosts

    def _find_snapshot(self) -> tuple[ChosenSnapshot, SnapshotCheck, Answers]:
        """Return the snapshot to restore from, its check, and what the host is as the source of the transfer.

        The newest one, and one that is named, is checked in the execution that lists all.
        """
        when = self._options.when
        guess = self._inspect(when) if when == LATEST or kind_of(when) else None
        answer, said = self._list_snapshots(guess)
        snapshots = _parse(self._repository, answer, self._parse_list)
        try:
            snapshot = choose(snapshots, self._options.when, self._options.timezone)
        except Refused as refused:
            raise Refusal(f"Nothing was restored: {refused}") from None
        self._say(f"{snapshot.name}, {snapshot.why}")
        level = self._options.check
        if said is None or _parse(self._repository, said, parse_name) != snapshot.name:
            (said,) = self._repository.run(self._inspect(snapshot.name, snapshot.state))
        checked = _parse(self._repository, said, lambda found: parse_check(found, level))
        probe = _parse(self._repository, said, parse_source)
        return snapshot, checked, {} if probe is None else {"source": probe}

    def _list_snapshots(self, guess: InspectSnapshot | None) -> tuple[object, object]:
        """Return the list, and the answer to a guess which snapshot it will be; None if there is none."""
        step: SnapshotStep = {"do": "snapshot", "action": "list", "place": self._place, "options": {}}
        if guess is not None:
            try:
                answer, said = self._repository.run(step, guess)
                return answer, said
            except HostFailed as error:
                if error.unreachable:
                    raise
        (answer,) = self._repository.run(step)
        return answer, None

    def _parse_list(self, answer: object) -> list[SnapshotInfo]:
        said = as_object(answer, "its answer")
        refused = optional(said, "refused", str)
        if refused is not None:
            raise HostFailed(refused, self._repository.name)
        return parse_snapshots(said.get("snapshots"))

    def _inspect(self, name: str, state: str = "") -> InspectSnapshot:
        return {
            "do": "inspect_snapshot",
            "place": self._place,
            "name": "unfinished" if state == "unfinished" else name,
            "path": self._request.path,
            "level": self._options.check,
            "probe": self._make_session(_ANY, False, False, "none", self._check).probe_step("source"),
        }

    def _note_restore(self, name: str, target: Target, loaded: Sequence[str]) -> str:
        """Enter the restore in the history of the snapshots; return why that failed, empty if it did not."""
        what = f"{self._request.path or 'all'} to {self._host.name}:{target.occupies}"
        what += f", and dumps of {', '.join(loaded)} into its databases" if loaded else ""
        options = {"name": name, "why": what, "by": self._by}
        step: SnapshotStep = {"do": "snapshot", "action": "restored", "place": self._place, "options": options}
        try:
            refused = _ask(self._repository, step, lambda said: optional(as_object(said, "it"), "refused", str))
        except ControllerGone:
            raise
        except HostFailed as error:
            refused = error.reason
        return f"the restore is not in the history of the snapshots: {one_line(refused)}" if refused else ""

    def _look_at(self, targets: Sequence[Target]) -> Mapping[Target, _Look]:
        """Return what is at these places; empty if one of several cannot be looked at, since that may be no matter."""
        asked: list[Step] = []
        for target in targets:
            inspect: InspectDestination = {
                "do": "inspect_destination",
                "repository": self._request.repository,
                "dest": target.dest,
                "occupies": target.occupies,
            }
            session = self._make_session(target, False, False, "none", self._check)
            asked += [inspect, session.probe_step("dest")]
        try:
            said = self._host.run(*asked)
        except HostFailed as error:
            if len(targets) == 1 or error.unreachable or isinstance(error, ControllerGone):
                raise
            return {}
        return {target: _Look(*pair) for target, *pair in zip(targets, said[::2], said[1::2], strict=True)}

    @property
    def _place(self) -> list[str]:
        return [self._request.repository, self._request.client, self._request.job]

    # Transfers

    def _would_change(self, target: Target, kind: str, known: _Known) -> bool:
        """Predict whether the restore would change the content of its destination; unknown counts as a change."""
        try:
            session = self._make_session(target, True, kind == "directory", "none", check=True)
            predicted = fails_alone(partial(session.run, **known))
        except ControllerGone:
            raise
        except FAILURES:
            return True
        if self._check and self._diff:
            for line in predicted["changes"]:
                self._say(line)
        return any(predicted.get(name) for name in _CHANGES)

    def _make_session(self, target: Target, checksum: bool, delete: bool, verify: str, check: bool) -> Session:
        source, dest = self._repository, self._host
        chosen = {name: value for name, value in self._options.transfer.items() if value is not None}
        ends = {"src_host": source.name, "src": target.src, "dest_host": dest.name, "dest": target.dest}
        own = {"checksum": checksum, "delete": delete, "verify": verify}
        # On the host itself the numbers mean what they meant when it was backed up.
        tells_owners = dest.name != self._request.client or not boolean(chosen.get("numeric_ids", True))
        given = {"trust": NONE, "sync": "data", "owner_warnings": tells_owners, **chosen, **ends, **own}
        spec = spec_from_documentation(DOCUMENTATION)
        options = validate_options(given, spec, (("port", "port_range"),), "restore_transfer")
        trust = decide_trust(options["trust"], {one.name: one.variables for one in (source, dest)})
        return Session(
            source, dest, {**options, "trust": trust}, check, self._say_progress, self._interruption, Memory()
        )

    def _load(self, loads: Sequence[Mapping[str, object]]) -> tuple[dict[str, str], str]:
        """Have the host load restored dumps. Return the databases of each kind, and why some are not loaded."""
        loaded: dict[str, str] = {}
        for load in loads:
            kind = str(load["kind"])
            what = f"the dumps of {kind} on {self._host.name}"
            if self._check:
                self._say(f"Would load {what}")
                continue
            try:
                databases, failure = load_dumps(self._host, load, self._request.name, self._say_progress)
            except ControllerGone:
                raise
            except FAILURES as error:
                databases, failure = "", f"{error}. Look on {self._host.name} which databases of {kind} exist"
            if databases or not failure:
                loaded[kind] = databases
            if failure:
                known = [f"Loaded: {one} ({kind})" for kind, one in loaded.items()]
                refused = [_LOADED] if known and not all(one["over"] for one in loads) else []
                return loaded, harmless(". ".join([failure.rstrip("."), *known, *refused]))
            self._say(f"Loaded {what}{': ' if databases else ''}{databases}")
        return loaded, ""

    # Reports

    def _make_report(self, snapshot: ChosenSnapshot, found: SnapshotCheck, target: Target) -> RestoreReport:
        request = self._request
        return RestoreReport(
            identity={
                "repository": f"{request.repository_host}:{request.repository}",
                "from": request.client,
                "job": request.job,
                "snapshot": snapshot.name,
                "path": request.path,
                "to": request.to,
                "dest": target.dest,
            },
            over=self._options.over,
            delete=self._options.delete,
            why=snapshot.why,
            snapshot_state=snapshot.state,
            checked=found.checked,
            problems=found.problems,
            problems_total=found.problems_total,
            check_mode=self._check,
            by=self._by,
        )

    def _read_state(self, report: RestoreReport) -> str:
        """Return the state in the report of the last run of the same restore, empty if there was none."""
        name = f"{report.name}.json"
        try:
            return str(self._folder.read(name, "report of a restore").get("state", ""))
        except (OSError, ValueError) as error:
            raise Refusal(
                f"Nothing was restored: {self._folder.path_of(name)} cannot be read: {error}. Remove it: then the "
                "destination is compared with the snapshot"
            ) from None

    def _end(self, report: RestoreReport) -> None:
        """Write and show the last report of a run."""
        ended, unwritten = self._write(report)
        for line in [*ended.lines(), *([f"warning: {unwritten}"] if unwritten else [])]:
            self._say(line)
        self.summary = ended.summary(self._folder.path_of(f"{ended.name}.html"))

    def _write(self, report: RestoreReport) -> tuple[RestoreReport, str]:
        """Write a report with the current time; return it, and why that for people could not be written."""
        at = now_text()
        now = replace(report, at=at, began=report.began or at)
        self._folder.save(f"{now.name}.json", now.dump())
        return now, save_page(self._folder, now.name, lambda _earlier: make_page(now))


def _ask(runner: HostRunner, step: Step, read: Callable[[object], T]) -> T:
    """Return the parsed answer of a host. Raises HostFailed, and what ``read`` raises but WrongShape."""
    (answer,) = runner.run(step)
    return _parse(runner, answer, read)


def _parse(runner: HostRunner, answer: object, read: Callable[[object], T]) -> T:
    try:
        return read(answer)
    except WrongShape as error:
        raise HostFailed(f"its answer cannot be read: {error}", runner.name) from error
