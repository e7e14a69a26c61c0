# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decisions of a restore, by the answers of its hosts. Answers are untrusted input. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape, as_object, member
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.names import DATA

from ...common.paths import within
from ...common.refusal import Refusal
from ...transfer.result import Result
from ..snapshot_answers import ShownProblem, parse_problems
from ..source_changes import tell_changes
from .request import RestoreOptions, RestoreRequest

_KINDS = ("directory", "file", "other")
_SHOWN = 10  # problems in a message


@dataclass(frozen=True)
class SnapshotCheck:
    """The comparison of a path in a snapshot with the manifest."""

    kind: str  # directory, file or other, which is a symbolic link or a special file
    checked: str  # its level; empty if there is no manifest that can be used
    problems: Sequence[ShownProblem]  # the first ones
    problems_total: int


def parse_check(answer: object, level: str) -> SnapshotCheck:
    """Return the answer of the repository host to a check of this level. Raises WrongShape."""
    said = as_object(answer, "its answer")
    kind, checked = member(said, "kind", str), member(said, "checked", str)
    if kind not in _KINDS or checked not in ("", level):
        raise WrongShape(f"a {kind!r} that was checked by {checked!r}")
    return SnapshotCheck(kind, checked, parse_problems(said.get("problems")), member(said, "problems_total", int))


def parse_name(answer: object) -> str:
    """Return the name of the snapshot that was checked. Raises WrongShape."""
    return member(as_object(answer, "its answer"), "name", str)


def parse_source(answer: object) -> object:
    """Return what the host said of itself as the source of the transfer; None if the path is none that is restored."""
    return as_object(answer, "its answer").get("probe")


def accept_snapshot(found: SnapshotCheck, name: str, accepts_damage: bool) -> str:
    """Return a warning about a snapshot that is restored, empty if it is intact. Raise Refusal for a damaged one.

    ``accepts_damage`` is the variable restore_damaged.
    """
    if found.problems_total and not accepts_damage:
        lines = [
            f"Nothing was restored. In {name} not all is as it was "
            f"({counted(found.problems_total, 'problem', 'problems')}):",
            *(f"- {_describe(problem)}" for problem in found.problems[:_SHOWN]),
            "Restore what is damaged from a snapshot that has it intact (restore_when=NAME, restore_path=PATH). To "
            "restore from this one as it is, set restore_damaged=true; the report names what is damaged.",
        ]
        raise Refusal("\n".join(lines))
    if found.checked:
        return ""
    return (
        f"{name} has no manifest that can be used, so nobody knows whether it is complete or intact. It is "
        "taken as it is, since that was asked for"
    )


def _describe(problem: ShownProblem) -> str:
    if problem["path"] is None:
        where, elsewhere = "the snapshot itself", ""
    else:
        where, elsewhere = problem["path"], "; intact in no other snapshot"
    if problem["intact_in"]:
        elsewhere = f"; intact in {', '.join(problem['intact_in'])}"
    return f"{where}: {problem['detail']}{elsewhere}"


@dataclass(frozen=True)
class Target:
    """The paths of the transfer that restores."""

    src: str
    dest: str
    occupies: str  # must not be there yet


def find_targets(request: RestoreRequest, options: RestoreOptions, snapshot: str, kind: str) -> list[Target]:
    """Return the paths for the transfer of a path of this ``kind``, in the order in which they are tried.

    A single file goes to its own place if that is free, and beside it if it is not. Raise Refusal for what cannot be
    restored.
    """
    beside = _find_target(request, options, snapshot, kind)
    if kind != "file" or options.dest or options.over:
        return [beside]
    return [Target(beside.src, f"{os.path.dirname(request.origin).rstrip('/')}/", request.origin), beside]


def _find_target(request: RestoreRequest, options: RestoreOptions, snapshot: str, kind: str) -> Target:
    """Return the paths for the transfer, over the original if the options say so.

    The contents of a directory, and a file as itself, arrive in the folder ``dest``.
    """
    origin, name, is_file = request.origin, os.path.basename(request.path), kind == "file"
    suffix = f"restored-{snapshot.lstrip('.')}"
    if options.dest:
        dest = options.dest
    elif options.over:
        dest = origin if kind == "directory" else os.path.dirname(origin)
    else:
        dest = f"{origin}.{suffix}" if origin != "/" else f"/{suffix}"
    dest, repository = os.path.normpath(dest), os.path.normpath(request.repository)
    problems = []
    if kind == "other":
        problems.append(
            f"'{request.path}' is a symbolic link or a special file, which is not restored by itself. Restore the "
            "folder that it is in (restore_path), beside the original, and take it from there"
        )
    if is_file and options.delete:
        problems.append("restore_delete is for folders, and this is a single file. Leave it out")
    # By the paths alone: the host itself follows symbolic links (the step inspect_destination).
    if request.to == request.repository_host and (within(dest, repository) or within(repository, dest)):
        problems.append(
            f"{dest} and the repository {repository} are in each other, and a restore there could spoil the snapshots. "
            "Name another folder in restore_dest"
        )
    if problems:
        raise Refusal(f"Nothing was restored: {'; '.join(problems)}")
    # Made of the name, since a path in an answer may be any path.
    tree = os.path.join(request.repository, request.client, request.job, snapshot, DATA)
    src = os.path.join(tree, request.path) if request.path else tree
    if is_file:
        return Target(src, dest.rstrip("/") + "/", os.path.join(dest, name))
    return Target(f"{src}/", dest, dest)


def accept_destination(answer: object, request: RestoreRequest, target: Target) -> bool:
    """Return whether the destination is free, by the answer of its host. Raise Refusal if it is in the repository.

    Raises WrongShape.
    """
    said = as_object(answer, "its answer")
    if member(said, "overlaps", bool):
        raise Refusal(
            f"Nothing was restored: {target.dest} leads to {member(said, 'dest', str)} on {request.to}, which and the "
            f"repository {request.repository} are in each other, and a restore there could spoil the snapshots. Name "
            "another folder in restore_dest"
        )
    return member(said, "free", bool)


def must_predict(over: bool, is_free: bool, earlier: str) -> bool:
    """Return whether the destination is compared with the snapshot before anything is written.

    ``earlier`` is the state in the report of the last run of the same restore, empty if there was none: an interrupted
    run is resumed, and a complete one must have changed nothing since. ``over``: the user wants to overwrite files.
    """
    return not (over or is_free or earlier in ("begun", "failed"))


def refuse_occupied(host: str, path: str, kind: str) -> Refusal:
    """Return the refusal for a destination with other content."""
    return Refusal(
        f"Nothing was restored: {path} is there on {host} {'and not empty' if kind == 'directory' else 'already'}, "
        "and is not what this would restore. Name another folder in restore_dest, move away what is there, or, to "
        "write over it, set restore_over=true (see with --check --diff first what that would change)"
    )


def failure_of_snapshot(result: Result, dest: str) -> str:
    """Return the failure of a transfer during which the snapshot changed, empty if it did not.

    In a tree that is in use files may vanish or change. In a snapshot they must not.
    """
    changes = tell_changes(result)
    if changes["only"] == "differs":
        return (
            f"{counted(changes['count'], 'entry', 'entries')} changed in the snapshot during the transfer, for example "
            f"{changes['example']}: something writes there. Find what does, or restore from another snapshot"
        )
    if result["vanished"]:
        return (
            f"{result['vanished']} files were gone from the snapshot before they could be read, so it was removed "
            f"meanwhile, or something changes it. {dest} is not complete. Restore from another snapshot"
        )
    return ""
