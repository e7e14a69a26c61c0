# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the backups are, after a run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup_health import judge

DOCUMENTATION = r"""
name: backup_health
short_description: "Internal: judge how the backups of a fleet are"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Says of each job and host whether its last run was V(ok) or V(failed), whether a snapshot was set V(aside) because
    it shrank, and whether the newest snapshot is V(stale). V(never) is a job that has not run yet.
  - Part of the role P(longhaul.fleet.backup#role). What it takes and gives may change in any release.
positional: _input
options:
  _input:
    description: The runs of all jobs, as P(longhaul.fleet.backup_runs#filter) gives them.
    type: list
    elements: dict
    required: true
  records:
    description: What is known of them, each as the role writes it down.
    type: list
    elements: dict
    required: true
  wanted:
    description: The ids of those that were to run now.
    type: list
    elements: str
    required: true
  made:
    description: The ids of those that did.
    type: list
    elements: str
    required: true
  predicted:
    description: Whether that was in check mode. Then those that would succeed are not stale.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Judge the runs
  ansible.builtin.debug:
    msg: "{{ runs | longhaul.fleet.backup_health(records=records, wanted=[], made=[]) | map(attribute='state') }}"
"""

RETURN = r"""
_value:
  description: The record of each run, with its state, and why it is that.
  type: list
  elements: dict
"""


def backup_health(
    runs: Sequence[Mapping[str, Any]],
    records: Sequence[Mapping[str, Any]],
    wanted: Sequence[str],
    made: Sequence[str],
    predicted: bool = False,
) -> list[dict[str, Any]]:
    """Give one entry for each run."""
    return judge(runs, records, wanted, made, time.time(), predicted)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Give the filters by name."""
        return {"backup_health": backup_health}
