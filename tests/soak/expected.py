# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may differ from the real rsync, and why: everything else is a finding.

Each entry says when it holds, as narrowly as can be said. A long run names those that it never met: they are either no
longer true or are not tried.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

from ansible_collections.longhaul.fleet.tests.support.compare import Found

from . import options
from .judge import Difference, Verdict, words_in


@dataclass(frozen=True)
class Expected:
    """One difference that is meant."""

    name: str
    reason: str
    aspects: tuple[str, ...]
    holds: Callable[[Verdict, Difference], bool]

    def explains(self, verdict: Verdict, difference: Difference) -> bool:
        """Whether it is why there is a difference."""
        return difference.aspect in self.aspects and self.holds(verdict, difference)


def _refused_pair(verdict: Verdict, difference: Difference) -> bool:
    """Of several reasons the message may name any."""
    rules = (rule for rule in options.REFUSED if rule.holds(verdict.case.row))
    return any(words_in(difference.text, rule.words) for rule in rules)


def _no_deletions(verdict: Verdict, difference: Difference) -> bool:
    row = verdict.case.row
    nothing_seen = not verdict.case.source.paths() or row["filter"] or row["exclude"]
    return row["delete"] and row["max_delete"] is None and nothing_seen and words_in(difference.text, "is empty")


def _lends_rights(verdict: Verdict, difference: Difference) -> bool:
    ours, theirs = (int(mode.strip("'"), 8) for mode in difference.text.split(" for "))
    return "owner" not in verdict.case.preserve and ours & ~0o6000 == theirs & ~0o6000 and ours & theirs == ours


def _by_rsync(row: options.Row) -> bool:
    return row["method"] in ("rsync", "rsyncd") or (row["method"] == "auto" and options.by_ssh(row))


def _without_times(verdict: Verdict, difference: Difference) -> bool:
    row = verdict.case.row
    return _by_rsync(row) and "times" not in verdict.case.preserve and not row["checksum"]


def _links_in_place_of_others(verdict: Verdict) -> list[bytes]:
    """Return the paths of entries with several names where the destination had something of another type."""
    return [
        path
        for path, found in verdict.source.items()
        if found.links and path in verdict.before and verdict.before[path].type != found.type
    ]


def _links_in_place_of_folders(verdict: Verdict) -> list[bytes]:
    return [path for path in _links_in_place_of_others(verdict) if verdict.before[path].type == "directory"]


def _beheld_too_late(verdict: Verdict, difference: Difference) -> bool:
    if "acls" not in verdict.case.preserve:
        return False
    said = [line for line in difference.text.split("\n") if " get_acl: " in line or line.startswith("rsync: ")]
    return bool(_links_in_place_of_folders(verdict) and said) and all(re.search(_DEFAULT_ACL, line) for line in said)


def _waits_for_itself(verdict: Verdict, difference: Difference) -> bool:
    return bool(_links_in_place_of_folders(verdict)) and difference.text.startswith("30:")


_DEFAULT_ACL = r"get_acl: sys_acl_get_file\(.*, ACL_TYPE_DEFAULT\): Permission denied"


def _is_right(verdict: Verdict, path: bytes) -> bool:
    """Whether a file was at the destination with the content that it is to have."""
    before, source = verdict.before.get(path), verdict.source.get(path)
    return bool(before and source) and (before.type, before.content) == (source.type, source.content)


def _is_left_by_link_dest(verdict: Verdict, difference: Difference) -> bool:
    if not verdict.case.row["link_dest"]:
        return False
    names = [difference.path]
    if difference.path not in verdict.source and difference.path in verdict.before:  # it may be another name of one
        inode = verdict.before[difference.path].links
        names += [path for path, found in verdict.before.items() if found.links and found.links == inode]
    if not any(_is_right(verdict, path) for path in names):
        return False
    return difference.aspect != "xattrs" or "xattrs" not in verdict.case.preserve


def _looks_right(verdict: Verdict, difference: Difference) -> bool:
    alike = [
        path
        for path, found in verdict.source.items()
        if found.type == "file" and path in verdict.before and _differ_unseen(found, verdict.before[path])
    ]
    counts = _counts(difference)
    row = verdict.case.row
    return (
        row["verify"] == "checksum"
        and not row["checksum"]
        and list(counts) == ["files_updated"]
        and all(0 < did - check <= len(alike) for check, did in counts.values())
    )


def _differ_unseen(one: Found, other: Found) -> bool:
    return (one.type, one.size, one.mtime) == (other.type, other.size, other.mtime) and one.content != other.content


def _loses_group_entry(verdict: Verdict, difference: Difference) -> bool:
    found = verdict.source.get(difference.path)
    if found is None or not int(found.mode.strip("'"), 8) & 0o1000 or _ACL not in found.xattrs:
        return False
    acl = found.xattrs[_ACL]
    entries = [acl[at : at + 8] for at in range(4, len(acl), 8)]
    lost = acl[:4] + b"".join(one[:2] + b"\0\0" + one[4:] if one[:2] == _GROUP else one for one in entries)
    kept = {**found.xattrs, _ACL: lost}
    return difference.text == f"{found.xattrs!r} for {kept!r}"


_ACL, _GROUP = "system.posix_acl_access", b"\x04\x00"


def _kept_by_daemon(verdict: Verdict, difference: Difference) -> bool:
    leads_out = [found for found in verdict.source.values() if found.type == "symlink"]
    rootless = verdict.case.user.uid and verdict.case.row["method"] == "rsyncd"
    return bool(rootless and leads_out) and words_in(difference.text, "a daemon without `use chroot = yes`")


def _only_extra_names(verdict: Verdict, difference: Difference) -> bool:
    """Whether two groups of names of one file differ in names alone that the source does not have."""
    ours, theirs = (ast.literal_eval(names) for names in difference.text.split(" for "))
    wanted = {name for name in (*ours, *theirs) if name.partition(b"/")[2] in verdict.source}  # below the root
    return difference.path not in verdict.source or wanted & {*ours} == wanted & {*theirs}


def _is_as_at_the_source(verdict: Verdict, difference: Difference) -> bool:
    """Whether ours is just as at the source, where the destination had it share its inode with another name."""
    before, source = verdict.before.get(difference.path), verdict.source.get(difference.path)
    if not before or not source or not before.links or before.links == source.links:
        return False
    return difference.text.startswith(f"{getattr(source, difference.aspect)!r} for ")


def _counts(difference: Difference) -> dict[str, tuple[int, int]]:
    """Return what check mode and the transfer counted, where these are not equal."""
    found = re.findall(r"'(\w+)': \((\d+), (\d+)\)", difference.text)
    return {name: (int(check), int(did)) for name, check, did in found}


def _takes_links_for_changes(verdict: Verdict, difference: Difference) -> bool:
    counts, links = _counts(difference), len(_links_in_place_of_others(verdict))
    if not _by_rsync(verdict.case.row) or set(counts) != {"files_created", "attributes_changed"}:
        return False
    created, changed = (did - check for check, did in (counts["files_created"], counts["attributes_changed"]))
    return created == -changed and 0 < created <= links


def _changes_both_names(verdict: Verdict, difference: Difference) -> bool:
    shared = any(found.links for found in verdict.before.values())
    counts = _counts(difference)
    return (
        shared
        and ("hardlinks" not in verdict.case.preserve or _by_rsync(verdict.case.row))
        and list(counts) == ["attributes_changed"]
        and all(check > did for check, did in counts.values())
    )


EXPECTED = (
    Expected(
        "options that exclude each other",
        "no method knows both, or one would undo the other: said before anything is done (see options.REFUSED)",
        ("refusal",),
        _refused_pair,
    ),
    Expected(
        "an empty source",
        "it looks like one that is not mounted, so that deleting all needs a limit that was set",
        ("refusal", "failure"),
        _no_deletions,
    ),
    Expected(
        "setuid and setgid of another owner",
        "a program would run with the rights of somebody else than at the source: it is left out, with a warning",
        ("mode",),
        _lends_rights,
    ),
    Expected(
        "rsync_opts that leave the trees unlike",
        "the comparison afterwards could not tell what was asked for from what went wrong",
        ("refusal",),
        lambda verdict, difference: (
            verdict.case.row["rsync_opts"] in options.UNLIKE
            and verdict.case.row["verify"] != "none"
            and words_in(difference.text, "rsync_opts")
        ),
    ),
    Expected(
        "without times a file is always in doubt",
        "size and time decide what is sent, and the time is not kept: rsync sends it each time, too",
        ("rerun",),
        _without_times,
    ),
    Expected(
        "link_dest for what is no regular file",
        "symbolic links and special files are recreated: that costs inodes only",
        ("link_dest",),
        lambda verdict, difference: (
            difference.path in verdict.source and verdict.source[difference.path].type != "file"
        ),
    ),
    Expected(
        "link_dest for what is at the destination",
        "a file that is right already is left as it is, with its other names, and not replaced by a link",
        ("link_dest", "links", "xattrs"),
        _is_left_by_link_dest,
    ),
    Expected(
        "a hard link in place of a folder, with ACLs",
        "rsync 3.5.0 asks for the folder's default ACL after it has put the link in its place, and calls that an error",
        ("rsync failed",),
        _beheld_too_late,
    ),
    Expected(
        "a hard link in place of a folder with contents",
        "rsync 3.5.0 waits for itself for ever",
        ("rsync failed",),
        _waits_for_itself,
    ),
    Expected(
        "the group's own entry of an ACL under a sticky bit",
        "rsync 3.5.0 loses it where it says the same as the mask; ours has what the source has",
        ("xattrs",),
        _loses_group_entry,
    ),
    Expected(
        "symbolic links that lead out, through a daemon without root",
        "rsync's daemon cannot chroot then, and rewrites them: refused before anything is transferred",
        ("failure",),
        _kept_by_daemon,
    ),
    Expected(
        "names of a file that the source does not have",
        "what the source has is linked as there, and whether names beside it stay linked depends on who is made first",
        ("links",),
        _only_extra_names,
    ),
    Expected(
        "names that were one file at the destination alone",
        "rsync changes for the one what the other has, too: with inplace its content, and always of symbolic links",
        ("size", "content", "mode", "owner", "mtime", "xattrs", "links"),
        _is_as_at_the_source,
    ),
    Expected(
        "attributes of a file that has two names at the destination",
        "what is done to the one is done to the other: check mode counts both, unless ours preserves hard links",
        ("prediction",),
        _changes_both_names,
    ),
    Expected(
        "a hard link in place of something else",
        "rsync's dry run leaves that where it is, and tells a change of its attributes instead of a new entry",
        ("prediction",),
        _takes_links_for_changes,
    ),
    Expected(
        "another content that neither size nor time shows",
        "the comparison after a transfer finds it, and the file is sent again: check mode does not read the contents",
        ("prediction",),
        _looks_right,
    ),
    Expected(
        "several runs of rsync send twice what keeps no times",
        "the last one sees what the lists did not know, and takes nothing for right that has another time",
        ("prediction",),
        lambda verdict, difference: verdict.case.row["streams"] == "3" and _without_times(verdict, difference),
    ),
)
