# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may be told of a hook."""

from __future__ import annotations

from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.hooks import tell_hook

DOCUMENTATION = r"""
name: migrate_hook
short_description: "Internal: say what may be told of a hook"
version_added: 0.1.1
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Names a hook for messages and reports. Of one with C(no_log) nothing but its name is told.
  - Part of the roles P(longhaul.fleet.migrate#role) and P(longhaul.fleet.backup#role). What it takes and returns may
    change in any release.
positional: _input
options:
  _input:
    description: The hook, as the user wrote it.
    type: dict
    required: true
  kind:
    description: The list that the hook is in.
    type: str
    default: ""
  host:
    description: Where it runs.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Name the hooks
  ansible.builtin.debug:
    msg: "{{ (item | longhaul.fleet.migrate_hook).name }}"
  loop: "{{ before_cutover }}"
"""

RETURN = r"""
_value:
  description:
    - C(kind), C(host), C(name), C(what) it runs, and whether it is C(hidden).
    - A hook that has no name is called by what it runs. Of one with C(no_log) C(what) is empty.
  type: dict
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Return the filters by name."""
        return {"migrate_hook": tell_hook}
