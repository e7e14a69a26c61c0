# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How to send again what a comparison after a transfer found to differ, and what to say of it. Pure."""

from __future__ import annotations

import os
from collections.abc import Collection

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted, entries_text
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.module_utils._core.settings import Settings
from ansible_collections.longhaul.fleet.plugins.module_utils._model.paths import unescape
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.digest import Difference

from .comparison import ComparisonOutcome
from .result import Result

ROUNDS = 3  # in which what differs is sent again, at most
WHOLE_PROGRAM = ("rsync", "rsyncd")  # methods that decide by a program of their own what differs
_WILD = "*?["


def settings_for_repair(settings: Settings, paths: Collection[str] | None, number: int) -> Settings:
    """Return the settings of a transfer that repairs these paths (as from names.escape; None: too many to name).

    The collection's own comparison compares the contents of the named files, and the rest by size and time. rsync can
    do that for a whole tree alone, so its first round sees nothing else. From the second round (``number``) on it sees
    all: another name of a file that was replaced, which is none of its names any more, is fixed so.
    """
    if settings["delta"] == "rsync":
        settings = {**settings, "delta": "blocks"}  # what is sent again is in its place but for some blocks
    if paths is None:
        return {**settings, "checksum": True}
    if settings["method"] not in WHOLE_PROGRAM:
        return {**settings, "suspects": sorted(paths)}
    if number > 1 or settings["only"] is not None:
        return {**settings, "checksum": True}
    return {**settings, "checksum": True, "rules": rules_for(paths), "delete": False, "max_delete": None}


def rules_for(paths: Collection[str]) -> list[str]:
    """Return filter rules in rsync's syntax that include only these paths and their parents."""
    wanted: dict[bytes, None] = {}
    for text in sorted(paths):
        parts = unescape(text).split(b"/")
        wanted.update(dict.fromkeys(b"/".join(parts[:end]) for end in range(1, len(parts) + 1)))
    return [f"+ /{_literal(os.fsdecode(path))}" for path in wanted if path != b"."] + ["- *"]


def hiding(paths: Collection[str]) -> list[str]:
    """Return filter rules that leave out these paths (as from names.escape) and all below them."""
    return [f"- /{_literal(os.fsdecode(unescape(path)))}" for path in paths]


def _literal(path: str) -> str:
    """Write a path as a pattern that matches nothing else; a backslash is special only beside a wildcard (rsync(1))."""
    if not any(char in path for char in _WILD):
        return path
    return "".join(f"\\{char}" if char in _WILD + "\\" else char for char in path)


def silent(differences: Collection[Difference]) -> list[str]:
    """Name the files whose contents alone differ, with no change at the source that would explain it."""
    return [
        one["path"]
        for one in differences
        if one["kind"] == "differs" and one["fields"] == ["content"] and not one["unstable"]
    ]


def add_repair(result: Result, outcome: Outcome, listed: int) -> None:
    """Add to a task's result what a round of repair did; at most ``listed`` changes are listed."""
    result["files_created"] += outcome.files_created
    result["files_updated"] += outcome.files_updated
    result["files_deleted"] += outcome.files_deleted
    result["attributes_changed"] += outcome.attributes_changed
    result["bytes_content"] += outcome.bytes_content
    result["bytes_sent"] += outcome.bytes_sent
    result["bytes_matched"] = max(0, result["bytes_total"] - result["bytes_content"])
    result["files_unchanged"] = max(0, result["files_unchanged"] - outcome.files_updated)
    result["changed"] = result["changed"] or outcome.changed
    result["changes"] = [*result["changes"], *outcome.changes][:listed]
    result["changes_total"] += outcome.changes_total
    result["changes_truncated"] = result["changes_total"] > len(result["changes"])


def note_repaired(result: Result, found: ComparisonOutcome, left: ComparisonOutcome) -> None:
    """Add to the result what was repaired, from the differences of the first and the last comparison.

    What differed without a reason is worth a warning: nothing in a transfer makes it.
    """
    still = {one["path"] for one in left.differences}
    result["repaired"] = [one["path"] for one in found.differences if one["path"] not in still]
    result["repaired_total"] = max(0, found.differences_total - left.differences_total)
    strange = silent(found.differences)
    changed = found.differences_total - len(strange)
    warnings = []
    if strange:
        warnings.append(
            f"{counted(len(strange), 'file', 'files')} had the size and time of the source's but other contents "
            f"and had to be sent again, for example {strange[0]!r}. A sound host does not do that: on both hosts look "
            "for a failing disk or memory (dmesg, SMART, a memory test), and for programs that write to files and set "
            "their time back"
        )
    if changed:
        warnings.append(
            f"{entries_text(changed)} differed after the transfer and had to be sent again: something writes to the "
            "source or to the destination. Quiesce both for the final pass"
        )
    result["warnings"] = [*result.get("warnings", []), *warnings]
