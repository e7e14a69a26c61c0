#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: backup_part
short_description: "Internal: make a part of a backup that has hooks"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Makes those steps of a backup that come before its hooks, between them, or after them.
  - Part of the role P(longhaul.fleet.backup#role). Its options may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.control_node
  - longhaul.fleet._attributes.change
attributes:
  idempotent:
    support: none
    details:
      - Each run makes a snapshot.
options:
  run:
    description: The backup, as the question V(runs) of the filter P(longhaul.fleet.backup_logic#filter) returns it.
    type: dict
    required: true
  part:
    description:
      - V(begin) claims the backup and begins the snapshot. V(fill) transfers. V(complete) finishes the snapshot, prunes
        and checks as far as nothing failed, and always writes the record.
    type: str
    choices: [begin, fill, complete]
    required: true
  progress:
    description: RV(progress) of the part before. Empty for V(begin).
    type: dict
    default: {}
  makes_source:
    description: Whether a hook before may make what is backed up, which it does not in check mode.
    type: bool
    default: false
  folder:
    description: Where the claims and the records are on the control node.
    type: path
    required: true
seealso:
  - module: longhaul.fleet.snapshot
  - module: longhaul.fleet.transfer
"""

EXAMPLES = r"""
# Used by the role backup only.
- name: Begin
  longhaul.fleet.backup_part:
    run: "{{ run }}"
    part: begin
    folder: /srv/longhaul-backup
"""

RETURN = r"""
progress:
  description: How far the backup is, and what happened so far.
  returned: success
  type: dict
steps:
  description: The steps that are left, hooks included.
  returned: success
  type: list
  elements: str
  sample: [hooks_before, transfer]
record:
  description: The record of the backup. Empty before V(complete).
  returned: success
  type: dict
"""
