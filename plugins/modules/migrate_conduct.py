#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: migrate_conduct
short_description: "Internal: bring the jobs of a migration up to their cutover"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Runs the preflight, the first copy and the delta passes of many jobs at once, from one task. A pair of hosts whose
    transfer runs needs no process on the control node.
  - Part of the role P(longhaul.fleet.migrate#role). Its options may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.control_node
  - longhaul.fleet._attributes.change
options:
  jobs:
    description: The jobs, as in the variable C(migrate_jobs) of the role.
    type: list
    elements: dict
    required: true
  defaults:
    description: Options for all jobs. A job's own options take precedence.
    type: dict
    default: {}
  phase:
    description: The last phase that the run makes.
    type: str
    choices: [preflight, seed, sync, rehearse, cutover, verify]
    required: true
  allow_delete:
    description: Names of the jobs whose first copy may delete what the destination has of its own, or V(all).
    type: list
    elements: str
    default: []
  reset:
    description: Whether jobs begin again.
    type: bool
    default: false
  sync_short_enough:
    description: Seconds that the last delta pass may take.
    type: float
    required: true
  sync_max_passes:
    description: How many delta passes a run makes at most.
    type: int
    required: true
  preflight_predict:
    description: Whether the preflight predicts what would be sent.
    type: bool
    default: true
  manage_packages:
    description: Whether missing packages are installed where Ansible is root.
    type: bool
    default: true
  limits:
    description: How many pairs run at once, as in the variable C(migrate_limits) of the role.
    type: dict
    default: {}
  folder:
    description: Where the reports and the states are on the control node.
    type: path
    required: true
  started_by:
    description: Who started the run, for the reports.
    type: str
    required: true
  takeover:
    description: Whether jobs are taken over from another control node that works on them.
    type: bool
    default: false
  lease_seconds:
    description: Seconds without a sign of life after which another control node may take over a job.
    type: float
    default: 900
  run_id:
    description: What names this run of Ansible. The jobs of a group switch over in the same one.
    type: str
    default: ""
  has_hooks:
    description: Whether there are hooks for all jobs.
    type: bool
    default: false
  verify_when:
    description: Whether trees are compared before or after the switch.
    type: str
    choices: [before_switch, after_switch]
    default: before_switch
seealso:
  - module: longhaul.fleet.transfer
"""

EXAMPLES = r"""
# Used by the role migrate only.
- name: Bring the jobs up to their cutover
  longhaul.fleet.migrate_conduct:
    jobs: "{{ migrate_jobs }}"
    phase: sync
    sync_short_enough: 300
    sync_max_passes: 5
    folder: /srv/longhaul-migrate
    started_by: root@control
"""

RETURN = r"""
jobs:
  description: What the run did with each job.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: The name of the job.
      type: str
    dest_host:
      description: The host that receives the tree.
      type: str
    changed:
      description: Whether anything changed at the destination.
      type: bool
    left:
      description: Whether the role has more to do with the job in this run, such as its hooks.
      type: bool
    failure:
      description: Why the job was stopped. Empty if it was not.
      type: dict
      contains:
        job:
          description: The name of the job.
          type: str
        phase:
          description: The phase in which it was stopped.
          type: str
        reason:
          description: What happened.
          type: str
        next:
          description: What to do next.
          type: str
"""
