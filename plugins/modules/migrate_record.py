#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: migrate_record
short_description: "Internal: record where a migration job stands, as long as it is this run's"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Asks the destination whether this control node still has the job, renews its lease, and keeps a record in a small
    file there, where other control nodes find it.
  - Part of the role P(longhaul.fleet.migrate#role). Its options may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.control_node
  - longhaul.fleet._attributes.change
attributes:
  action:
    details:
      - The action asks the destination of the job.
options:
  state:
    description: The state of the job, as the role keeps it.
    type: dict
    required: true
  act:
    description:
      - What follows. Before something begins that must not be done by two control nodes (V(begin)), the task fails if
        another one has the job.
      - V(end) lets others have the job, unless its source may be stopped.
    type: str
    choices: [begin, keep, end]
    default: keep
  phase:
    description: The phase that the job is in, for the record. Without it none is kept.
    type: str
    choices: [preflight, seed, sync, cutover, switch, verify]
  required:
    description: Whether the task fails if the destination cannot be asked.
    type: bool
    default: false
  saved:
    description: The state that is saved in O(folder) after the destination was asked. Without it none is.
    type: dict
    default: {}
  folder:
    description: Where the reports and the states are on the control node.
    type: path
    required: true
  who:
    description: Who runs it, for other control nodes.
    type: str
    required: true
  seconds:
    description: How long the lease lives without a sign of life.
    type: float
    required: true
  now:
    description: The time, in UTC.
    type: str
    required: true
seealso:
  - module: longhaul.fleet.fleet_status
"""

EXAMPLES = r"""
# Used by the role migrate only.
- name: Keep that the switch has begun
  longhaul.fleet.migrate_record:
    state: "{{ state_of_the_job }}"
    phase: switch
    now: "2026-11-21T12:00:00Z"
    folder: /srv/longhaul-migrate
    who: root@control
    seconds: 900
"""

RETURN = r"""
kept:
  description: Whether the destination keeps the record. If not, a warning says why.
  returned: success
  type: bool
lease_lost:
  description: Whether another control node has the job.
  returned: if it has
  type: bool
"""
