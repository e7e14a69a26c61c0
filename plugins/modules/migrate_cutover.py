#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: migrate_cutover
short_description: "Internal: do what a cutover does between its hooks"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Makes the final pass and the comparison of a migration job, and records where it stands, here and at its destination,
    as long as the job is this run's.
  - What a job has left is decided by its state, so an act that is not due does nothing.
  - Part of the role P(longhaul.fleet.migrate#role). Its options may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.control_node
  - longhaul.fleet._attributes.change
attributes:
  action:
    details:
      - The action asks both hosts of the job.
options:
  job:
    description: The job, with the defaults for all jobs.
    type: dict
    required: true
  acts:
    description:
      - What is done, in this order, up to the first that fails.
      - V(stop) and V(stopped) stand before and after the hooks that stop the source, V(switch) and V(complete) before
        and after those of the switch. V(complete) also ends a rehearsal. V(copy) is the final pass, with the comparison
        if it comes before the switch, otherwise V(compare) makes it. V(report) reports, and lets other control nodes have
        the job.
      - V(begin_hook) and V(end_hook) stand around each hook.
      - V(fail) records O(reason). V(serve) records that the source is back in service, and V(fail_again) that a hook
        failed that was to bring it back, or to handle a failed switch.
    type: list
    elements: str
    choices: [stop, stopped, copy, switch, complete, compare, report, begin_hook, end_hook, fail, serve, fail_again]
    required: true
  phase:
    description: The phase of the role.
    type: str
    choices: [preflight, seed, sync, rehearse, cutover, verify]
    required: true
  verify_when:
    description: Whether the trees are compared before or after the switch.
    type: str
    choices: [before_switch, after_switch]
    default: before_switch
  stops:
    description: Whether the job has hooks that stop its source.
    type: bool
    default: false
  revives:
    description: Whether the job has hooks that put its source back in service.
    type: bool
    default: false
  ran:
    description: What is told of the hooks of the switch that have run.
    type: list
    elements: dict
    default: []
  switches:
    description: Whether hooks of the switch are left.
    type: bool
    default: false
  hook:
    description: What is told of the hook that begins.
    type: dict
    default: {}
  reason:
    description: Why the cutover failed.
    type: str
    default: ""
  lost:
    description: Whether it failed because another control node has the job.
    type: bool
    default: false
  total:
    description: How many jobs the run has. Many jobs have one line each.
    type: int
    default: 1
  folder:
    description: Where the reports and the states are on the control node.
    type: path
    required: true
  lease_seconds:
    description: How long the lease of the job lives without a sign of life.
    type: float
    required: true
seealso:
  - module: longhaul.fleet.fleet_status
"""

EXAMPLES = r"""
# Used by the role migrate only.
- name: Make the final pass of a job, and begin its switch
  longhaul.fleet.migrate_cutover:
    job: {name: data, src_host: old.example.com, src: /srv/data/, dest_host: new.example.com, dest: /srv/data}
    acts: [copy, switch]
    phase: cutover
    folder: /srv/longhaul-migrate
    lease_seconds: 900
"""

RETURN = r"""
hook:
  description: What is told of the hook that runs. Empty if none does.
  returned: always
  type: dict
remedies:
  description: What follows a failure, in this order.
  returned: always
  type: list
  elements: str
  sample: [revive]
failure:
  description: What stopped the job, once that was reported. Empty if nothing did.
  returned: always
  type: dict
  contains:
    job:
      description: Name of the job.
      type: str
    phase:
      description: The phase that it stopped in.
      type: str
    reason:
      description: Why.
      type: str
    next:
      description: What to do.
      type: str
lease_lost:
  description: Whether another control node has the job.
  returned: always
  type: bool
"""
