# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the reports and states of a role are on the control node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

DOCUMENTATION = r"""
name: state_folder
short_description: "Internal: find the folder of reports and states"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Finds the folder on the control node in which a role keeps its reports and states.
  - Part of the roles P(longhaul.fleet.migrate#role), P(longhaul.fleet.backup#role) and P(longhaul.fleet.restore#role).
  - What it takes and returns may change in any release.
positional: _input, configured, inventory, sources
options:
  _input:
    description: The name of the folder.
    type: str
    required: true
  configured:
    description: The variable C(longhaul_state_dir). Empty if it is not set.
    type: str
    required: true
  inventory:
    description: The folder of the inventory. Empty if there is none.
    type: str
    required: true
  sources:
    description: The inventories of the run.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Show where the reports of a migration are
  ansible.builtin.debug:
    msg: "{{ 'longhaul-migrate' | longhaul.fleet.state_folder('', inventory_dir, ansible_inventory_sources) }}"
"""

RETURN = r"""
_value:
  description: The path of the folder.
  type: path
"""


def find_folder(name: str, *arguments: Any) -> str:
    """Return the folder. What finds it is imported when it is asked, since Ansible imports all filters together."""
    from ansible_collections.longhaul.fleet.plugins.plugin_utils.state_folder import state_folder

    return state_folder(name, *arguments)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"state_folder": find_folder}
