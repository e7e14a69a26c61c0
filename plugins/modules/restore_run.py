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
  client:
    description: The host that was backed up, as in the variable C(restore_from) of the role.
    type: str
    default: ""
  job:
    description: As the variable C(restore_job).
    type: str
    default: ""
  path:
    description: As the variable C(restore_path).
    type: str
    default: ""
  when:
    description: As the variable C(restore_when).
    type: str
    default: latest
  timezone:
    description: As the variable C(restore_timezone).
    type: str
    default: UTC
  repository:
    description: As the variable C(restore_repository).
    type: dict
    default: {}
  to:
    description: As the variable C(restore_to).
    type: str
    default: ""
  dest:
    description: As the variable C(restore_dest).
    type: str
    default: ""
  over:
    description: As the variable C(restore_over).
    type: bool
    default: false
  delete:
    description: As the variable C(restore_delete).
    type: bool
    default: false
  check:
    description: As the variable C(restore_check).
    type: str
    choices: [contents, files, structure]
    default: contents
  damaged:
    description: As the variable C(restore_damaged).
    type: bool
    default: false
  verify:
    description: As the variable C(restore_verify).
    type: str
    choices: [checksum, size]
    default: checksum
  transfer:
    description: As the variable C(restore_transfer).
    type: dict
    default: {}
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
  folder:
    description: The folder on the control node for the reports. Empty as C(restore_report_dir) may be.
    type: path
    default: ""
  notify:
    description: C(restore_notify).
    type: list
    elements: dict
    default: []
seealso:
  - module: longhaul.fleet.snapshot
  - module: longhaul.fleet.transfer
"""

EXAMPLES = r"""
# Used by the role restore only.
- name: Restore the photos
  longhaul.fleet.restore_run:
    path: photos
    jobs: "{{ backup_jobs }}"
    folder: /srv/longhaul-restore
"""

RETURN = r"""
request:
  description: The completed request.
  returned: with O(only_request)
  type: dict
  sample: {}
summary:
  description: The figures of the restore, as in C(longhaul_restore_summary).
  returned: when the transfer has begun
  type: dict
  sample: {}
method:
  description: This and all other values of M(longhaul.fleet.transfer).
  returned: when the transfer has ended
  type: str
  sample: stream
"""
