# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What changed at the source while a transfer read it, and whether that is all that went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from ..transfer.verification import CHANGED_SINCE


class Changes(TypedDict):
    """What changed at the source during a transfer."""

    count: int
    example: str
    only: str
    warnings: list[str]


def tell_changes(result: Mapping[str, Any]) -> Changes:
    """Return what changed at the source during a transfer, by the transfer's result, failed or not.

    ``count`` are the entries, ``example`` is the path of one. ``only`` is what a strict caller minds where nothing went
    wrong but one of the following, and empty otherwise: ``unread`` are files that changed each time they were read,
    which did not arrive; ``missing`` is a source that does not exist; ``differs`` are entries that arrived as they were
    at some moment, and differed in the comparison after it. ``warnings`` are those of the transfer without the one
    about these entries, which the roles word themselves.
    """
    unread, differs = result.get("errors_unstable") or 0, result.get("unstable") or 0
    listed = result.get("errors") if unread else result.get("differences")
    only = ""
    if result.get("failed"):
        if result.get("only_unstable"):
            only = "unread"
        elif differs and differs == result.get("differences_total") and not result.get("errors_total"):
            only = "differs"
        elif result.get("source_missing"):
            only = "missing"
    elif differs:
        only = "differs"
    example = listed[0]["path"] if listed else ""
    warnings = [text for text in result.get("warnings") or [] if CHANGED_SINCE not in text]
    return {"count": unread + differs, "example": example, "only": only, "warnings": warnings}
