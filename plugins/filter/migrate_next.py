# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person should do next with a migration job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DOCUMENTATION = r"""
name: migrate_next
short_description: Say what to do next with a migration job
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Says which host serves, and how to go on from what was done already.
  - Part of the role P(longhaul.fleet.migrate#role).
positional: _input
options:
  _input:
    description: The state of the job, as the role keeps it on the control node.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Say how to go on
  ansible.builtin.debug:
    msg: "{{ lookup('ansible.builtin.file', 'state/data.json') | from_json | longhaul.fleet.migrate_next }}"
"""

RETURN = r"""
_value:
  description: One or a few sentences.
  type: str
"""

GOES_ON = "and run the same command again; it goes on from here"


def migrate_next(state: Mapping[str, Any]) -> str:
    """Give one or a few sentences: where the job stands, which host serves, and what to type."""
    source, phases, switch = state["identity"]["src_host"], state["phases"], state["switch"]
    failed = bool(state["failure"])
    if switch.get("done"):
        if failed:
            return f"The switch was made and is not undone. Mend what is named above, {GOES_ON}."
        if "verify" in phases:
            return f"Done. Keep the tree on {source} until you trust the new one."
        return "The switch was made, and the trees were not compared. To do it now: -e migrate_phase=verify."
    if switch:
        return (
            f"The switch has begun ({switch['steps']} of its steps are done), and {source} is stopped. "
            f"Mend what is named above, {GOES_ON} with the next step. To go back instead, undo these steps and start "
            f"{source} by hand, then begin again with -e migrate_reset=true."
        )
    if state["quiesced"]:
        return (
            f"Nothing was switched over, but {source} may still be stopped: start it by hand, or mend what is named "
            f"above {GOES_ON}. Hooks in cutover_failed would do that by themselves."
        )
    if failed:
        return f"Nothing was switched over, and {source} still serves. Mend what is named above, {GOES_ON}."
    for phase, words in (
        ("sync", "The copy is up to date but for the last changes. In the change window: -e migrate_phase=report"),
        ("seed", "The first copy is there. To bring it up to date: -e migrate_phase=sync"),
        ("preflight", "Nothing stands in the way. To make the first copy: -e migrate_phase=seed"),
    ):
        if phase in phases:
            return f"{words}. {source} still serves."
    return "Nothing was done yet."


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Give the filters by name."""
        return {"migrate_next": migrate_next}
