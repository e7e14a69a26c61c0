#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: backup_run
short_description: "Internal: do one part of a run of the role backup"
version_added: 0.3.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Makes backups from one task, many at once, with their hooks. A backup whose transfer runs needs no process on the
    control node. A hook that is a file of tasks ends the task, and the role calls it again once that has run.
  - Part of the role P(longhaul.fleet.backup#role). Its options may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.control_node
  - longhaul.fleet._attributes.change
attributes:
  idempotent:
    support: none
    details:
      - Each run makes a snapshot.
options:
  part:
    description:
      - V(begin) looks for mistakes in the jobs, and makes the backups whose hooks are no files of tasks.
      - V(continue) makes the others, up to the next hook that is a file of tasks.
      - V(report) writes the report on all jobs.
      - V(audit) asks the repositories what they have, and writes the report for an auditor.
    type: str
    choices: [begin, continue, report, audit]
    required: true
  repository_hosts:
    description: The hosts to whose repositories the backups go, one after the other. Empty for all hosts, at once.
    type: list
    elements: str
    default: []
  folder:
    description: RV(folder) of an earlier call. Empty for the first one.
    type: str
    default: ""
  hook_folder:
    description: RV(hook_folder) of an earlier call.
    type: str
    default: ""
  run_id:
    description: RV(run_id) of an earlier call. Without it there is a new one.
    type: str
    default: ""
  records:
    description: RV(jobs) of all calls of this run, for the report.
    type: list
    elements: dict
    default: []
  wanted:
    description: RV(wanted) of the first call, for the report.
    type: list
    elements: str
    default: []
  busy:
    description: RV(busy) of the first call, for the report.
    type: dict
    default: {}
  tasks_results:
    description: How hooks ended that are files of tasks.
    type: list
    elements: dict
    default: []
  variables:
    description:
      - The variables of the role, by their names without C(backup_). The argument spec of the role has their types.
    type: dict
    required: true
  limits:
    description: C(fleet_limits).
    type: dict
    default: {}
"""

EXAMPLES = r"""
# Used by the role backup only.
- name: Make the backups
  longhaul.fleet.backup_run:
    part: begin
    variables:
      jobs: "{{ backup_jobs }}"
"""

RETURN = r"""
jobs:
  description: The record of each backup that was made, by this call and by those before that it continues.
  returned: O(part=begin) and O(part=continue)
  type: list
  elements: dict
wanted:
  description: The ids (C(host/job)) of all backups that were asked for.
  returned: O(part=begin) and O(part=continue)
  type: list
  elements: str
left_hosts:
  description: The hosts of the repositories for whose backups O(part=continue) is left.
  returned: O(part=begin) and O(part=continue)
  type: list
  elements: str
busy:
  description: Why backups were not made at which another run is at work, by their ids.
  returned: O(part=begin) and O(part=continue)
  type: dict
hooks:
  description: Files of tasks that are to be run now, each with C(job), C(id), C(host), C(file), C(timeout), C(hidden)
    and C(folder), which a drill has restored.
  returned: O(part=begin) and O(part=continue)
  type: list
  elements: dict
summary:
  description: The figures of the run, or of the audit.
  returned: O(part=report) and O(part=audit)
  type: dict
failures:
  description: What has a problem. Each has C(name), C(what) became of it, the C(reason), and what to do C(next).
  returned: O(part=report)
  type: list
  elements: dict
folder:
  description: The folder of the reports, the claims and the records on the control node.
  returned: success
  type: str
hook_folder:
  description: The folder of files of tasks that are hooks.
  returned: success
  type: str
run_id:
  description: Identifies this run.
  returned: success
  type: str
"""
