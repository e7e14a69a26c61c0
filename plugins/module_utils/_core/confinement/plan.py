# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan of the rights that a process of a transfer gives up. Pure, but for finding Python and programs."""

from __future__ import annotations

import os
import sys
from typing import Iterable

from ..context import Context
from ..search_path import search_path
from . import capabilities, landlock

# As the result names what is in force.
NO_NEW_PRIVS, CAPABILITIES, WRITES, READS = "no_new_privs", "capabilities", "landlock_write", "landlock_read"
SCOPE = "landlock_scope"
MEASURES = (NO_NEW_PRIVS, CAPABILITIES, WRITES, READS, SCOPE)
_MEMORY = "/dev/shm"


class ConfinementPlan:
    """What is given up, beside the chance to gain rights by running a program and what scopes withhold.

    ``capabilities`` are kept, ``files`` may still be written and read; None: all, as before.
    """

    def __init__(self, capabilities: frozenset[int] | None, files: landlock.Ruleset | None) -> None:
        self.capabilities, self.files = capabilities, files


def plan_process(context: Context, chroots: bool = False) -> ConfinementPlan:
    """Return the plan for the job, or for a process that it starts for the peer.

    ``chroots``: it starts an rsync that makes the tree its root folder.
    """
    kept = capabilities.kept(context.settings, context.side, context.part, chroots)
    return ConfinementPlan(kept, _files(context))


def plan_reader(root: bytes | int, state: str, xattrs: bool) -> ConfinementPlan:
    """Return the plan for a job that only reads a tree."""
    files = landlock.reading(landlock.writing(None, state), root, state, _code(), ())
    return ConfinementPlan(capabilities.kept_by_reader(xattrs), files)


def plan_unpacking(folder: int) -> ConfinementPlan:
    """Return the plan for a program that unpacks what the peer sent into an open folder."""
    return ConfinementPlan(None, landlock.unpacking(folder))


def _files(context: Context) -> landlock.Ruleset | None:
    settings, state, root = context.settings, context.folder, context.top
    memory = _MEMORY if settings["method"] == "rsyncd" and context.part == "serve" else ""
    if context.side == "dest":
        if settings["link_dest"]:
            return None  # from where nothing may be written nothing may be linked either: EXDEV
        if settings["check"]:
            return landlock.writing(None, state, memory=memory)
        return landlock.writing(root, state, "devices" in settings["preserve"], context.made, memory)
    rules = landlock.writing(None, state, memory=memory)
    if settings["rsync_opts"]:
        return rules  # --copy-links and --cvs-exclude read elsewhere, too
    programs = () if settings["method"] == "stream" else _programs()
    return landlock.reading(rules, root, state, _code(), programs)


def _code() -> Iterable[str]:
    own = os.path.realpath(__file__)  # in an archive there is no such file, and the path of imports has the archive
    for _level in ("the file", "its package", "_core"):
        own = os.path.dirname(own)
    return (own, *sys.path, sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)


def _programs() -> Iterable[str]:
    folders = search_path().split(":")
    return (*folders, *map(os.path.realpath, folders))
