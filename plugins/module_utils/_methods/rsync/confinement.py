# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measures that keep the serving end's rsync inside the root, whatever the peer makes it try. Pure.

``CHROOT``: it runs as a daemon's module whose path is the root, with ``use chroot`` (``chrooted``). Its root folder is
the tree then: no symbolic link and no bug of its own names anything else. That needs root, and that the transfer needs
nothing else of the host: no names of users, no older tree, no list outside the root.

``CONFINE_ROOT``: rsync 3.5.0 and newer refuses by itself what resolves outside (``--confine-root``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Sequence

from ..._core.context import staging_name
from ..._core.settings import Settings
from .argv import keeps_numbers, pattern_of
from .conf_line import conf_line, yes_or_no

CHROOT, CONFINE_ROOT, NOTHING = "chroot", "confine_root", ""
MODULE = "tree"  # of the daemon that serves one connection
CONFINES = (3, 5, 0)  # the first version with --confine-root: rsync's NEWS
_PARENTS = re.compile(r"(?:dir-merge|:)\S*\s+/")  # rsync(1), "merge-file filter rules": it scans the parents, too
_FOLLOWING = ("--copy-links", "--copy-unsafe-links", "--copy-dirlinks")
_BY_NAME = ("--usermap", "--groupmap", "--chown")


@dataclass(frozen=True)
class RootConfinement:
    """The measure in force that keeps rsync inside the root, and why there is no better one."""

    kind: str
    why_not: str = ""


def decide_confinement(settings: Settings, side: str, version: tuple[int, ...], may_chroot: bool) -> RootConfinement:
    """Decide for the serving end, whose ``side``, ``version`` of rsync and right to change its root these are."""
    outside = _needs_outside(settings, side)
    if outside:
        return RootConfinement(NOTHING, outside)
    no_chroot = _needs_names(settings) or ("" if may_chroot else "only root can change its root folder")
    if not no_chroot:
        return RootConfinement(CHROOT)
    if version >= CONFINES:
        return RootConfinement(CONFINE_ROOT)
    dotted = ".".join(map(str, version))
    return RootConfinement(NOTHING, f"{no_chroot}, and rsync {dotted} has no --confine-root (3.5.0 and newer)")


def why_not_untrusted(settings: Settings, side: str, confinement: RootConfinement) -> str:
    """Return why the serving end's rsync cannot run for a peer that is not trusted; empty if it can."""
    if not confinement.kind:
        return confinement.why_not
    if settings["rules"]:  # which the driving end tells it, or does not
        whom = (
            "a destination it cannot hold the source" if side == "dest" else "a source it cannot hold the destination"
        )
        return f"as {whom} to the filter rules"
    if side == "dest" and settings["only"] is not None and confinement.kind != CHROOT:
        return "as a destination it can hold the source to one name only in a root folder of its own (as root)"
    return ""


def _needs_outside(settings: Settings, side: str) -> str:
    """Return what rsync must reach outside the root."""
    if settings["link_dest"] and side == "dest":
        return "with link_dest rsync must reach the older trees, which are outside the destination"
    if has_lists(settings, side):
        return "with several streams rsync reads lists of names that are outside the source"
    following = [option for option in settings["rsync_opts"] if option in _FOLLOWING]
    if following and side == "source":
        return f"with {following[0]} rsync reads what symbolic links lead to, outside the source, too"
    if any(_PARENTS.match(rule) for rule in settings["rules"]):
        return "a filter rule reads files in the folders above the root"
    if settings["only"] is not None and "\n" in settings["only"]:
        return "rsync can be held to one name only where that is one line"
    return ""


def has_lists(settings: Settings, side: str) -> bool:
    """Return whether a serving end lets rsync read lists of names that it keeps itself."""
    return side == "source" and settings["only"] is None and settings["streams"] > 1 and not settings["check"]


def _needs_names(settings: Settings) -> str:
    """Return why names of users or character sets of this host are needed, which nothing in a chroot has."""
    if {"owner", "group", "acls"} & set(settings["preserve"]) and not keeps_numbers(settings):
        return "rsync must look up the names of owners (numeric_ids is not set)"
    for option in settings["rsync_opts"]:
        name, _equals, value = option.partition("=")
        if name == "--iconv" or (name in _BY_NAME and any(letter.isalpha() for letter in value)):
            return f"rsync must look up names for {name}"
    return ""


def module_rules(settings: Settings) -> str:
    """Return the rules, one a line, that hold rsync to the one name of a single file; empty for a tree."""
    if settings["only"] is None:
        return ""
    staging = staging_name(settings["id"])
    names = (pattern_of(settings["only"]), staging, f"{staging}/***")
    return "".join(f"+ /{name}\n" for name in names) + "- *\n"


def module_conf(path: str, side: str, rules: str, withheld: Sequence[str] = ()) -> str:
    """Return the rsyncd.conf of a daemon whose only module is the root, for one connection that is a pipe.

    ``rules``: a file with the rules that it is held to; empty if there are none. ``withheld``: rules for the extended
    attributes that it does not take (``argv.withheld_rules``). It logs nothing: its messages go to
    the peer, which could fill a log. Raises ValueError if a path cannot stand in this format.
    """
    parameters = [
        ("path", path),
        ("use chroot", "yes"),
        ("uid", "0"),
        ("gid", "0"),
        ("munge symlinks", "no"),
        ("numeric ids", "yes"),
        ("read only", yes_or_no(side == "source")),
        ("write only", yes_or_no(side == "dest")),
        ("list", "no"),
        ("reverse lookup", "no"),
        ("transfer logging", "no"),
        *([("exclude from", rules)] if rules else []),
        # "_" is the blank between a rule's modifiers and its pattern where blanks separate rules: rsyncd.conf(5).
        *([("filter", " ".join(rule.replace(" ", "_") for rule in withheld))] if withheld else []),
    ]
    lines = ["log file = /dev/null", f"[{MODULE}]", *(conf_line(name, value) for name, value in parameters)]
    return "\n".join(lines) + "\n"
