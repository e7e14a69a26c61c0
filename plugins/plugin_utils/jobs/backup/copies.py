# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of a job's snapshots in other repositories: which are made, what repairs which, and their state. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names, policy
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.facts import KNOWN_DAMAGE
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.prove_copy import MAX_UNPROVEN
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.time_zones import calendar_of

from ...common.host_text import one_line
from ...common.paths import within
from ...transfer.repair import rules_for
from .jobs import Copy, Repository, Run, folder_of, line_options

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.probe import EndDescription

# A copy has all of a snapshot's tree, and the manifest as a file. What else is beside them belongs to its repository.
_TREE_AND_MANIFEST = (f"+ /{names.DATA}/", f"+ /{names.MANIFEST}", "- /*")
_EXAMPLES = 3  # paths in a message


@dataclass
class CopyState:
    """A copy of a job's snapshots in another repository after a run. None: not known, or nothing is there."""

    host: str
    path: str
    newest: str | None = None  # when the newest snapshot was begun that is there
    lag_seconds: int | None = None  # by which that is older than the newest one in the first repository
    snapshots: int | None = None  # complete ones
    verified: str | None = None  # when the contents of a snapshot there were last found to be intact
    copied: list[str] = field(default_factory=list)  # in that run
    removed: list[str] = field(default_factory=list)  # by its own policy
    bytes_sent: int = 0
    repaired: int = 0  # files of it that were repaired
    error: str = ""  # why it is not as it should be
    failing_since: str = ""  # when the first of the runs began in which it failed

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return f"{self.host}:{self.path}"


@dataclass
class WantedContent:
    """Contents that a repository needs for a repair."""

    path: str  # escaped
    snapshots: list[str]  # that have them at the path, by their manifests


@dataclass
class RepairedFile:
    """A path whose damaged file was replaced."""

    path: str
    snapshots: list[str]
    source: str  # the snapshot or the repository that had the contents


def token_of(name: str) -> str:
    """Return the token of all runs that copy a snapshot, so that each continues what another one has begun."""
    return f"copy of {name}"


def choose_snapshots(
    made: Sequence[str], there: Sequence[str], keep: Mapping[str, object], timezone: str, now: int
) -> list[str]:
    """Return the snapshots to copy, the oldest first: those that the policy of the copy keeps beside what it has.

    ``made`` are the complete ones of the first repository and ``there`` those of the copy, by their names.
    """
    every = {name: at for name in (*made, *there) if (at := names.time_of(name)) is not None}
    kept = policy.decide(every.values(), policy.parse(keep), now, calendar_of(timezone))
    lagging = set(made) - set(there)
    return sorted(name for name, at in every.items() if name in lagging and kept[at] and at <= now + names.LARGEST_STEP)


def time_text(name: str) -> str:
    """Return the time in the name of a complete snapshot as reports have it."""
    return f"{name[:13]}:{name[13:15]}:{name[15:]}"


def lag_of(newest_made: int | None, newest_copied: int | None) -> int | None:
    """Return by how many seconds a copy is behind; None if one of both has no snapshot."""
    if newest_made is None or newest_copied is None:
        return None
    return max(0, newest_made - newest_copied)


def copy_job(run: Run, copy: Copy, name: str) -> Mapping[str, Any]:
    """Return the transfer that copies a snapshot. The host of the copy connects, so nobody needs access to it."""
    first: Repository = run["repository"]
    return {
        **line_options(run, "rsync_floor"),
        "name": run["id"],
        "src_host": first["host"],
        "src": folder_of(first, run, name) + "/",
        "dest_host": copy["host"],
        "dest": folder_of(copy, run, names.UNFINISHED),
        "connect": "pull",
        "bwlimit": copy["bwlimit"],
        "filter": list(_TREE_AND_MANIFEST),
        "delete": True,
        "verify": "none",  # each file is read, and compared with the manifest
        "owner_warnings": False,
    }


def repair_job(
    run: Run, source: Repository, dest: Repository, name: str, paths: Sequence[str], *, is_to_copy: bool, bwlimit: str
) -> Mapping[str, Any]:
    """Return the transfer that brings intact files of a snapshot to the folder of a repair.

    The host of the copy connects, in whichever direction (``is_to_copy``) the files go.
    """
    return {
        **line_options(run, "rsync_floor"),
        "name": run["id"],
        "src_host": source["host"],
        "src": folder_of(source, run, name, names.DATA) + "/",
        "dest_host": dest["host"],
        "dest": folder_of(dest, run, names.REPAIR, names.DATA),
        "connect": "pull" if is_to_copy else "push",
        "bwlimit": bwlimit,
        "filter": rules_for(paths),
        "delete": True,
        "verify": "none",  # each file is read, and compared with the manifest
        "owner_warnings": False,
    }


def plan_repair(wanted: Sequence[WantedContent], there: Sequence[str]) -> dict[str, list[str]]:
    """Return the paths to bring by the snapshot that has them; ``there`` are those of the other repository.

    Contents that no snapshot there has are left out.
    """
    planned: dict[str, list[str]] = {}
    for one in wanted:
        common = sorted(set(one.snapshots) & set(there))
        already = [name for name in common if name in planned]
        if common:
            paths = planned.setdefault((already or common)[-1], [])
            if one.path not in paths:
                paths.append(one.path)
    return planned


def may_be_more(unproven: Sequence[str]) -> bool:
    """Return whether more entries of a copy may differ from its manifest than those that were named."""
    return len(unproven) >= MAX_UNPROVEN


def tell_unproven(name: str, paths: Sequence[str]) -> str:
    """Return why a copy of a snapshot was not completed: these paths differ from its manifest, though sent twice."""
    least = "at least " if may_be_more(paths) else ""
    text = (
        f"{name} is not copied: its manifest does not describe {least}{counted(len(paths), 'entry', 'entries')} that "
        f"the first repository has in it{_examples(paths)}. A copy of damage is worth nothing. A check (check_subset) "
        "of the job finds such damage, and repairs what it can"
    )
    if may_be_more(paths):
        text += (
            ". If a check finds none, see that both repositories belong to the same kind of user: a copy keeps owners "
            "only where it is made as root"
        )
    return text


def tell_repaired(place: str, repaired: Sequence[RepairedFile]) -> str:
    """Return the note about files that were repaired in a repository."""
    sources = sorted({one.source for one in repaired})
    return (
        f"repaired {counted(len(repaired), 'damaged file', 'damaged files')} in {place} with contents of "
        f"{', '.join(sources[:_EXAMPLES])}{_examples([one.path for one in repaired])}"
    )


def without_repaired(notes: Sequence[str], of: str = "") -> list[str]:
    """Return the notes of a run without that of known damage of a place, in which a repair has left none.

    ``of`` begins the notes of a copy; those of the first repository begin with nothing.
    """
    return [one for one in notes if not one.startswith(of + KNOWN_DAMAGE)]


def tell_wanted(place: str, wanted: Sequence[WantedContent], left: int) -> str:
    """Return why damage stays in a repository."""
    paths = [one.path for one in wanted]
    return (
        f"{place} has {counted(left, 'damaged entry', 'damaged entries')} for which no intact contents were found"
        f"{_examples(paths)}"
    )


def _examples(paths: Sequence[str]) -> str:
    """Return the first of some paths in brackets; an empty string for none."""
    more = f" and {len(paths) - _EXAMPLES} more" if len(paths) > _EXAMPLES else ""
    return f" ({', '.join(repr(one_line(path)) for path in paths[:_EXAMPLES])}{more})" if paths else ""


def find_same_place(
    copy: EndDescription, first: EndDescription, client: EndDescription | None, others: Sequence[EndDescription] = ()
) -> str:
    """Return why a copy must not be where it is, by what the hosts say of themselves; empty if it may.

    Two hosts of the inventory can be one machine, and two paths one folder. ``client`` is None if it was not asked, and
    ``others`` are copies of the same job.
    """
    if client is not None and client["machine"] == copy["machine"]:
        return (
            "its host is the client itself under another name, and whoever harms its data could harm the copy with it. "
            "Choose another host"
        )
    for called, other in (("the repository itself", first), *(("another copy of the job", one) for one in others)):
        if _overlap(copy, other):
            return (
                f"it is {called} under another name, or one lies inside the other. A copy is of use only in another "
                "place, such as another host or at least another disk"
            )
    return ""


def _overlap(one: EndDescription, other: EndDescription) -> bool:
    """Return whether two places are one, or one is inside the other."""
    if one["machine"] != other["machine"]:
        return False
    places = [[str(end["path"].get(key) or "") for end in (one, other)] for key in ("real", "device_path")]
    return any(here and there and (within(here, there) or within(there, here)) for here, there in places)
