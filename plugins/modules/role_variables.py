#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: role_variables
short_description: "Internal: read the variables of a role once, unless facts have set them"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Returns variables as one value to register, over which facts do not win. Fails if facts of the host of the play have
    set variables of the role, C(longhaul_*), or options of Ansible's plugins.
  - Part of the roles. Its options may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.control_node
  - longhaul.fleet._attributes.change
attributes:
  check_mode:
    details:
      - It does the same in check mode.
options:
  roles:
    description: The roles whose variables facts must not set.
    type: list
    elements: str
    required: true
  variables:
    description: The variables, by the names under which tasks read them.
    type: dict
    default: {}
  hosts:
    description: Hosts of a play that one of them speaks for.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
# Used by the roles only.
- longhaul.fleet.role_variables:
    roles: [nic]
"""

RETURN = r"""
variables:
  description: Those that were given. Empty if they are refused.
  returned: success
  type: dict
refused:
  description: Why they are refused. With C(no_log) the task does not fail, since nobody could read why.
  returned: success
  type: str
hosts:
  description: The hosts that were given. Those whose facts have set such variables are the last.
  returned: success
  type: list
  elements: str
"""
