# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role backup asks of its logic in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.role_logic import make_filter

DOCUMENTATION = r"""
name: backup_logic
short_description: "Internal: answer a question of the role backup"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Answers the questions of the role P(longhaul.fleet.backup#role). What it takes and returns may change in any
    release.
  - A run is one job for one host.
positional: _input, question
options:
  _input:
    description:
      - What the question is about.
      - All jobs with the options that count for all of them applied (V(runs)), runs (V(left)), the result of a task
        (V(failure)), or a hook as the user wrote it (V(hook)).
    type: raw
    required: true
  question:
    description:
      - V(failure) asks why a task failed.
      - V(hook) asks what may be told of a hook.
      - V(left) asks which runs of this play are left.
      - V(runs) asks for the runs of the jobs.
    type: str
    choices: [failure, hook, left, runs]
    required: true
  bwlimit:
    description:
      - For V(runs), the most bytes a second that one repository host receives, such as V(100M). V(0) means no limit.
    type: str
    default: "0"
  concurrency:
    description: For V(runs), the most runs at once on one repository host.
    type: int
    default: 1
  current:
    description: For V(left), the id of the run that began last. Empty if none did.
    type: str
  direction:
    description: For V(runs), who connects, V(pull) or V(push).
    type: str
    default: pull
  groups:
    description: For V(runs), the groups of the inventory with their hosts, V(all) among them.
    type: dict
  hidden:
    description: For V(failure), whether the task had C(no_log).
    type: bool
    default: false
  hook:
    description: For V(failure), what V(hook) told of the hook that ran. Empty if none did.
    type: dict
    default: {}
  host:
    description: For V(hook), where it runs.
    type: str
    default: ""
  kind:
    description: For V(hook), the list that it is in.
    type: str
    default: ""
  only:
    description: For V(runs), the names of jobs, of hosts, or C(host/job), that run alone. Empty for all.
    type: list
    elements: str
    default: []
  records:
    description: For V(left) and V(runs), what is known of earlier runs, each as the role writes it down.
    type: list
    elements: dict
    default: []
  task:
    description: For V(failure), the name of the task.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Show what would run
  ansible.builtin.debug:
    msg: "{{ backup_jobs | longhaul.fleet.backup_logic('runs', groups=groups, concurrency=4) | map(attribute='id') }}"
"""

RETURN = r"""
_value:
  description:
    - The answer.
    - V(failure) returns a text.
    - V(hook) returns C(kind), C(host), C(name), C(what) it runs, and whether it is C(hidden).
    - V(left) returns the runs to C(end), since a host was lost, and then those to C(make).
    - V(runs) returns the runs, those of one lane in their order.
  type: raw
"""


QUESTIONS: Mapping[str, str] = {
    "failure": "plugin_utils.task_failure.tell_failure",
    "hook": "plugin_utils.hooks.tell_hook",
    "left": "plugin_utils.backup.left.find_left",
    "runs": "plugin_utils.backup.jobs.make_runs",
}


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"backup_logic": make_filter("backup_logic", QUESTIONS)}
