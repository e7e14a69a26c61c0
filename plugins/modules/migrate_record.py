#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: migrate_record
short_description: "Internal: keep at the destination where a migration job stands"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Writes a small file into the state folder of the destination, where other control nodes find it.
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
  phase:
    description: The phase that the job is in.
    type: str
    choices: [preflight, seed, sync, cutover, switch, verify]
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
"""

RETURN = r"""
kept:
  description: Whether the destination keeps the record. If not, a warning says why.
  returned: success
  type: bool
"""
