# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The transfers of a backup, what becomes of their results, and what the snapshot must hold after them. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import entries_text
from ansible_collections.longhaul.fleet.plugins.module_utils._model.paths import escape
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names

from ..source_changes import tell_changes
from .jobs import NOTHING_PROTECTED, Run, Source, folder_of
from .state import BegunSnapshot, PathTransfer


class Expected(NamedTuple):
    """How much a snapshot must hold; -1: that is not known."""

    entries: int
    bytes: int


def path_of(run: Run) -> str:
    """Return the path of the tree of the unfinished snapshot of a run."""
    return folder_of(run["repository"], run, names.UNFINISHED, names.DATA)


def job_of(run: Run, source: Source, check: bool = False) -> Mapping[str, Any]:
    """Return the transfer of one path of a run, without what the repository's host decides: see ``links_of``.

    With ``check`` the client prepares nothing, and its live tree is read. Deleting makes an unfinished snapshot of an
    interrupted run what the source is now.
    """
    place = f"/{source['part']}" if source["part"] else ""
    src, preparation = source["src"], run["consistent"]
    read = preparation.read[src] if preparation and not check else src
    rules = preparation.rules[src] if preparation else ()
    given = run["transfer"].get("filter")
    first = {"filter": [NOTHING_PROTECTED, *rules, *(given if isinstance(given, list) else ())]} if rules else {}
    return {
        **run["transfer"],
        **first,
        "name": run["id"],
        "src_host": run["host"],
        "src": read,
        "dest_host": run["repository"]["host"],
        "dest": path_of(run) + place,
        "delete": True,
        "verify": run["verify"],
        # With numeric_ids a snapshot keeps the source's numbers, whether or not the repository's host has such users.
        "owner_warnings": not boolean(run["transfer"].get("numeric_ids", True)),
    }


def links_of(begun: BegunSnapshot, part: str) -> Mapping[str, list[str]]:
    """Return the options of a transfer that link to the snapshot before, by the answer about the one to fill."""
    place = f"/{part}" if part else ""
    return {
        "link_dest": [tree + place for tree in begun.link_dest],
        "link_dest_exclude": _below(part, begun.link_dest_exclude),
    }


def _below(part: str, paths: Sequence[str]) -> list[str]:
    """Return the paths in a folder of the snapshot's tree, from that folder on; an empty one is the tree."""
    top = f"{escape(os.fsencode(part))}/" if part else ""
    return [path[len(top) :] for path in paths if path.startswith(top)]


def read_transfer(result: Mapping[str, Any], src: str) -> PathTransfer:
    """Return what is kept of the transfer of ``src``, by its result."""
    kept = {one.name: result[one.name] for one in fields(PathTransfer) if result.get(one.name) is not None}
    return PathTransfer(**{**kept, "src": src})


def tell_notes(result: Mapping[str, Any], src: str) -> list[str]:
    """Return what a person should know of the transfer of ``src`` although it succeeded."""
    notes = []
    if result.get("source_missing"):
        notes.append(
            f"{src} is not there yet. The hooks before, which may make it, do not run in check mode, so it is not "
            "known what would be sent"
        )
    changed = tell_changes(result)
    if changed["count"]:
        notes.append(
            f"{entries_text(changed['count'])} changed at the source while it was copied, for example "
            f"{changed['example']}. The snapshot has what was there at some moment, and the next backup reads it again"
        )
    return [*notes, *changed["warnings"]]


def expect(transfers: Sequence[PathTransfer], paths: int, verify: str, check_mode: bool) -> Expected:
    """Return how much the snapshot of these transfers must hold, where that can be told.

    Where the source changed meanwhile, its count is of another moment. Several ``paths`` have the folder that holds
    them in common, which no transfer counts. Where both trees were compared (``verify``), sizes are proven already, and
    better than by a sum of those of the first look.
    """
    if check_mode and paths == 1 and transfers and transfers[0].files_total == 1:
        return Expected(1, -1)  # an empty source, which the repository may refuse
    if check_mode or any(one.vanished + one.unstable for one in transfers):
        return Expected(-1, -1)
    entries = sum(one.files_total for one in transfers) + (1 if paths > 1 else 0)
    size = sum(one.bytes_apparent for one in transfers)
    return Expected(entries, size if verify == "none" else -1)
