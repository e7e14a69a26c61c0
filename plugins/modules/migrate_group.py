#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: migrate_group
short_description: "Internal: decide whether the jobs of a group continue their cutover"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Reads the states of all jobs of a group on the control node, and says for each of them whether it goes on, and if not,
    why. Records the decision in the states before it returns.
  - Part of the role P(longhaul.fleet.migrate#role). Its options may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.control_node
  - longhaul.fleet._attributes.change
options:
  jobs:
    description: Names of all jobs of the group.
    type: list
    elements: str
    required: true
  own:
    description: Names of the jobs of the host that asks.
    type: list
    elements: str
    required: true
  run_id:
    description: What names this run of Ansible.
    type: str
    required: true
  gate:
    description:
      - What the jobs are about to do, namely stop their sources (V(stop)), make their final passes (V(copy)), or switch
        over (V(switch)).
    type: str
    choices: [stop, copy, switch]
    required: true
  commits:
    description: Whether V(switch) begins the switch of all jobs, if all are ready. A rehearsal does not.
    type: bool
    default: true
  folder:
    description: Where the states are on the control node.
    type: path
    required: true
"""

EXAMPLES = r"""
# Used by the role migrate only.
- name: Decide whether the group switches over
  longhaul.fleet.migrate_group:
    jobs: [site, homes, database]
    own: [site, homes]
    run_id: 20260101T000000Z-1
    gate: switch
    folder: /srv/longhaul-migrate
"""

RETURN = r"""
reasons:
  description: For each job, why it does not go on. Empty if it does.
  returned: success
  type: dict
stopped:
  description: Names of the jobs whose source is stopped.
  returned: success
  type: list
  elements: str
"""
