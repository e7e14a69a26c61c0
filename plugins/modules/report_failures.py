#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: report_failures
short_description: "Internal: show all failures of a run together"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Shows each failure of a run once, with its reason and what to do, and fails if there are any.
  - Part of the roles P(longhaul.fleet.migrate#role) and P(longhaul.fleet.backup#role). Its options may change in any
    release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.control_node
  - longhaul.fleet._attributes.change
attributes:
  check_mode:
    details:
      - It shows the same in check mode.
  diff_mode:
    support: none
options:
  failures:
    description: What failed. Each has C(name), C(what) became of it, the C(reason), and what to do C(next).
    type: list
    elements: dict
    default: []
  total:
    description: How many jobs the run had.
    type: int
    default: 0
  report:
    description: The path of the report. Empty if there is none.
    type: path
    default: ""
"""

EXAMPLES = r"""
# Used by the roles migrate and backup only.
- name: Report failures
  longhaul.fleet.report_failures:
    failures: "{{ __migrate_run.failures }}"
"""

RETURN = r""" # """
