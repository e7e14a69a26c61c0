#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: restore_run
short_description: "Internal: restore from a snapshot"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Chooses a snapshot, compares it with its manifest, checks the destination, transfers the files and writes the report.
  - Restores on the host that receives the files. On other hosts it is skipped.
  - Part of the role P(longhaul.fleet.restore#role). Its options and what it returns may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.change
options:
  variables:
    description:
      - The variables of the role, by their names without C(restore_). The argument spec of the role has their types.
    type: dict
    required: true
  jobs:
    description: The jobs of the backup, as in the variable C(backup_jobs).
    type: list
    elements: dict
    default: []
  defaults:
    description: Options for all jobs, as in the variable C(backup_defaults).
    type: dict
    default: {}
  request:
    description: A completed request, as RV(request) of another task with O(only_request).
    type: dict
    default: {}
  only_request:
    description: Complete the request from the jobs of the backup, and return it.
    type: bool
    default: false
"""

EXAMPLES = r"""
# Used by the role restore only.
- name: Restore the photos
  longhaul.fleet.restore_run:
    variables:
      path: photos
    jobs: "{{ backup_jobs }}"
"""

RETURN = r"""
request:
  description: The completed request.
  returned: with O(only_request)
  type: dict
summary:
  description: The figures of the restore, as in C(longhaul_restore_summary).
  returned: when the transfer has begun
  type: dict
method:
  description: This and all other values of M(longhaul.fleet.transfer).
  returned: when the transfer has ended
  type: str
"""
