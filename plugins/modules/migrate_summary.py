#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: migrate_summary
short_description: "Internal: sum up a run of a migration"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Returns what a run did in a few figures, and what failed.
  - Part of the role P(longhaul.fleet.migrate#role). Its options may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.control_node
  - longhaul.fleet._attributes.change
attributes:
  check_mode:
    details:
      - The figures are predicted in check mode.
  diff_mode:
    support: none
options:
  jobs:
    description: What M(longhaul.fleet.migrate_conduct) returned of each job.
    type: list
    elements: dict
    required: true
  failures:
    description: The failures of what was left to the role.
    type: list
    elements: dict
    default: []
  phase:
    description: The phase of the run.
    type: str
    required: true
  folder:
    description: Where the reports are on the control node.
    type: path
    required: true
  started_by:
    description: Who runs it.
    type: str
    default: ""
"""

EXAMPLES = r"""
# Used by the role migrate only.
- name: Sum up the run
  longhaul.fleet.migrate_summary:
    jobs: "{{ conducted.jobs }}"
    phase: sync
    folder: /srv/longhaul-migrate
"""

RETURN = r"""
summary:
  description: The figures of the run.
  returned: always
  type: dict
failures:
  description: What failed. Each has C(name), C(what) became of it, the C(reason), and what to do C(next).
  returned: always
  type: list
  elements: dict
"""
