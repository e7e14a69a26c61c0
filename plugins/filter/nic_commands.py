# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands that a planned change needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.network.plan import make_commands

DOCUMENTATION = r"""
name: nic_commands
short_description: "Internal: give the commands that bring changed network files to life, and those that undo it"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Part of the role P(longhaul.fleet.nic#role). Its options and what it returns may change in any release.
positional: _input
options:
  _input:
    description: The links that are wanted, as in the role's nic_links.
    type: list
    elements: dict
    required: true
  plan:
    description: What the filter nic_plan gave.
    type: dict
    required: true
  facts:
    description: What M(longhaul.fleet.nic_info) returned.
    type: dict
    required: true
  changed:
    description: The files that will be changed or removed.
    type: list
    elements: str
    required: true
seealso:
  - plugin: longhaul.fleet.nic_plan
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show what would be run
  ansible.builtin.debug:
    msg: "{{ (nic_links | longhaul.fleet.nic_commands(plan=plan, facts=nic, changed=preview.changed_paths)).apply }}"
"""

RETURN = r"""
_value:
  description: The lists C(apply), C(restore) and C(boot), of commands that are lists of a program and its arguments.
  type: dict
"""


def nic_commands(
    links: Sequence[Mapping[str, Any]], plan: Mapping[str, Any], facts: Mapping[str, Any], changed: Sequence[str]
) -> dict[str, Any]:
    """Give the commands."""
    return make_commands(links, plan, facts, changed)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Give the filters by name."""
        return {"nic_commands": nic_commands}
