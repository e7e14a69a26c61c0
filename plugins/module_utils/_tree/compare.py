# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide what one entry needs at the destination, and say it as rsync does. Private to the collection.

Pure. The itemized form is rsync's ``%i``, eleven characters ``YXcstpoguax``; source: rsync(1), --itemize-changes.
"""

from __future__ import annotations

from typing import NamedTuple

from .._model.entry import BLOCK, CHARACTER, DIRECTORY, REGULAR, SYMLINK, Entry
from .._model.ids import NUMERIC, IdMap
from .metadata import ROOT_POWERS, Powers, differences

NONE, ATTRIBUTES, UPDATE, CREATE, REPLACE = "none", "attributes", "update", "create", "replace"
UNCHANGED = "." * 9

_LETTERS = {REGULAR: "f", DIRECTORY: "d", SYMLINK: "L", BLOCK: "D", CHARACTER: "D"}  # else a special file, S
_ATTRIBUTES = (("mode", "p"), ("owner", "o"), ("group", "g"), ("", "."), ("acls", "a"), ("xattrs", "x"))


class Verdict(NamedTuple):
    """What an entry needs, and how a report shows it."""

    action: str  # none; attributes; update (contents of a regular file); create; replace (of another kind)
    itemized: str  # eleven characters
    fields: frozenset[str]  # what metadata.differences found, where there is something of the same type


def compare(
    source: Entry,
    found: Entry | None,
    *,
    preserve: frozenset[str],
    checksum_equal: bool | None = None,
    link_ok: bool = True,
    ids: IdMap = NUMERIC,
    powers: Powers = ROOT_POWERS,
    arrow: str = ">",
) -> Verdict:
    """Compare the source's entry with what the destination has at the same path (None: nothing).

    A regular file is taken as equal where size and time are (the quick check, in nanoseconds; the size alone
    where times are not preserved), or as ``checksum_equal`` says where contents were compared.
    ``link_ok=False``: the path must become one more name of a file that was dealt with already, and is not.
    ``arrow`` is ``<`` where the report is the sender's. For the other arguments see metadata.differences.
    """
    letter = _LETTERS.get(source.type, "S")
    kind = arrow if source.type == REGULAR else "c"
    if not link_ok:
        kind = "h"
    if found is None or found.type != source.type:
        return Verdict(CREATE if found is None else REPLACE, f"{kind}{letter}{'+' * 9}", frozenset())
    fields = differences(source, found, preserve, ids, powers)
    action, changed = _action(source, found, fields, checksum_equal)
    if not link_ok:
        action = REPLACE
    elif action in (NONE, ATTRIBUTES):
        kind = "."
    shown = _shown(source, found, fields, action, changed and link_ok, "times" in preserve)
    if shown == UNCHANGED and kind != arrow:
        shown = " " * 9
    return Verdict(action, f"{kind}{letter}{shown}", fields)


def _action(source: Entry, found: Entry, fields: frozenset[str], checksum_equal: bool | None) -> tuple[str, bool]:
    """Name the action, and whether the value (not only its size or time) is known to differ."""
    if source.type == REGULAR:
        if checksum_equal is not None:
            same = checksum_equal and source.size == found.size
        else:
            same = source.size == found.size and "times" not in fields
        if not same:
            return UPDATE, checksum_equal is False
    elif (source.target, source.rdev) != (found.target, found.rdev):
        return REPLACE, True  # a symlink that leads elsewhere, a device of another number
    return (ATTRIBUTES if fields else NONE), False


def _shown(source: Entry, found: Entry, fields: frozenset[str], action: str, changed: bool, keep_times: bool) -> str:
    """Return the nine letters after the kind and the type."""
    size = source.type == REGULAR and source.size != found.size
    if keep_times:
        time = "t" if "times" in fields else "."
    else:
        # The time becomes that of the transfer, where there is one.
        time = "T" if action in (UPDATE, REPLACE) else "."
    attributes = "".join(letter if field in fields else "." for field, letter in _ATTRIBUTES)
    return ("c" if changed else ".") + ("s" if size else ".") + time + attributes
