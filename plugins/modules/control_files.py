#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: control_files
short_description: "Internal: write down on the control node how far a migration, a backup or a restore is"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Writes files on the control node, each at once and as a whole, so that a run that is killed leaves no half of one.
  - Part of the roles P(longhaul.fleet.migrate#role), P(longhaul.fleet.backup#role) and P(longhaul.fleet.restore#role).
  - Its options may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.control_node
  - longhaul.fleet._attributes.change
attributes:
  check_mode:
    details:
      - Nothing is written in check mode.
options:
  warnings:
    description: What the task shows as warnings, in check mode, too.
    type: list
    elements: str
    default: []
  files:
    description: The files to write. Folders that are missing are made.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: The absolute path of the file.
        type: path
        required: true
      data:
        description: What is written as JSON.
        type: dict
      text:
        description: What is written as it is, in the place of O(files[].data).
        type: str
      mode:
        description: The mode of the file, in octal digits. Without it V(0640), as far as the umask lets it.
        type: str
  writable:
    description: A folder in which later tasks must be able to write. The task fails if nothing can be written there.
    type: path
    default: ""
  option:
    description: The variable that says where the files are. A message names it where they cannot be written.
    type: str
    default: migrate_report_dir
"""

EXAMPLES = r"""
- name: Keep a result
  longhaul.fleet.control_files:
    files:
      - path: "{{ playbook_dir }}/result.json"
        data: "{{ result }}"
"""

RETURN = r""" # """
