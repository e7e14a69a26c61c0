#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: migrate_run
short_description: "Internal: do one part of a run of the role migrate"
version_added: 0.3.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Drives the jobs of a migration from one task. A pair of hosts whose transfer runs needs no process on the control
    node. Hooks that are commands or modules run here; a hook that is a file of tasks ends the task, and the role calls
    it again once that has run.
  - Part of the role P(longhaul.fleet.migrate#role). Its options may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.control_node
  - longhaul.fleet._attributes.change
options:
  part:
    description:
      - V(check) looks for mistakes in the jobs, and returns their hosts.
      - V(begin) brings all jobs up to their first hook that is a file of tasks, or to their end.
      - V(continue) continues what V(begin) has left.
      - V(report) writes the report on all jobs.
      - V(compare) compares the trees of all jobs, and changes nothing.
    type: str
    choices: [check, begin, continue, report, compare]
    required: true
  playbook:
    description: Name of the playbook of the collection that uses the role, for its advice. Empty in a play of a user's own.
    type: str
    default: ""
  folder:
    description: The folder of the reports and the states on the control node. Empty as C(migrate_report_dir) may be.
    type: path
    default: ""
  hosts:
    description: Hosts of the play for whose jobs this task is.
    type: list
    elements: str
    default: []
  play_hosts:
    description: All hosts of the play.
    type: list
    elements: str
    default: []
  hook_folder:
    description: The folder of files of tasks that are hooks.
    type: str
    default: ""
  run_id:
    description: Identifies this run. Without it there is a new one.
    type: str
    default: ""
  records:
    description: RV(jobs) of earlier calls in this run.
    type: list
    elements: dict
    default: []
  tasks_results:
    description: How hooks ended that are files of tasks.
    type: list
    elements: dict
    default: []
  lease_seconds:
    description: Seconds without a sign of life after which another control node may take over a job.
    type: float
    default: 900
  variables:
    description:
      - The variables of the role, by their names without C(migrate_). The argument spec of the role has their types.
    type: dict
    required: true
"""

EXAMPLES = r"""
# Used by the role migrate only.
- name: Copy all trees
  longhaul.fleet.migrate_run:
    part: begin
    variables:
      jobs: "{{ migrate_jobs }}"
    hosts: [new]
    play_hosts: [new]
    folder: /srv/longhaul-migrate
"""

RETURN = r"""
hosts:
  description: The hosts that the jobs go to.
  returned: O(part=check)
  type: list
  elements: str
run_id:
  description: Identifies this run.
  returned: O(part=begin) and O(part=continue)
  type: str
folder:
  description: The folder of the reports and the states on the control node.
  returned: O(part=begin) and O(part=continue)
  type: str
jobs:
  description: What the run did with each job so far. C(left) is whether a later call has more to do with it.
  returned: O(part=begin) and O(part=continue)
  type: list
  elements: dict
hooks:
  description: Files of tasks that are to be run now, each with C(job), C(id), C(host), C(file), C(timeout) and C(hidden).
  returned: O(part=begin) and O(part=continue)
  type: list
  elements: dict
left_hosts:
  description: The hosts whose tasks continue what is left.
  returned: O(part=begin) and O(part=continue)
  type: list
  elements: str
changed_hosts:
  description: The hosts on which something changed.
  returned: O(part=begin) and O(part=continue)
  type: list
  elements: str
summary:
  description: The figures of the run.
  returned: O(part=report) and O(part=compare)
  type: dict
failures:
  description: The jobs that failed, each with C(name), C(what), C(reason) and C(next).
  returned: O(part=report) and O(part=compare)
  type: list
  elements: dict
"""
