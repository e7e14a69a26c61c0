#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: run_hook
short_description: "Internal: run a command of the user's on a host of a job"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Runs a command on any inventory host, through that host's own connection, and with the C(become), C(environment) and
    C(no_log) of its task. The host is not trusted, so facts, statistics and warnings in its answer are dropped, unlike
    those of a task with C(delegate_to).
  - The command is run once. If the connection is lost, the task fails, since the command may have begun.
  - Part of the roles P(longhaul.fleet.migrate#role) and P(longhaul.fleet.backup#role). Its options may change in any
    release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.change
attributes:
  check_mode:
    details:
      - The command is not run in check mode.
  diff_mode:
    support: none
  idempotent:
    support: none
options:
  host:
    description: The inventory host on which the command runs.
    type: str
    required: true
  command:
    description: >-
      A program and its arguments. No shell is used. Without it and without O(module), the task checks the connection to
      the host.
    type: list
    elements: str
    default: []
  module:
    description: A module that runs in place of a command.
    type: str
  args:
    description: The options of the module.
    type: dict
    default: {}
  timeout:
    description: After so many seconds the task fails. The command itself may go on. By default there is no limit.
    type: float
"""

EXAMPLES = r"""
# Used by the roles migrate and backup only.
- name: Run the command of a hook
  longhaul.fleet.run_hook:
    host: old.example.com
    command: [/usr/bin/systemctl, stop, app]
    timeout: 60
"""

RETURN = r"""
cmd:
  description: The command.
  returned: if there is one
  type: list
  elements: str
rc:
  description: What the command returned.
  returned: if its host gave an answer
  type: int
stdout:
  description: What the command printed.
  returned: always
  type: str
stderr:
  description: What the command printed as errors.
  returned: always
  type: str
"""
