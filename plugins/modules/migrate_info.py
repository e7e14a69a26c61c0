#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: migrate_info
short_description: "Internal: report what one side of a migration has"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Says what a host has to say before a migration, such as its room, file system and tools, and the way to its peer.
  - Part of the role P(longhaul.fleet.migrate#role). Its options and what it returns may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.info
options:
  side:
    description: Which end the host is.
    type: str
    choices: [source, dest]
    required: true
  path:
    description: The absolute path of the tree there.
    type: str
    required: true
  peer:
    description: The address of the other host. Without it no connection is tried.
    type: str
    default: ""
  port:
    description: The port that is tried there.
    type: int
    default: 22
  transfer_id:
    description: The id of the job's transfer, whose record and lease are looked for. Without it none are.
    type: str
    default: ""
seealso:
  - module: longhaul.fleet.transfer
"""

EXAMPLES = r"""
- name: Ask the new host what it has
  longhaul.fleet.migrate_info:
    side: dest
    path: /srv/data
    peer: 192.0.2.11
"""

RETURN = r"""
found:
  description:
    - What was found, with C(problems) and C(warnings), which are sentences, and C(record), what the control node that drove
      the job kept here, and C(lease), which control node works on it.
  returned: success
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._job.leases import look_at_lease
from ansible_collections.longhaul.fleet.plugins.module_utils._job.records import find_record
from ansible_collections.longhaul.fleet.plugins.module_utils._migrate.preflight import discover


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "side": {"type": "str", "choices": ["source", "dest"], "required": True},
            "path": {"type": "str", "required": True},
            "peer": {"type": "str", "default": ""},
            "port": {"type": "int", "default": 22},
            "transfer_id": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    identity = module.params.pop("transfer_id")
    found = discover(**module.params)
    kept = {"record": find_record(identity), "lease": look_at_lease(identity)} if identity else {"record": None}
    module.exit_json(changed=False, found={**found, **kept})


if __name__ == "__main__":
    main()
