# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with a list of backup jobs, before any host is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup_jobs import problems

DOCUMENTATION = r"""
name: backup_problems
short_description: "Internal: say what is wrong with a list of backup jobs"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Looks at C(backup_jobs) of the role P(longhaul.fleet.backup#role) without asking any host.
  - Part of that role.
positional: _input
options:
  _input:
    description: The jobs, with the options that count for all of them applied.
    type: list
    elements: dict
    required: true
  groups:
    description: The groups of the inventory with their hosts, V(all) among them.
    type: dict
    required: true
  only:
    description: The names of jobs and hosts that shall run alone.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Show what is wrong with the jobs
  ansible.builtin.debug:
    msg: "{{ backup_jobs | longhaul.fleet.backup_problems(groups=groups) }}"
"""

RETURN = r"""
_value:
  description: A sentence for each problem.
  type: list
  elements: str
"""


def backup_problems(
    jobs: Sequence[Mapping[str, Any]], groups: Mapping[str, Sequence[str]], only: Sequence[str] = ()
) -> list[str]:
    """Give a sentence for each problem."""
    return problems(jobs, groups, only)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Give the filters by name."""
        return {"backup_problems": backup_problems}
