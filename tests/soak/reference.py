# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the real rsync makes of a case: one local run with the options that mean the same."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass

from .case import Place
from .grow import STAGING_PATTERN
from .options import OLDER

WORDS = {
    "owner": "--owner",
    "group": "--group",
    "permissions": "--perms",
    "times": "--times",
    "acls": "--acls",
    "xattrs": "--xattrs",
    "hardlinks": "--hard-links",
    "devices": "-D",
    "sparse": "--sparse",
}
_PATIENCE = 60  # seconds without anything to do, after which rsync ends with 30: it may wait for itself


@dataclass(frozen=True)
class Reference:
    """How rsync ended."""

    code: int
    said: str
    deletions: int  # that it would make, without a limit

    @property
    def failed(self) -> bool:
        return self.code != 0


def run_rsync(place: Place) -> Reference:
    """Transfer the case into its second destination."""
    case = place.case
    counted = 0
    if case.row["delete"]:
        dry = _rsync(place, "--dry-run", "--out-format=%i")
        counted = len(re.findall(r"^\*deleting", dry.stdout, re.MULTILINE))
    limit = case.row["max_delete"]
    if case.row["delete"] and limit is not None and counted > limit:
        return Reference(25, "more deletions than max_delete: nothing is transferred", counted)
    ended = _rsync(place)
    return Reference(ended.returncode, ended.stderr, counted)


def _rsync(place: Place, *more: str) -> subprocess.CompletedProcess[str]:
    case = place.case
    user = {"user": case.user.uid, "group": case.user.gid, "extra_groups": case.user.groups} if case.user.uid else {}
    return subprocess.run(
        [*argv(place), *more, "--", *_ends(place)],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
        env={**os.environ, "LC_ALL": "C"},
        **user,  # type: ignore[call-overload]
    )


def _ends(place: Place) -> list[str]:
    if place.case.only is not None:
        return [place.src(), f"{place.dest('rsync')}/"]
    return [f"{place.source}/", f"{place.root('rsync')}/"]


def argv(place: Place) -> list[str]:
    """Return rsync's options for a case."""
    case, row = place.case, place.case.row
    words = ["rsync", "--recursive", "--links", "--mkpath", f"--timeout={_PATIENCE}"]
    words += [WORDS[name] for name in case.preserve]
    if case.user.uid and row["preserve"] is None:
        words += ["--group", "--specials"]  # a user may set the groups that are his, and make FIFOs
    words += ["--modify-window=-1"] if "times" in case.preserve else []
    words += ["--numeric-ids"] if row["numeric_ids"] else []
    for kind, option in (("users", "--usermap"), ("groups", "--groupmap")) if row["owner_map"] else ():
        words += [f"{option}=" + ",".join(f"{old}:{new}" for old, new in row["owner_map"][kind].items())]
    # Without it rsync leaves the ids in ACLs as they are
    words += ["--no-inc-recursive"] if "acls" in case.preserve and (row["owner_map"] or not row["numeric_ids"]) else []
    words += ["--one-file-system"] if row["one_file_system"] else []
    words += ["--checksum"] if row["checksum"] or row["verify"] == "checksum" else []  # which repairs
    words += ["--delete", "--force"] if row["delete"] else []
    words += ["--inplace"] if row["inplace"] else []
    words += [f"--filter={rule}" for rule in (f"H {os.fsdecode(STAGING_PATTERN)}", *(row["filter"] or ()))]
    words += [f"--include={pattern}" for pattern in row["include"] or ()]
    words += [f"--exclude={pattern}" for pattern in row["exclude"] or ()]
    words += [f"--link-dest={place.older if one == OLDER else one}" for one in row["link_dest"] or ()]
    return words + list(row["rsync_opts"] or ())
