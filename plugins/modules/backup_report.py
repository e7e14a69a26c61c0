#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: backup_report
short_description: "Internal: report how all backups are"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Writes down how the backups of all jobs are, shows those that are well, and returns the others.
  - Part of the role P(longhaul.fleet.backup#role). Its options may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.control_node
  - longhaul.fleet._attributes.change
attributes:
  check_mode:
    details:
      - Nothing is written in check mode.
  diff_mode:
    support: none
options:
  jobs:
    description: The jobs, as in the variable C(backup_jobs) of the role.
    type: list
    elements: raw
    required: true
  defaults:
    description: Options for all jobs. A job's own options take precedence.
    type: dict
    default: {}
  records:
    description: What became of the backups that were made now.
    type: list
    elements: dict
    default: []
  wanted:
    description: The ids (C(host/job)) of the backups that were to be made now.
    type: list
    elements: str
    default: []
  folder:
    description: Where the records and the report are on the control node.
    type: path
    required: true
  textfile:
    description: A file for the textfile collector of the node exporter of Prometheus. Empty for none.
    type: path
    default: ""
"""

EXAMPLES = r"""
# Used by the role backup only.
- name: Report
  longhaul.fleet.backup_report:
    jobs: "{{ backup_jobs }}"
    folder: /srv/longhaul-backup
"""

RETURN = r"""
summary:
  description: The figures of the run.
  returned: always
  type: dict
failures:
  description: What has a problem. Each has C(name), C(what) became of it, the C(reason), and what to do C(next).
  returned: always
  type: list
  elements: dict
"""
