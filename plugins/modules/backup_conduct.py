#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: backup_conduct
short_description: "Internal: make all backups whose hooks are no files of tasks"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Checks a list of jobs, makes the backups from one task, many at once, with their hooks, and returns those whose hooks
    are files of tasks. A backup whose transfer runs needs no process on the control node.
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
  jobs:
    description: The jobs, as in the variable C(backup_jobs) of the role.
    type: list
    elements: raw
    required: true
  defaults:
    description: Options for all jobs. A job's own options take precedence.
    type: dict
    default: {}
  only:
    description: The names of jobs, of hosts, or C(host/job), that run alone. Empty for all.
    type: list
    elements: str
    default: []
  repository_host:
    description: The host to whose repositories the backups go, one after the other. Empty for all hosts.
    type: str
    default: ""
  direction:
    description: Who connects where a job does not say.
    type: str
    choices: [pull, push]
    default: pull
  concurrency:
    description: How many backups one repository host receives at once.
    type: int
    default: 2
  bwlimit:
    description: The most bytes a second that one repository host receives, such as V(100M). V(0) means no limit.
    type: str
    default: "0"
  before:
    description: Hooks of all jobs. Where there are any, all backups have hooks.
    type: list
    elements: dict
    default: []
  after:
    description: Likewise, after the transfer.
    type: list
    elements: dict
    default: []
  limits:
    description: How many backups run at once, as in the variable C(fleet_limits).
    type: dict
    default: {}
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
- name: Make the backups
  longhaul.fleet.backup_conduct:
    jobs: "{{ backup_jobs }}"
    folder: /srv/longhaul-backup
"""

RETURN = r"""
jobs:
  description: The record of each backup that was made.
  returned: success
  type: list
  elements: dict
wanted:
  description: The ids (C(host/job)) of all backups that were asked for.
  returned: success
  type: list
  elements: str
  sample: [web1/data]
hooked:
  description: The ids of those that have hooks, and were not made.
  returned: success
  type: list
  elements: str
  sample: []
lanes:
  description: The same, as they may go side by side.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The name of the lane.
      type: str
    runs:
      description: The ids of the backups that go one after the other.
      type: list
      elements: str
"""
