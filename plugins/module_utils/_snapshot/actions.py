# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Do one thing with the snapshots of a job, under the lock where it changes something, and say what became of it.

The module ``snapshot`` and the step of that name are two ways to ask for the same.
"""

from __future__ import annotations

import os
import time
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple

from .._core.counted import counted
from . import names, policy, rsnapshot, subset, time_zones
from .adopt import adopt
from .audit import audit
from .begin import Begun, begin, finished_by, unfinished_facts, unfinished_writer
from .check import STRUCTURE, Problem, Report
from .check_run import check
from .differences import DiffResult, diff
from .errors import Refused, unexpected
from .finish import finish
from .history import MISSED, RESTORED, enter_news, event_of, find_missing, note
from .hold import hold_of, protect, unprotect
from .listing import listing
from .predicted_states import States
from .prune import prune
from .quarantine import accept, discard
from .repair import REPAIRABLE, repair
from .repository import Series
from .room import find_room, refuse_too_full
from .search import HistoryResult, find, history
from .suspicion import ChangeLimits

if TYPE_CHECKING:
    from .build_manifest import Beside

MAX_LISTED = 200
DEFAULTS: Mapping[str, Any] = {  # of all options
    **dict.fromkeys(("run", "ended_run", "expected_entries", "expected_bytes", "keep", "snapshots", "name")),
    "rsnapshot_root": None,
    "shrink_limit": 50.0,
    "change_limit": 50.0,
    "timezone": "UTC",
    "lazy": False,
    "takeover": False,
    "by": "",
    "why": "",
    "control_time": None,
    **dict.fromkeys(("reason", "until"), ""),
    "read_only": False,
    "expects": 0,  # snapshots that the control node knows; the module has no such option, as for the next four
    "min_free": "",  # what must be free before it begins, as the role has it
    "copy_of": "",  # with begin, the snapshot of another repository that is copied
    "counts_new": False,  # with prune in check mode: the snapshot that the run would have completed counts
    "copied_from": "",  # with finish and repair, that repository
    "check_level": "contents",
    "check_subset": "1/1",
    **dict.fromkeys(("match", "path", "old", "new")),
    "limit": 200,
    "rsnapshot_path": "",
    "rsnapshot_levels": list(rsnapshot.LEVELS),
}
_READING = ("list", "check", "find", "history", "diff")

Holder = Callable[[bytes], "str | None"]  # of a real path: which transfer uses it


class Holders(NamedTuple):
    """Who uses a folder at this moment, as the caller knows it."""

    writer: Holder  # that writes to the root of this path
    reader: Holder  # that reads below it


class Done(NamedTuple):
    """What became of it: the result of the module, and what a person should know beside it.

    ``failed`` says why the snapshots are not as they should be, although all was done that was asked for.
    """

    result: dict[str, Any]
    warnings: list[str]
    failed: str = ""
    is_repairable: bool = False  # what failed is the damage of files, which a repair may end


def _iso(seconds: int | None) -> str | None:
    return None if seconds is None else names.time_text(seconds)


class ChangeResult(NamedTuple):
    """The result of an action that tells nothing else."""

    changed: bool


class HoldResult(NamedTuple):
    """The hold of a snapshot that there is now; see RETURN."""

    changed: bool
    hold: dict[str, object]


class FinishResult(NamedTuple):
    """What became of the snapshot; see RETURN."""

    changed: bool
    name: str
    aside: str
    figures: dict[str, int]
    unproven: list[str]


class ListResult(NamedTuple):
    """The snapshots that there are, and the room for more; see RETURN."""

    changed: bool
    snapshots: list[dict[str, object]]
    space: dict[str, int | None]


class PruneResult(NamedTuple):
    """What was removed; see RETURN."""

    changed: bool
    kept: dict[str, list[str]]
    removed: list[str]
    leftovers: list[str]


class AdoptResult(NamedTuple):
    """What was made of rsnapshot's; see RETURN."""

    changed: bool
    adopted: dict[str, str]
    present: dict[str, str]
    skipped: list[str]


class CheckResult(NamedTuple):
    """What a check found; see RETURN."""

    changed: bool
    sound: bool
    checked: dict[str, object]
    problems: list[dict[str, str | list[str] | bool | None]]
    problems_total: int


class RepairResult(NamedTuple):
    """The result of the action repair; see RETURN."""

    changed: bool
    repaired: list[dict[str, object]]
    wanted: list[dict[str, object]]
    left: int


class _Actions:
    """One method for each action; each returns the module's result, and keeps ``after`` as a diff shows it."""

    def __init__(
        self,
        options: Mapping[str, Any],
        series: Series,
        now: int,
        holders: Holders,
        dry: bool,
        beside: Beside | None,
    ) -> None:
        self._options, self._series, self._now = options, series, now
        self._holders, self._dry, self._beside = holders, dry, beside
        self.before = States.of(series)
        self.after = self.before
        self.warnings: list[str] = []
        self.failure = ""  # why the snapshots are not as they should be
        self.is_repairable = False

    def _writer(self, path: str) -> str | None:
        """Return the transfer that writes to a path; transfers know it by its real path."""
        return self._holders.writer(os.fsencode(os.path.realpath(path)))

    def _reader(self, path: str) -> str | None:
        return self._holders.reader(os.fsencode(os.path.realpath(path)))

    def begin(self) -> Begun:
        """Make the unfinished snapshot."""
        options = self._options
        begun = begin(
            self._series,
            options["run"],
            self._now,
            self._writer,
            ended=options["ended_run"],
            takeover=options["takeover"],
            copy_of=options["copy_of"],
            check=self._dry,
        )
        self.after = (self.before if begun.finished else self.before.begun(begun.name)).settled(self._now)
        return begun

    def finish(self) -> FinishResult:
        """Make it complete."""
        done = finish(
            self._series,
            self._options["run"],
            self._now,
            limits=ChangeLimits(self._options["shrink_limit"], self._options["change_limit"]),
            expected_entries=self._options["expected_entries"],
            expected_bytes=self._options["expected_bytes"],
            beside=self._beside,
            read_only=self._options["read_only"],
            copied_from=self._options["copied_from"],
            check=self._dry,
        )
        self.warnings += done.warnings
        if done.aside:
            self.warnings.append(
                f"{done.name} was set aside: {done.aside}. Nothing is pruned until it was compared with the one "
                "before, and accepted or discarded"
            )
        self.after = self.before.finished(done.name).settled(self._now)
        figures = done.facts.figures.dump() if done.facts else {}
        return FinishResult(done.changed, done.name, done.aside, figures, list(done.unproven))

    def list(self) -> ListResult:
        """Return the snapshots."""
        return ListResult(
            False,
            [
                {
                    **item._asdict(),
                    "time": _iso(item.time),
                    "verified": _iso(item.verified),
                    "checked": _iso(item.checked),
                    "hold": item.hold.shown() if item.hold else {},
                }
                for item in listing(self._series, self._now, self._options["control_time"])
            ],
            find_room(self._series.path)._asdict(),
        )

    def history(self) -> HistoryResult:
        """Return the versions of a path."""
        found, warnings = history(self._series, self._options["path"], self._options["limit"])
        self.warnings += warnings
        return found

    def diff(self) -> DiffResult:
        """Return what differs between two snapshots."""
        found, warnings = diff(self._series, self._options["old"], self._options["new"], self._options["limit"])
        self.warnings += warnings
        return found

    def prune(self) -> PruneResult:
        """Remove what the policy does not keep."""
        wanted = policy.parse(self._options["keep"] or {})
        if self._options["control_time"] is not None:
            warning = policy.compare_clocks(self._now, self._options["control_time"])
            self.warnings += [warning] if warning else []
        calendar, lazy = time_zones.calendar_of(self._options["timezone"]), self._options["lazy"]
        done = prune(
            self._series,
            wanted,
            self._now,
            calendar,
            self._reader,
            lazy=lazy,
            control_time=self._options["control_time"],
            check=self._dry,
            counts_new=self._options["counts_new"],
        )
        for name in done.protected_leftovers:
            self.warnings.append(
                f"{name} was renamed to be removed, and it is protected, so it stays. Give it back its name "
                f"(mv {name} {name[len(names.REMOVING_PREFIX) :]}), or unprotect it then"
            )
        for name, holder in done.held.items():
            self.warnings.append(
                f"{name} is being read by {holder}, so it stays for now. The next prune removes it once nobody does"
            )
        self.after = self.before.pruned(done.removed, lazy).settled(self._now)
        return PruneResult(done.changed, done.kept, done.removed, done.leftovers)

    def check(self) -> CheckResult:
        """Compare with the manifests."""
        level, only = self._options["check_level"], self._options["snapshots"]
        wanted = subset.parse(self._options["check_subset"])
        if not self._dry:
            with suppress(Refused, OSError), self._series.lock("check"):  # it may only read
                self.warnings += enter_news(self._series, self._now)
        report, part = check(self._series, level, self._now, wanted, only, record=not self._dry)
        if only is None:
            self._add_missing(report)
        self.warnings += report.warnings
        if not report.snapshots and not report.problems:
            raise Refused(f"there is no snapshot in {self._series.path}, so there is nothing that a check could prove")
        problems = sorted(report.problems.values(), key=lambda problem: problem.known)
        new = [problem for problem in problems if not problem.known]
        if new:
            self.failure = _summary(new, report.problems_total - len(problems) + len(new))
            self.is_repairable = all(problem.kind in REPAIRABLE for problem in new)
        return CheckResult(
            changed=False,
            sound=not report.problems_total,
            checked={
                "snapshots": report.snapshots,
                "entries": report.entries,
                "files_read": report.files_read,
                "bytes_read": report.bytes_read,
                "not_permitted": report.not_permitted,
                "parts": sorted(part.parts),
                "of": part.of,
            },
            problems=[problem.dump() for problem in problems[:MAX_LISTED]],
            problems_total=report.problems_total,
        )

    def repair(self) -> RepairResult:
        """Replace damaged files by intact ones."""
        done = repair(self._series, self._now, self._writer, copied_from=self._options["copied_from"], check=self._dry)
        self.warnings += [f"not repaired: {text}" for text in done.problems[:MAX_LISTED]]
        return RepairResult(
            done.changed,
            [one._asdict() for one in done.repaired[:MAX_LISTED]],
            [one._asdict() for one in done.wanted],
            done.left,
        )

    def _add_missing(self, report: Report) -> None:
        """Add the snapshots that are gone to what a check found. It tells of each as new once."""
        missing = find_missing(self._series, self._now)
        for one in missing:
            detail = (
                f"it is gone: {one.describe()}, and no action of this collection removed it. Find out who did. If it "
                f"was meant, say so (action discard, name {one.name})"
            )
            report.add(STRUCTURE, one.name, None, detail)
            problem = report.problems.get((STRUCTURE, None, detail))
            if problem is not None:
                problem.known = one.is_missed
        told = [one.name for one in missing if one.is_missed]
        if told:
            report.warnings.append(f"gone, as an earlier check told: {', '.join(told)}")
        new = [event_of(self._series, MISSED, one.name, self._now) for one in missing if not one.is_missed]
        if not self._dry:
            with suppress(Refused, OSError), self._series.lock("check"):  # it may only read
                note(self._series, *new)

    def restored(self) -> ChangeResult:
        """Enter a restore in the history."""
        event = event_of(self._series, RESTORED, self._options["name"], self._now, self._options["why"])
        return ChangeResult(note(self._series, event))

    def accept(self) -> ChangeResult:
        """Take what was set aside."""
        time = self._options["control_time"]
        changed = accept(self._series, self._options["name"], self._now, control_time=time, check=self._dry)
        self.after = self.before.accepted(self._options["name"]).settled(self._now)
        return ChangeResult(changed)

    def discard(self) -> ChangeResult:
        """Drop what was set aside or not finished."""
        changed = discard(
            self._series,
            self._options["name"],
            self._writer,
            now=self._now,
            control_time=self._options["control_time"],
            check=self._dry,
        )
        self.after = self.before.discarded(self._options["name"])
        return ChangeResult(changed)

    def protect(self) -> HoldResult:
        """Keep a snapshot from being removed."""
        name, until, reason = (self._options[one] for one in ("name", "until", "reason"))
        changed = protect(self._series, name, until, reason, self._now, check=self._dry)
        self.after = self.before.protecting(name)
        return HoldResult(changed, self._hold(name))

    def unprotect(self) -> HoldResult:
        """End the protection of a snapshot."""
        name = self._options["name"]
        changed = unprotect(self._series, name, self._options["reason"], self._now, check=self._dry)
        self.after = self.before.unprotecting(name)
        return HoldResult(changed, self._hold(name))

    def _hold(self, name: str) -> dict[str, object]:
        with self._series.snapshot(name) as snapshot:
            hold = hold_of(snapshot)
        return hold.shown() if hold else {}

    def adopt_rsnapshot(self) -> AdoptResult:
        """Make snapshots of what rsnapshot has."""
        root, path, levels = (self._options[f"rsnapshot_{key}"] for key in ("root", "path", "levels"))
        done = adopt(self._series, root, path, self._now, levels, check=self._dry)
        self.warnings += done.warnings
        self.after = self.before.adopted(list(done.adopted)).settled(self._now)
        return AdoptResult(done.changed, done.adopted, done.present, done.skipped)


def _summary(problems: list[Problem], total: int) -> str:
    """Describe in a few sentences what a check found: the first problems, and where the contents are intact."""
    texts = []
    for problem in problems[:3]:
        where = ", ".join(problem.snapshots)
        what = (
            f"{where}: {problem.detail}" if problem.path is None else f"'{problem.shown}' in {where}: {problem.detail}"
        )
        if problem.intact_in:
            what += f" (intact in {', '.join(problem.intact_in)})"
        texts.append(what)
    more = f"; and {total - len(texts)} more" if total > len(texts) else ""
    repairing = ""
    if any(problem.kind in REPAIRABLE and problem.in_doubt for problem in problems):
        repairing = ". Then replace damaged files by those of other snapshots that have them intact (action: repair)"
    return (
        f"the snapshots are not as they were, {counted(total, 'problem', 'problems')}: {'; '.join(texts)}{more}. Save "
        f"what is intact elsewhere first, and look into the system's log for errors of the disk{repairing}"
    )


def _refuse_other_disk(place: tuple[str, str, str], expects: int) -> None:
    """Refuse to begin where snapshots are expected and there are none: a mount point without its disk looks so."""
    repository, host, job = place
    with Series(repository, host, job) as series:
        if series.named(names.COMPLETE) or series.named(names.ASIDE):
            return
    left = counted(expects, "snapshot", "snapshots")
    raise Refused(
        f"there is no snapshot of {host}/{job} in {repository}, and the last run left {left}. Its disk may not be "
        "mounted: mount it. If the snapshots were removed or moved on purpose, remove "
        f"jobs/{host}/{job}.json from the folder of the backups' reports on the control node, and run this again"
    )


def _refuse_full_disk(place: tuple[str, str, str], run: str, least: str, holders: Holders) -> None:
    """Refuse to begin where too little is free; what this run or a transfer at work has begun may go on."""
    repository, host, job = place
    with Series(repository, host, job) as series:
        if finished_by(series, run) is not None:
            return
        if series.has(names.UNFINISHED):
            facts = unfinished_facts(series)
            if facts is not None and facts.run == run:
                return
            if unfinished_writer(series, lambda path: holders.writer(os.fsencode(os.path.realpath(path)))):
                return
    refuse_too_full(repository, least)


def do_action(
    action: str,
    place: tuple[str, str | None, str | None],
    given: Mapping[str, Any],
    holders: Holders,
    dry: bool = False,
    beside: Beside | None = None,
) -> Done:
    """Do what the module's option ``action`` names with the snapshots of a job.

    ``place`` is the repository, the host and the job (None with ``find``: all), ``given`` the module's other options.
    Where it is ``dry``, nothing changes, and the result is what would be. ``beside`` is that of ``finish``. Raises
    Refused with what was found, why it matters, what to do, and TreeMismatch as ``finish`` does.
    """
    options = {**DEFAULTS, **given}
    changes = action not in _READING and not dry
    repository, host, job = place
    try:
        if action == "find":
            found, warnings = find(repository, host, job, options["match"] or {}, options["limit"])
            return Done(found._asdict(), warnings)
        if action == "audit":
            audited = audit(repository, int(time.time()))
            folders = [
                {**one._asdict(), "decisions": [act._asdict() for act in one.decisions]} for one in audited.folders
            ]
            return Done({**audited._asdict(), "space": audited.space._asdict(), "folders": folders}, [])
        if not host or not job:
            raise Refused(f"the action {action} is about one job: give host and job")
        if action == "begin" and options["expects"]:
            _refuse_other_disk((repository, host, job), options["expects"])
        if action == "begin" and options["min_free"]:
            _refuse_full_disk((repository, host, job), options["run"], options["min_free"], holders)
        with Series(repository, host, job, create=changes and action in ("begin", "adopt_rsnapshot")) as series:
            now = int(time.time())
            series.by = options["by"]
            with series.lock(action) if changes else nullcontext():
                news = enter_news(series, now) if changes else []
                actions = _Actions(options, series, now, holders, dry, beside)
                actions.warnings += news
                result = getattr(actions, action)()._asdict()
                actions.warnings += [series.unnoted] if series.unnoted else []
                if changes:
                    actions.after = States.of(series)
    except OSError as error:
        raise unexpected(error, os.path.join(*filter(None, place))) from error
    if action not in _READING:
        result["diff"] = {"before": actions.before.text(), "after": actions.after.text()}
    return Done(result, actions.warnings, actions.failure, actions.is_repairable)
