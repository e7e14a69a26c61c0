# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decisions of the preflight: missing programs, deletions that were not agreed to, and problems of both hosts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted, entries_text

from ...common.host_text import harmless_data, one_line
from ...common.typed_json import parse_dataclass
from ...common.units import format_bytes
from ...transfer.owners import foreign, owner_text
from .jobs import arrival
from .state import ProbedHost, TransferSummary, TreeUser, TreeUsers

# Programs that each method needs on both hosts. Netcat is not among them: the collection brings its own.
NEEDED: Mapping[str, tuple[str, ...]] = {
    "auto": ("rsync", "ssh"),
    "stream": (),
    "rsync": ("rsync", "ssh"),
    "rsyncd": ("rsync",),
    "tar_nc": ("tar",),
    "scp": ("ssh",),
    "sftp": ("ssh",),
}

# Their packages, by family of systems (os_family of Ansible's facts). Systems whose base has a program do not name it.
PACKAGES: Mapping[str, Mapping[str, str]] = {
    "Alpine": {"rsync": "rsync", "ssh": "openssh-client", "tar": "tar"},
    "Archlinux": {"rsync": "rsync", "ssh": "openssh", "tar": "tar"},
    "Debian": {"rsync": "rsync", "ssh": "openssh-client", "tar": "tar"},
    "FreeBSD": {"rsync": "rsync"},
    "Gentoo": {"rsync": "net-misc/rsync", "ssh": "net-misc/openssh", "tar": "app-arch/tar"},
    "RedHat": {"rsync": "rsync", "ssh": "openssh-clients", "tar": "tar"},
    "Suse": {"rsync": "rsync", "ssh": "openssh-clients", "tar": "tar"},
}

_NAMED = 5  # paths in a sentence
_USERS = 3  # processes in a sentence
_OWNERS = 50  # that differ, in a problem
_PLAIN = re.compile(r"^[A-Za-z_][A-Za-z0-9_.-]*$")
_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])  # which YAML takes for something else
_LONGEST = 100  # characters of a text of a host in a sentence


def parse_discovered(value: object) -> ProbedHost:
    """Return the answer to the step discover. Untrusted input. Raises WrongShape.

    Its texts are only shown, so they are harmless, without those of the record and the lease of the job.
    """
    found = parse_dataclass(ProbedHost, value, "what it says of itself")
    return replace(harmless_data(found), record=found.record, lease=found.lease)


def parse_tree_users(value: object) -> TreeUsers:
    """Return the answer to the step find_tree_users, with harmless texts. Untrusted input. Raises WrongShape."""
    return harmless_data(parse_dataclass(TreeUsers, value, "what it says of its processes"))


class PreflightFindings(NamedTuple):
    """What stands in the way, and what a person should know; each a sentence that names its host."""

    problems: list[str]
    warnings: list[str]
    deletions: str = ""  # what the next transfer would delete


def judge_preflight(
    probes: Mapping[str, ProbedHost],
    job: Mapping[str, Any],
    needed: Sequence[str],
    predicted: TransferSummary | None = None,
    is_seeded: bool = False,
    may_delete: bool = False,
) -> PreflightFindings:
    """Return what the answers of both hosts mean for one job.

    ``probes`` are what the hosts answered, ``source`` and ``dest``. ``needed`` are the programs that the method needs,
    and ``predicted`` is the result of the transfer in check mode, None if it was not asked. For ``is_seeded`` and
    ``may_delete`` see tell_deletions.
    """
    told = tell_deletions(predicted, job, is_seeded, may_delete) if predicted else Deletions()
    problems, warnings = [told.problem] if told.problem else [], []
    names = {"source": job["src_host"], "dest": job["dest_host"]}
    for side in ("source", "dest"):
        problems += [f"{names[side]}: {text}" for text in probes[side].problems]
        warnings += [f"{names[side]}: {text}" for text in probes[side].warnings]
        missing = lacking(needed, probes[side].tools)
        if missing:
            warnings.append(
                f"{names[side]}: has no {' and no '.join(missing)}; install it there, or let the role do it where "
                "Ansible is root (migrate_manage_packages)"
            )
    problems += _room(names["dest"], probes["dest"], predicted)
    used = judge_tree_users(job, TreeUsers(probes["dest"].users, probes["dest"].unseen))
    problems += used.problems
    warnings += used.warnings
    problems += _owner_problems(job, vars(predicted) if predicted else {})
    warnings += _features(names, probes["source"], probes["dest"])
    warnings += _ways(names, probes)
    return PreflightFindings(problems, warnings, told.told)


def judge_tree_users(job: Mapping[str, Any], found: TreeUsers) -> PreflightFindings:
    """Return what it means that processes use the tree at the destination.

    One that writes there changes what is copied, and a hook that starts a service that runs already does nothing.
    Others read old contents, at most; a shell whose current folder it is does no harm.
    """
    problems: list[str] = []
    warnings: list[str] = []
    if not found.users and not found.unseen:
        return PreflightFindings(problems, warnings)
    host, tree = job["dest_host"], arrival(job)
    writers, readers = ([one for one in found.users if one.writes == writes] for writes in (True, False))
    if writers:
        told = (
            f"{host}: {_tell_users(writers)} {'has' if len(writers) == 1 else 'have'} files in {tree} open for writing"
        )
        if job.get("dest_in_use") == "warn":
            warnings.append(told)
        else:
            problems.append(
                f"{told}, so the copy would not stay as it is, and starting a service that runs does nothing. Stop "
                "what that is, and keep it stopped until the switch (systemctl disable --now SERVICE). If it does no "
                "harm, set dest_in_use: warn in the job"
            )
    if readers:
        warnings.append(
            f"{host}: {_tell_users(readers)} {'uses' if len(readers) == 1 else 'use'} {tree}, and only reads"
        )
    if found.unseen:
        warnings.append(
            f"{host}: whether a service uses {tree} is not known for sure: {found.unseen}. Make sure that none does"
        )
    return PreflightFindings(problems, warnings)


def _tell_users(users: Sequence[TreeUser]) -> str:
    named = [
        f"{one_line(one.name)[:_LONGEST]} (process {one.pid} of user {one_line(one.user)[:_LONGEST]}, for example "
        f"{one_line(one.path)[:_LONGEST]})"
        for one in users[:_USERS]
    ]
    more = [f"{len(users) - _USERS} more"] if len(users) > _USERS else []
    *first, last = [*named, *more]
    return f"{', '.join(first)} and {last}" if first else last


def _room(host: str, dest: ProbedHost, predicted: TransferSummary | None) -> list[str]:
    problems = []
    needed, free = predicted.bytes_sent if predicted else 0, dest.bytes_free
    place = dest.mount or "its file system"
    if needed > free:
        problems.append(
            f"{host}: {format_bytes(needed)} would arrive at {dest.base}, and {place} has {format_bytes(free)} "
            f"free; make room for {format_bytes(needed - free)} more, or choose another dest"
        )
    files = predicted.files_created if predicted else 0
    if dest.files_free is not None and files > dest.files_free:
        problems.append(
            f"{host}: {entries_text(files)} would arrive at {dest.base}, and {place} has "
            f"{counted(dest.files_free, 'inode', 'inodes')} free; choose a file system with more"
        )
    return problems


def _features(names: Mapping[str, str], source: ProbedHost, dest: ProbedHost) -> list[str]:
    warnings = []
    for feature, word in (("xattrs", "extended attributes"), ("acls", "ACLs")):
        if getattr(source, feature) and getattr(dest, feature) is False:
            warnings.append(f"{names['dest']}: {dest.fstype or 'its file system'} keeps no {word}; the source does")
    if dest.case_insensitive and not source.case_insensitive:
        warnings.append(f"{names['dest']}: {dest.fstype} takes a.txt and A.TXT for one name; of such pairs one is lost")
    if dest.largest_file and not source.largest_file:
        warnings.append(f"{names['dest']}: {dest.fstype} holds no file larger than {format_bytes(dest.largest_file)}")
    return warnings


def _ways(names: Mapping[str, str], probes: Mapping[str, ProbedHost]) -> list[str]:
    """Return the host that cannot reach the other one. A closed port answers, so the path is open."""
    blocked = [side for side in ("source", "dest") if probes[side].peer not in ("", "open", "refused")]
    if not blocked:
        return []
    if len(blocked) == 2:
        return [
            f"neither {names['source']} nor {names['dest']} gets an answer from the other one's ssh port "
            f"({probes['source'].peer}); set longhaul_address where the address is not the right one, or open "
            "a port and name it with port or port_range"
        ]
    side = blocked[0]
    other = "dest" if side == "source" else "source"
    way = "pull" if side == "source" else "push"
    return [
        f"{names[side]} gets no answer from the ssh port of {names[other]} ({probes[side].peer}); the other "
        f"direction is open, which is connect: {way}"
    ]


def needed_programs(job: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the programs that the method of a job may need on both hosts."""
    method = job.get("method") or "auto"
    if method == "auto" and job.get("trust") == "none":
        method = "stream"
    if method == "auto" and job.get("encryption") == "none":
        return ("rsync",)
    return NEEDED[method]


def lacking(needed: Iterable[str], tools: Mapping[str, str | None]) -> list[str]:
    """Return the programs that a host lacks, by what it said of its ``tools``."""
    return [program for program in needed if not tools.get(program)]


def packages_of(programs: Iterable[str], family: str) -> list[str]:
    """Return the packages that have these programs on a family of systems, as far as they are known."""
    known = PACKAGES.get(family, {})
    return [known[program] for program in programs if program in known]


class Deletions(NamedTuple):
    """Sentences on deletions; either may be empty."""

    told: str = ""  # what the next transfer would delete
    problem: str = ""  # why it will not


def tell_deletions(predicted: TransferSummary, job: Mapping[str, Any], is_seeded: bool, may_delete: bool) -> Deletions:
    """Return what the next transfer would delete, and why it will not.

    ``predicted`` is the result of the transfer in check mode. Until a job ``is_seeded`` the destination may hold things
    of its own, which the first copy deletes only if it ``may_delete``.
    """
    count = predicted.files_deleted
    if not count:
        return Deletions()
    named = predicted.deleted[:_NAMED]
    names = f": {', '.join(named)}" if named else ""
    more = f" and {count - len(named)} more" if named and count > len(named) else ""
    what = (
        f"the {'next pass' if is_seeded else 'first copy'} would delete {entries_text(count)} at "
        f"{job['dest_host']}:{job['dest']} that {job['src_host']}:{job['src']} does not have{names}{more}"
    )
    if is_seeded or may_delete or job.get("max_delete") is not None:
        return Deletions(what)
    return Deletions(what, f"{what}. {how_to_agree(job['name'], count)}")


def how_to_agree(name: str, count: int) -> str:
    """Return what to type where the deletions are meant, and what to do where they are not."""
    return (
        f"Look at them with --check --diff. Where they may go: {agreement(name)}, or max_delete: {count} in the job. "
        "Where they must stay: leave delete out, protect them by a filter, or choose another dest"
    )


def agreement(name: str) -> str:
    """Return what to type where the first copy of a job may delete what the destination has of its own."""
    return f"-e '{json.dumps({'migrate_allow_delete': [name]})}'"


# Owners


def _owner_problems(job: Mapping[str, Any], predicted: Mapping[str, Any]) -> list[str]:
    """Return the problem of a job that does not say whose its files become; nothing if it does, or all agree.

    ``predicted`` is the result of the transfer in check mode.
    """
    disagree = predicted.get("owner_mismatches") or []
    if not disagree or job.get("numeric_ids") is not None or job.get("owner_map"):
        return []
    source, dest = str(job["src_host"]), str(job["dest_host"])
    lines = [
        f"{source} and {dest} do not mean the same owners, and the job does not say which way to go:",
        *(f"    {owner_text(one, source, dest)}" for one in disagree[:_OWNERS]),
    ]
    if len(disagree) > _OWNERS:
        lines.append(f"    and {len(disagree) - _OWNERS} more")
    hints = foreign(predicted.get("owner_hints") or [])
    lines.append(
        "  Say in the job numeric_ids: true (the numbers stay), numeric_ids: false (names decide: make the missing "
        f"ones first) or owner_map (who becomes whom); see docs/users-and-groups.md{hints}"
    )
    for kind in ("user", "group"):
        missing = _missing_list(disagree, kind)
        if missing:
            lines.append(f"  {kind}s that {dest} lacks, for a loop with ansible.builtin.{kind}:")
            lines += [f"    {line}" for line in missing]
    return ["\n".join(lines)]


def _missing_list(disagree: Sequence[Mapping[str, Any]], kind: str) -> list[str]:
    """Return YAML, a list item for each user or group that the destination lacks.

    With the source's number if it is free at the destination.
    """
    number = {"user": "uid", "group": "gid"}[kind]
    found = []
    for one in disagree:
        if one["type"] == kind and one["name"] and one["id_there"] is None:
            free = "" if one["name_there"] else f", {number}: {one['id']}"
            found.append(f"- {{name: {_quoted(one['name'])}{free}}}")
    return found


def _quoted(name: str) -> str:
    return name if _PLAIN.match(name) and name.lower() not in _WORDS else json.dumps(name)
