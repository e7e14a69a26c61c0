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
      - All jobs with the options that count for all of them applied (V(problems), V(runs)), runs (V(health), V(left)),
        one run (V(record)), what V(health) returned (V(metrics), V(sick)), the state of the backup at hand (V(decide)),
        what is kept of its transfers (V(expect)), the result of one of them (V(account)), the result of a task
        (V(failure)), or a hook as the user wrote it (V(hook)).
    type: raw
    required: true
  question:
    description:
      - V(account) asks what is kept of a transfer.
      - V(decide) asks what is left to do for a backup.
      - V(expect) asks how much a snapshot must hold.
      - V(failure) asks why a task failed.
      - V(health) asks how the backups are.
      - V(hook) asks what may be told of a hook.
      - V(left) asks which runs of this play are left.
      - V(metrics) asks for the text of a file for the textfile collector of the node exporter of Prometheus.
      - V(problems) asks what is wrong with the jobs themselves.
      - V(record) asks for the record of a run.
      - V(runs) asks for the runs of the jobs.
      - V(sick) asks which backups are not well.
    type: str
    choices: [account, decide, expect, failure, health, hook, left, metrics, problems, record, runs, sick]
    required: true
  at:
    description: For V(record), when it began.
    type: str
  before:
    description: For V(record), the record before this one.
    type: dict
    default: {}
  bwlimit:
    description:
      - For V(runs), the most bytes a second that one repository host receives, such as V(100M). V(0) means no limit.
    type: str
    default: "0"
  check_mode:
    description: For V(expect), whether the run is in check mode.
    type: bool
  check_subset:
    description: For V(decide), the subset of the snapshots' contents to check. Empty for none.
    type: str
    default: ""
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
  ended:
    description: For V(record), when it ended.
    type: str
  failures:
    description: For V(record), what went wrong, each with C(step) and C(reason).
    type: list
    elements: dict
  groups:
    description: For V(problems) and V(runs), the groups of the inventory with their hosts, V(all) among them.
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
  made:
    description: For V(health), the ids of the runs that were made.
    type: list
    elements: str
  notes:
    description: For V(record), what the user should know although it succeeded.
    type: list
    elements: str
  now:
    description: For V(health), the time in seconds since 1970.
    type: float
  only:
    description:
      - For V(problems) and V(runs), the names of jobs, of hosts, or C(host/job), that run alone. Empty for all.
    type: list
    elements: str
    default: []
  paths:
    description: For V(expect), how many paths are backed up.
    type: int
  predicted:
    description: For V(health), whether the run is in check mode. Then those that would succeed are not stale.
    type: bool
    default: false
  records:
    description: For V(health), V(left) and V(runs), what is known of earlier runs, each as the role writes it down.
    type: list
    elements: dict
    default: []
  said:
    description:
      - For V(record), what M(longhaul.fleet.snapshot) answered to C(begin), C(finish), C(list), C(prune) and C(check),
        as far as asked.
    type: dict
  src:
    description: For V(account), the path that was transferred.
    type: str
  task:
    description: For V(failure), the name of the task.
    type: str
    default: ""
  transfers:
    description: For V(record), what the report keeps of the transfers.
    type: list
    elements: dict
  verify:
    description: For V(expect), how both trees were compared.
    type: str
  wanted:
    description: For V(health), the ids of the runs that were to be made now.
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: Show what would run
  ansible.builtin.debug:
    msg: "{{ backup_jobs | longhaul.fleet.backup_logic('runs', groups=groups, concurrency=4) | map(attribute='id') }}"

- name: Show what is wrong with the jobs
  ansible.builtin.debug:
    msg: "{{ backup_jobs | longhaul.fleet.backup_logic('problems', groups=groups) }}"
"""

RETURN = r"""
_value:
  description:
    - The answer.
    - V(failure) and V(metrics) return a text, V(problems) and V(sick) a list of sentences.
    - V(account) returns C(figures) for the report, and the sentences C(notes).
    - V(decide) returns the steps in their order.
    - V(expect) returns the C(entries) and C(bytes), V(-1) where that is not known.
    - V(health) returns the record of each run, with its C(state) and C(why) it is that.
    - V(hook) returns C(kind), C(host), C(name), C(what) it runs, and whether it is C(hidden).
    - V(left) returns the runs to C(end), since a host was lost, and then those to C(make).
    - V(record) returns the record of the run, and V(runs) the runs, those of one lane in their order.
  type: raw
"""


QUESTIONS: Mapping[str, str] = {
    "account": "plugin_utils.backup.transfers.account",
    "decide": "plugin_utils.backup.steps.decide",
    "expect": "plugin_utils.backup.transfers.expect",
    "failure": "plugin_utils.task_failure.tell_failure",
    "health": "plugin_utils.backup.health.judge",
    "hook": "plugin_utils.hooks.tell_hook",
    "left": "plugin_utils.backup.left.find_left",
    "metrics": "plugin_utils.backup.metrics.write_metrics",
    "problems": "plugin_utils.backup.old_keys.find_problems",
    "record": "plugin_utils.backup.record.make_record",
    "runs": "plugin_utils.backup.old_keys.make_runs",
    "sick": "plugin_utils.backup.health.name_sick",
}


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"backup_logic": make_filter("backup_logic", QUESTIONS)}
