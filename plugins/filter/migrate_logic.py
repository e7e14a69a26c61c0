# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role migrate asks of its logic in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.role_logic import make_filter

DOCUMENTATION = r"""
name: migrate_logic
short_description: "Internal: answer a question of the role migrate"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Answers the questions of the role P(longhaul.fleet.migrate#role). What it takes and returns may change in any
    release.
positional: _input, question
options:
  _input:
    description:
      - What the question is about.
      - The state of a job as the role keeps it (V(compared_fields), V(decide), V(remedies), V(switch)), all jobs
        (V(back), V(groups), V(problems)), one job (V(finds_extra)), the answer of V(groups) (V(left_out), V(together)),
        the result of a task (V(failure)), names as the user gave them (V(names)), the failures that the role recorded
        (V(failures)), the results of comparisons (V(found)), or a hook as the user wrote it (V(hook)).
    type: raw
    required: true
  question:
    description:
      - V(back) asks for jobs turned round, which bring back what the new host has.
      - V(compared_fields) asks what a comparison of the trees of a job looks at.
      - V(decide) asks what a run does with a job.
      - V(failure) asks why a task failed.
      - V(failures) asks for all failures as people see them.
      - V(finds_extra) asks whether a comparison of the trees of a job looks at what only the destination has.
      - V(found) asks what the comparisons of a run found.
      - V(groups) asks which jobs switch over together.
      - V(hook) asks what may be told of a hook.
      - V(left_out) asks which of the groups this run would tear apart.
      - V(names) asks for the names in a list, or in one text with commas.
      - V(problems) asks what is wrong with the jobs themselves.
      - V(remedies) asks what a run does after a failure.
      - V(switch) asks which hooks of the switch have run.
      - V(together) asks for the hosts that switch over together.
    type: str
    choices:
      - back
      - compared_fields
      - decide
      - failure
      - failures
      - finds_extra
      - found
      - groups
      - hook
      - left_out
      - names
      - problems
      - remedies
      - switch
      - together
    required: true
  agreed:
    description: For V(problems), the names of jobs that may delete.
    type: list
    elements: str
    default: []
  automated:
    description: For V(problems), whether AWX, an automation controller or ansible-runner started the run.
    type: bool
    default: false
  check_mode:
    description: For V(decide) and V(found), whether the run is in check mode.
    type: bool
    default: false
  compares:
    description: For V(decide), whether the job wants its trees compared.
    type: bool
    default: true
  defaults:
    description: For V(back), V(groups) and V(problems), the options that count for all jobs.
    type: dict
    default: {}
  hidden:
    description: For V(failure), whether the task had C(no_log).
    type: bool
    default: false
  hook:
    description: For V(failure), what V(hook) told of the hook that ran. Empty if none did.
    type: dict
    default: {}
  hooks:
    description: For V(switch), the hooks of the switch, as the user wrote them.
    type: list
    elements: dict
  host:
    description: For V(hook), where it runs.
    type: str
    default: ""
  hosts:
    description: >-
      For V(problems), the names of the hosts in the inventory. For V(left_out), those that take part in the run.
    type: list
    elements: str
  in_switch:
    description: For V(remedies), whether a step of the switch failed.
    type: bool
  job:
    description: For V(compared_fields), the job, with the defaults for all jobs.
    type: dict
  kind:
    description: For V(hook), the list that it is in.
    type: str
    default: ""
  names:
    description: For V(back) and V(together), the names of the jobs.
    type: list
    elements: str
  only:
    description: For V(groups), V(left_out) and V(problems), the names of the jobs that run. Empty means all.
    type: list
    elements: str
    default: []
  phase:
    description: For V(decide), the phase that was asked for.
    type: str
    choices: [preflight, seed, sync, rehearse, cutover, verify]
  records:
    description: For V(failures), what M(longhaul.fleet.migrate_conduct) returned of the jobs.
    type: list
    elements: dict
  rehearses:
    description: For V(problems), whether the run stops sources and brings them back.
    type: bool
    default: false
  revives:
    description: For V(problems), whether there are hooks for all jobs that bring a source back.
    type: bool
    default: false
  states:
    description: For V(back), what is kept of these jobs as far as they have begun. Without it, nobody has looked.
    type: list
    elements: dict
  stops:
    description: For V(problems), whether there are hooks for all jobs that stop a source.
    type: bool
    default: false
  task:
    description: For V(failure), the name of the task.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Show what a cutover would do
  ansible.builtin.debug:
    msg: "{{ (state | longhaul.fleet.migrate_logic('decide', phase='cutover')).steps }}"
  vars:
    state: "{{ lookup('ansible.builtin.file', 'state/data.json') | from_json }}"

- name: Show what is wrong with the jobs
  ansible.builtin.debug:
    msg: "{{ migrate_jobs | longhaul.fleet.migrate_logic('problems', hosts=groups['all']) }}"
"""

RETURN = r"""
_value:
  description:
    - The answer.
    - V(failure) returns a text, V(left_out) and V(problems) a list of sentences, V(names) and V(together) a list of
      names, V(compared_fields) a list of fields, which is empty if nothing is known, and V(finds_extra) a truth value.
    - V(back) returns the C(jobs) that go back, and the C(problems) with others.
    - V(decide) returns the C(steps) in their order. C(refused) is why the run refuses the job, and C(instead) what to
      do.
    - V(failures) returns a list with C(name), C(what), C(reason) and C(next).
    - V(found) returns C(lines) for people, the C(summary), and the C(failures).
    - V(hook) returns C(kind), C(host), C(name), C(what) it runs, and whether it is C(hidden).
    - V(remedies) returns a list of them, in their order.
    - V(switch) returns what was told of the hooks that ran, C(done), and the others as the user wrote them, C(left).
  type: raw
"""

QUESTIONS: Mapping[str, str] = {
    "back": "plugin_utils.migrate.back.find_back",
    "compared_fields": "plugin_utils.migrate.compared.compared_fields",
    "decide": "plugin_utils.migrate.steps.decide",
    "failure": "plugin_utils.task_failure.tell_failure",
    "failures": "plugin_utils.migrate.summary.tell_failures",
    "finds_extra": "plugin_utils.migrate.compared.finds_extra",
    "found": "plugin_utils.migrate.comparisons.tell_found",
    "groups": "plugin_utils.migrate.groups.find_groups",
    "hook": "plugin_utils.hooks.tell_hook",
    "left_out": "plugin_utils.migrate.groups.find_left_out",
    "names": "plugin_utils.name_list.read_names",
    "problems": "plugin_utils.migrate.job_problems.find_problems",
    "remedies": "plugin_utils.migrate.remedies.find_remedies",
    "switch": "plugin_utils.migrate.switch.divide",
    "together": "plugin_utils.migrate.groups.find_together",
}


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"migrate_logic": make_filter("migrate_logic", QUESTIONS)}
