#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: backup_claim
short_description: "Internal: let one run of a backup at a time begin from a control node"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Writes down on the control node which process makes a backup. A second run is refused while the first one lives; where it was
    killed, the second one learns its token, and can continue its jobs that still run on the hosts.
  - Part of the role P(longhaul.fleet.backup#role). Its options may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.control_node
  - longhaul.fleet._attributes.change
attributes:
  check_mode:
    details:
      - Nothing is written in check mode. A backup that another run makes is refused nevertheless.
options:
  path:
    description: The absolute path of the file in which the claim stands. It is one for each host and job.
    type: path
    required: true
  state:
    description:
      - V(claimed) begins a run, V(released) ends it.
    type: str
    choices: [claimed, released]
    default: claimed
"""

EXAMPLES = r"""
- name: Begin
  longhaul.fleet.backup_claim:
    path: "{{ playbook_dir }}/state/web1/data.json"
  register: claim
"""

RETURN = r"""
run:
  description: A token for this run, for O(longhaul.fleet.snapshot#module:run).
  returned: with O(state=claimed)
  type: str
  sample: 0c7c5e0e-5d0c-4d3c-8a52-0a2f5b0f7d15
ended_run:
  description: That of a run before it that has ended, for O(longhaul.fleet.snapshot#module:ended_run). Empty if there was none.
  returned: with O(state=claimed)
  type: str
  sample: ""
"""
