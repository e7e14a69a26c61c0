# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that the control node can ask of a host. Private to the collection.

Several steps make one execution of the module, since each execution costs a fleet time. For the same reason a step
imports what it alone needs.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple, Sequence, cast

from .._core.disk_full import FULL, no_room
from .._core.state_folder import StateError, state_root
from . import launcher
from .state import JobFolder, JobStatus, list_jobs
from .steps import parse_step

if TYPE_CHECKING:
    from . import steps
    from .leases import LeaseResult
    from .probe import EndDescription, ProbeFacts


class StepContext(NamedTuple):
    """What came along with the steps."""

    secrets: dict[str, str]
    engine: str  # the path of the archive that jobs are started from


def run_steps(asked: Sequence[object], given: StepContext) -> list[object]:
    """Do the steps in order and return each one's result. Raises WrongShape before the first one is done.

    After a guard that does not let them pass, no more are done. Raises StateError if there is no room.
    """
    done: list[object] = []
    for step in [parse_step(one) for one in asked]:
        try:
            done.append(_STEPS[step["do"]](step, given))
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise StateError(no_room(error, state_root())) from error
        if step["do"] == "lease" and step["guard"] and not cast("LeaseResult", done[-1])["held"]:
            break
    return done


def _folder(step: steps.JobKey) -> JobFolder:
    return JobFolder(step["id"], step["side"])


def _probe(step: steps.Probe, given: StepContext) -> ProbeFacts:
    """Return what this host has, and do what follows where that is what an earlier probe found."""
    from .probe import fingerprint, probe

    facts = probe(step)
    facts["fingerprint"] = fingerprint(facts)
    then = step.get("then")
    if then and step.get("expected") == facts["fingerprint"]:
        facts["then"] = run_steps(then, given)
    return facts


def _describe(step: steps.Describe, _given: StepContext) -> EndDescription:
    """Return what exists at a path, and how fast this host hashes, for a comparison."""
    from .._tree.content_hash import speeds
    from .._tree.time_units import observed_units
    from .probe import describe_with_child, machine, numbers_of

    path = describe_with_child(step["path"], step.get("child"))
    for facts in (path, path.get("child")):
        if facts and facts["type"] == "directory":
            facts["time_units"] = observed_units(os.fsencode(facts["real"]), step.get("rules", ()))
    return {
        "path": path,
        "machine": machine(),
        "hash_speeds": speeds(),
        "now_ns": time.time_ns(),
        "owners": numbers_of(step.get("owners") or {}),
    }


def _start(step: steps.Start, given: StepContext) -> JobStatus:
    """Start a job, and do what follows it where it has finished by now."""
    folder = _folder(step)
    replaced = step.get("replace")
    if replaced and folder.status.get("pid") == replaced:
        launcher.stop(folder, succeeded=False)
    names = step.get("secrets", [])
    status = launcher.start(
        folder,
        given.engine,
        step["kind"],
        step["request"],
        {name: given.secrets[name] for name in names},
        tuple(step["until"]),
        float(step["wait"]),
    )
    then = step.get("then")
    if then and status["state"] == "finished" and not status["alive"]:
        started = time.monotonic()
        status["then"] = run_steps(then, given)
        status["then_seconds"] = time.monotonic() - started
    return status


def _poll(step: steps.Poll, _given: StepContext) -> JobStatus:
    """Return a job's status, at once when it ends, else after ``wait`` seconds."""
    return launcher.watch(_folder(step), tuple(step.get("until", ())), float(step["wait"]))


def _stop(step: steps.Stop, _given: StepContext) -> JobStatus:
    """End a job and give its last status and log. Raise StateError if its staging folder could not be removed."""
    folder = _folder(step)
    status = launcher.stop(folder, bool(step["succeeded"]))
    if step["succeeded"] and status.get("staging_left"):
        folder.remove()
        raise StateError(status["failure"])
    return {**status, "log": folder.log_tail()}


def _clear(step: steps.Clear, _given: StepContext) -> Mapping[str, object]:
    """Remove what a job that has ended left in the state folder."""
    folder = _folder(step)
    if folder.is_running():
        raise StateError(f"the job of {folder.transfer_id} on this side ({folder.side}) is still running")
    launcher.remove(folder)
    return {}


def _sync(step: steps.Sync, _given: StepContext) -> Mapping[str, object]:
    """Wait until the disk has a tree, and return how many ``seconds`` that took. Raise StateError if it does not."""
    from .._core.durability import sync_tree

    started = time.monotonic()
    try:
        sync_tree(step["path"])
    except OSError as error:
        raise StateError(
            f"the transfer ended, but {step['path']} did not reach the disk as a whole: {error.strerror}. Look at "
            "dmesg and at the disk; afterwards run the task again with verify: checksum, which sends again what differs"
        ) from error
    return {"seconds": time.monotonic() - started}


def _control(step: steps.Control, _given: StepContext) -> object:
    """Pause, slow, resume or cancel transfers; return what became of each, and the ids that this host does not have."""
    from .control_client import parse_wish, select, tell

    chosen, missing = select(list_jobs(), step.get("ids"))
    told = tell(chosen, parse_wish(step.get("state"), step.get("bwlimit")), predict=False)
    return {"told": [one._asdict() for one in told], "missing": missing}


def _discover(step: steps.Discover, _given: StepContext) -> Mapping[str, object]:
    """Return what this host has for a migration, and what was kept here of the job."""
    from .._migrate.preflight import discover
    from .leases import look_at_lease
    from .records import find_record

    found, identity = discover(step["side"], step["path"], step["peer"], step["port"]), step["transfer_id"]
    if not identity:
        return {**found, "record": None}
    used = _users_of(step["tree"], identity) if step.get("tree") else {}
    return {**found, "record": find_record(identity), "lease": look_at_lease(identity), **used}


def _find_tree_users(step: steps.FindTreeUsers, _given: StepContext) -> Mapping[str, object]:
    """Return the processes that use a tree."""
    return _users_of(step["tree"], step["transfer_id"])


def _users_of(tree: str, transfer_id: str) -> Mapping[str, object]:
    """Return the processes that use a tree; none while this transfer runs, whose own they would be."""
    from .._migrate.tree_users import find_tree_users
    from .._tree.resolve import ForeignLink, real_path

    if JobFolder(transfer_id, "dest").is_running():
        return {"users": [], "unseen": ""}
    try:
        return {**find_tree_users(os.fsdecode(real_path(os.fsencode(tree))))}
    except (OSError, ForeignLink):  # told where the tree is used
        return {"users": [], "unseen": ""}


def _overview(step: steps.OverviewStep, _given: StepContext) -> object:
    """Return what all transfers of this user do at the moment."""
    from .overview import look

    return look(float(step["interval"]))


def _keep_record(step: steps.KeepRecord, _given: StepContext) -> Mapping[str, object]:
    """Keep the record of a job; return the ``problem`` if that failed, since the steps before it have not."""
    from .records import keep_record

    try:
        keep_record(step["id"], step["record"])
    except StateError as error:
        return {"problem": str(error)}
    return {"problem": ""}


def _lease(step: steps.LeaseStep, _given: StepContext) -> LeaseResult:
    """Take, renew or release the lease of a job.

    A record is kept before others may have the job, and not of a job that is another's by now. What cannot be kept here
    could not be kept earlier either, and was told then.
    """
    from .leases import do_lease
    from .records import keep_record

    record = step.get("record")
    if record is not None and do_lease({**step, "act": "renew"})["held"]:
        with contextlib.suppress(StateError):
            keep_record(step["id"], record)
    return do_lease(step)


def _snapshot(step: steps.SnapshotStep, given: StepContext) -> Mapping[str, object]:
    """Do something with the snapshots of a job; return the module's result with the ``warnings``.

    Where it is refused, or a check found problems, the reason stands under ``refused`` in its place. ``busy`` beside it
    says whether another run is at work, ``repairable`` whether a check found nothing but damaged files. Else the steps
    ``then`` follow.
    """
    from .._snapshot.actions import Holders, do_action
    from .._snapshot.errors import Busy, Refused, TreeMismatch
    from .state import destination_holder, source_reader

    repository, host, job = step["place"]
    holders = Holders(destination_holder, source_reader)
    beside = None
    compare = step.get("compare")
    if compare is not None:
        from .digest_job import DigestBeside
        from .request import parse_digest_request

        beside = DigestBeside(parse_digest_request(compare["request"]), compare["sums"])
    check = step.get("check", False)
    try:
        done = do_action(step["action"], (repository, host, job), step["options"], holders, check, beside)
    except Refused as refused:
        return {"refused": str(refused), "busy": isinstance(refused, Busy)}
    except TreeMismatch:
        return {"differs": True, "warnings": []}
    if done.failed:
        return {"refused": done.failed, "repairable": done.is_repairable}
    return {**done.result, "warnings": done.warnings, "then": run_steps(step.get("then", ()), given)}


def _inspect_snapshot(step: steps.InspectSnapshot, given: StepContext) -> Mapping[str, object]:
    """Return the kind of a path in a snapshot and the problems below it. Raise StateError if there is no such path."""
    from .._snapshot.actions import MAX_LISTED
    from .._snapshot.errors import Refused, unexpected
    from .._snapshot.inspect_path import find_source, inspect_path
    from .._snapshot.repository import Series

    repository, host, job = step["place"]
    try:
        with Series(repository, host, job) as series:
            found = inspect_path(series, step["name"], os.fsencode(step["path"]), step["level"])
    except (Refused, ValueError) as refused:
        raise StateError(str(refused)) from None
    except OSError as error:
        raise StateError(str(unexpected(error, os.path.join(repository, host, job)))) from error
    report, probe, source = found.report, step.get("probe"), find_source(step["place"], found, step["path"])
    return {
        "probe": _probe(cast("steps.Probe", {**probe, "path": source}), given) if probe and source else None,
        "name": found.name,
        "kind": found.kind,
        "checked": found.checked,
        "problems": [problem.dump() for problem in list(report.problems.values())[:MAX_LISTED]],
        "problems_total": report.problems_total,
    }


def _inspect_destination(step: steps.InspectDestination, _given: StepContext) -> Mapping[str, object]:
    """Return the state of a restore's destination. Raise StateError if it cannot be one."""
    from .._core.errors import TransferFailed
    from .._snapshot.overlap import inspect_destination

    dest = step["dest"]
    try:
        return inspect_destination(step["repository"], dest, step["occupies"])._asdict()
    except (TransferFailed, OSError) as error:
        raise StateError(f"Nothing was restored: {dest} cannot be the destination: {error}") from None


def _choose_share(step: steps.ChooseShare, _given: StepContext) -> Mapping[str, object]:
    """Return the share of a snapshot that a drill restores, or why there is none under ``refused``."""
    from base64 import b64encode

    from .._snapshot.drill import choose_share
    from .._snapshot.errors import Refused, unexpected
    from .._snapshot.repository import Series

    repository, host, job = step["place"]
    count, of = step["share"]
    try:
        with Series(repository, host, job) as series:
            found = choose_share(
                series,
                step["which"],
                step["seed"],
                (count, of),
                step["room"],
                step["entries"],
                int(time.time()),
                step["always"],
            )
    except Refused as refused:
        return {"refused": str(refused)}
    except OSError as error:
        return {"refused": str(unexpected(error, os.path.join(repository, host, job)))}
    return {**found._asdict(), "manifest": b64encode(found.manifest).decode()}


def _scratch(step: steps.Scratch, _given: StepContext) -> Mapping[str, object]:
    """Look for the place of a drill's scratch folder, make, add, compare or remove one; ``refused`` says why not."""
    from base64 import b64decode

    from .._snapshot import drill
    from .._snapshot.actions import MAX_LISTED
    from .._snapshot.errors import Refused

    place, name, owner = step["place"], step["name"], step["owner"]
    try:
        if step["act"] in ("look", "make"):
            return drill.make_scratch(place, name, owner, step["avoid"], check=step["act"] == "look")._asdict()
        if step["act"] == "add":
            drill.add_scratch(place, name, owner)
            return {}
        if step["act"] == "remove":
            return {"removed": drill.remove_scratch(place, name, owner)}
        report = drill.compare_scratch(place, name, owner, b64decode(step["manifest"]))
    except Refused as refused:
        return {"refused": str(refused)}
    except OSError as error:
        return {"refused": f"{place} cannot be worked on: {error.strerror or error}"}
    return {
        "entries": report.entries,
        "problems": [problem.dump() for problem in list(report.problems.values())[:MAX_LISTED]],
        "problems_total": report.problems_total,
    }


def _quick_digest(step: steps.QuickDigest, given: StepContext) -> Mapping[str, object]:
    """Return the ``digest`` of a tree that is read within ``seconds``, None else; after it come the steps ``then``.

    Their results stand beside it under that name.
    """
    from .digest_job import quick_digest
    from .request import parse_digest_request

    digest = quick_digest(parse_digest_request(step["request"]), float(step["seconds"]))
    return {"digest": digest, "then": [] if digest is None else run_steps(step["then"], given)}


def _look_up_owners(step: steps.LookUpOwners, _given: StepContext) -> Mapping[str, object]:
    """Return what this host, the destination, knows of the ids that were ``counted`` at the source."""
    from .._tree.owners import answer

    return answer(step["counted"])


def _drill_down(step: steps.DrillDown, _given: StepContext) -> Mapping[str, object]:
    """Answer a question about the differences that two digests show."""
    from .digest_job import drill_down

    return drill_down(_folder(step), step)


_STEPS: Mapping[str, Callable[[Any, StepContext], object]] = {
    "probe": _probe,
    "describe": _describe,
    "start": _start,
    "poll": _poll,
    "stop": _stop,
    "clear": _clear,
    "sync": _sync,
    "control": _control,
    "discover": _discover,
    "find_tree_users": _find_tree_users,
    "overview": _overview,
    "keep_record": _keep_record,
    "lease": _lease,
    "snapshot": _snapshot,
    "inspect_snapshot": _inspect_snapshot,
    "inspect_destination": _inspect_destination,
    "choose_share": _choose_share,
    "scratch": _scratch,
    "quick_digest": _quick_digest,
    "drill_down": _drill_down,
    "look_up_owners": _look_up_owners,
}
