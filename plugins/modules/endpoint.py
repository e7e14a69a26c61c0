#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: endpoint
short_description: Do one host's part of a transfer or comparison
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - The action plugins M(longhaul.fleet.transfer) and M(longhaul.fleet.verify) run this module on both of their hosts.
  - It is not meant to be used in tasks. Its options may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.change
attributes:
  check_mode:
    details:
      - What a step does is decided by the action plugin, which knows the check mode.
  diff_mode:
    support: none
options:
  steps:
    description:
      - What to do, one after the other. The first step that fails ends the module.
    type: list
    elements: dict
    required: true
  engine:
    description:
      - The code that does the steps, as a zip archive in base64. Jobs are started from it as well.
      - It is no module_utils of this module, since Ansible would parse all of its files in each playbook.
    type: str
    required: true
  secrets:
    description:
      - What the steps need and nobody may see. It goes to the jobs through pipes.
    type: dict
    default: {}
seealso:
  - module: longhaul.fleet.transfer
  - module: longhaul.fleet.verify
"""

EXAMPLES = r"""
# Used by action plugins only.
- name: Ask what this host has
  longhaul.fleet.endpoint:
    engine: "{{ packed_by_the_action_plugin }}"
    steps:
      - do: probe
        id: "0123456789abcdef"
        side: source
        path: /srv/data
"""

RETURN = r"""
results:
  description: What each step gave.
  returned: success
  type: list
  elements: dict
"""

import base64
import importlib
import os
import sys

from ansible.module_utils.basic import AnsibleModule


def main():
    module = AnsibleModule(
        argument_spec={
            "steps": {"type": "list", "elements": "dict", "required": True},
            "engine": {"type": "str", "required": True, "no_log": True},  # no secret, but nothing to read either
            "secrets": {"type": "dict", "default": {}, "no_log": True},
        },
        supports_check_mode=True,
    )
    archive = os.path.join(module.tmpdir, "engine.pyz")
    with open(archive, "wb") as file:
        file.write(base64.b64decode(module.params["engine"]))
    sys.path.insert(0, archive)
    steps = importlib.import_module("longhaul._job.steps")
    try:
        results = steps.run_steps(module.params["steps"], steps.Given(module.params["secrets"], archive))
    except steps.StateError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, results=results)


if __name__ == "__main__":
    main()
