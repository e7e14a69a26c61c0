# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What shall be done to a host's links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.network.plan import make_plan

DOCUMENTATION = r"""
name: nic_plan
short_description: "Internal: plan what shall be done to a host's links"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Checks what is wanted against what the host has, and gives the files that its network's manager needs.
  - Part of the role P(longhaul.fleet.nic#role). Its options and what it returns may change in any release.
positional: _input
options:
  _input:
    description: The links that are wanted, as in the role's nic_links.
    type: list
    elements: dict
    required: true
  facts:
    description: What M(longhaul.fleet.nic_info) returned.
    type: dict
    required: true
  manager:
    description: The manager that shall have them, or V(auto).
    type: str
    default: auto
  edit_existing:
    description: Whether files that are not the role's may be changed, where the manager knows no additions to them.
    type: bool
    default: false
  header:
    description: A comment for the top of each file.
    type: str
    default: ""
seealso:
  - plugin: longhaul.fleet.nic_commands
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show what stands in the way
  ansible.builtin.debug:
    msg: "{{ (nic_links | longhaul.fleet.nic_plan(facts=nic)).problems }}"
"""

RETURN = r"""
_value:
  description: The plan, with C(problems), C(files), C(absent), C(live) and more. With problems use nothing else.
  type: dict
"""


def nic_plan(
    links: Sequence[Mapping[str, Any]],
    facts: Mapping[str, Any],
    manager: str = "auto",
    edit_existing: bool = False,
    header: str = "",
) -> dict[str, Any]:
    """Give the plan."""
    return make_plan(links, facts, manager, edit_existing, header)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Give the filters by name."""
        return {"nic_plan": nic_plan}
