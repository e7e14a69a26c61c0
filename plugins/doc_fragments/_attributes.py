# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attributes that all modules of this collection share. Private to the collection."""

from __future__ import annotations


class ModuleDocFragment:
    """Attributes. A module adds C(support) and C(details) of its own where they differ from module to module."""

    # What an attribute means, and what holds for every module of the collection.
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying target.
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
  idempotent:
    description:
      - When run twice in a row outside check mode, with the same arguments, the second invocation indicates no change.
      - This assumes that the system controlled or queried by the module has not changed in a relevant way.
  platform:
    description: Target OS or families that can be operated against.
    support: full
    platforms: posix
"""

    # For what an action plugin does on the control node, on behalf of two hosts.
    ACTION = r"""
options: {}
attributes:
  action:
    description: Indicates this has a corresponding action plugin so some parts of the options can be executed on the control node.
    support: full
  async:
    description: Supports being used with the C(async) keyword.
    support: none
    details:
      - The jobs on the hosts are detached from Ansible anyway, and a task that is run again attaches to them.
  become:
    description: Is usable alongside C(become) keywords.
    support: full
    details:
      - Privileges on each of the two hosts come from that host's own variables (C(ansible_become),
        C(ansible_become_user) and so on); the C(become) keywords of the task apply to a host that sets none.
  connection:
    description: Uses the target's configured connection information to execute code on it.
    support: full
    details:
      - Each host is reached over its own connection, with its own variables, whatever the host of the task is.
  delegation:
    description: Can be used in conjunction with C(delegate_to) and related keywords.
    support: full
    details:
      - Not needed, since O(src_host) and O(dest_host) name the two hosts.
"""

    # For what writes files on the control node, and asks no host for anything. Named before CHANGE, from which it differs.
    CONTROL_NODE = r"""
options: {}
attributes:
  action:
    description: Indicates this has a corresponding action plugin so some parts of the options can be executed on the control node.
    support: full
    details:
      - The action runs completely on the control node, and contacts no host.
  diff_mode:
    support: none
"""

    # For what changes something: it predicts that, shows it, and finds nothing left to do the second time.
    CHANGE = r"""
options: {}
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
"""

    # For what only looks.
    INFO = r"""
options: {}
attributes:
  check_mode:
    support: full
    details:
      - This action does not modify state.
  diff_mode:
    support: N/A
    details:
      - This action does not modify state.
  idempotent:
    support: full
    details:
      - This action does not modify state.
"""
