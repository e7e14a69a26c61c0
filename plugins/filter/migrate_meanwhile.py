# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What changed at the source while a transfer read it, and whether that is all that went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.wording import CHANGED_SINCE

DOCUMENTATION = r"""
name: migrate_meanwhile
short_description: "Internal: tell what changed at the source during a transfer"
version_added: 0.1.1
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Counts the entries that changed at the source during a transfer, and says whether nothing else went wrong with it.
  - Part of the roles P(longhaul.fleet.migrate#role) and P(longhaul.fleet.backup#role).
positional: _input
options:
  _input:
    description: The result of M(longhaul.fleet.transfer), failed or not.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show how many entries changed meanwhile
  ansible.builtin.debug:
    msg: "{{ (transferred | longhaul.fleet.migrate_meanwhile).count }}"
"""

RETURN = r"""
_value:
  description:
    - C(count) entries, and one of their paths as C(example).
    - C(only) is what a strict caller minds where nothing went wrong but one of the following, and empty otherwise.
    - V(unread) means files that changed each time they were read, which did not arrive.
    - V(missing) means that there is no source.
    - V(differs) means entries that arrived as they were at some moment, and differed in the comparison after it.
    - C(warnings) are those of the transfer, without the one about these entries, which the roles word for themselves.
  type: dict
"""


def migrate_meanwhile(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return count, example, only and warnings."""
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


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Return the filters by name."""
        return {"migrate_meanwhile": migrate_meanwhile}
