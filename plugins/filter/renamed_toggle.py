# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The value of a role's toggle that had another name before, and the warning about that name."""

from __future__ import annotations

from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.toggles import renamed_toggle

DOCUMENTATION = r"""
name: renamed_toggle
short_description: "Internal: read a role's toggle that had another name before"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Returns whether a toggle is on. Where its old name is set, shows a deprecation warning, and the toggle is off
    where either is.
  - Part of the roles P(longhaul.fleet.nic#role), P(longhaul.fleet.rsyncd#role) and P(longhaul.fleet.migrate#role).
    What it takes and returns may change in any release.
positional: _input, old_value, old, new
options:
  _input:
    description: Value of the toggle. It is on by default, so a value that is on says nothing against the old name.
    type: bool
    required: true
  old_value:
    description: Value under the old name. V(none) where it is not set.
    type: bool
    required: true
  old:
    description: The old name.
    type: str
    required: true
  new:
    description: The new name.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show whether packages are installed
  ansible.builtin.debug:
    msg: >-
      {{ nic_manage_packages | longhaul.fleet.renamed_toggle(nic_install_packages | default(none),
      'nic_install_packages', 'nic_manage_packages') }}
"""

RETURN = r"""
_value:
  description: Whether it is on.
  type: bool
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Return the filters by name."""
        return {"renamed_toggle": renamed_toggle}
