#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nic_apply
short_description: "Internal: run the commands of a network change apart from the connection"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Runs commands on the host one after the other, in a process that lives on when the connection breaks, and says later how they ended.
    It needs an armed checkpoint of M(longhaul.fleet.network_checkpoint), which ends them when it reverts.
  - Part of the role P(longhaul.fleet.nic#role). Its options and what it returns may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
attributes:
  check_mode:
    support: full
    details:
      - Nothing is started.
  diff_mode:
    support: none
  idempotent:
    support: none
    details:
      - Every call with O(state=started) runs the commands.
options:
  name:
    description: The name of the checkpoint.
    type: str
    default: network
  state:
    description: V(started) starts the commands and returns at once. V(finished) waits until they have ended.
    type: str
    choices: [started, finished]
    required: true
  commands:
    description: The commands, each a list of a program and its arguments. The first that fails ends them.
    type: list
    elements: list
    default: []
  delay:
    description: Seconds before the first command, in which the answer of this task gets away.
    type: float
    default: 1.0
  timeout:
    description: How many seconds O(state=finished) waits.
    type: int
    default: 120
seealso:
  - module: longhaul.fleet.network_checkpoint
"""

EXAMPLES = r"""
- name: Start applying
  longhaul.fleet.nic_apply:
    state: started
    commands:
      - [netplan, apply]

- name: Wait for the end
  longhaul.fleet.nic_apply:
    state: finished
"""

RETURN = r"""
results:
  description: The commands that ran, each with C(argv), C(code), C(said) and C(seconds).
  returned: success
  type: list
  elements: dict
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._network.checkpoint import Checkpoint, CheckpointError
from ansible_collections.longhaul.fleet.plugins.module_utils._network.request import Application
from ansible_collections.longhaul.fleet.plugins.module_utils._network.timer import start_service


def _finish(module: AnsibleModule, checkpoint: Checkpoint) -> list[dict[str, object]]:
    """Wait for the end of the commands, and fail where one of them failed."""
    deadline = time.monotonic() + module.params["timeout"]
    while True:
        checkpoint.require()
        job = checkpoint.applied
        results = [one._asdict() for one in job.results]
        failed = [one for one in job.results if one.code]
        if failed:
            one = failed[0]
            module.fail_json(
                msg=f"{' '.join(one.argv)} ended with {one.code}: {one.said or 'it said nothing'}", results=results
            )
        if job.finished:
            return results
        if time.monotonic() > deadline:
            module.fail_json(
                msg=f"the commands did not end within {module.params['timeout']} s; see {checkpoint.log}",
                results=results,
            )
        time.sleep(0.1)


def main() -> None:
    """Start the commands, or wait for their end."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "default": "network"},
            "state": {"type": "str", "choices": ["started", "finished"], "required": True},
            "commands": {"type": "list", "elements": "list", "default": []},
            "delay": {"type": "float", "default": 1.0},
            "timeout": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    if module.check_mode:
        module.exit_json(changed=module.params["state"] == "started", results=[])
    try:
        checkpoint = Checkpoint(module.params["name"])
        request = checkpoint.require()
        if module.params["state"] == "finished":
            module.exit_json(changed=False, results=_finish(module, checkpoint))
        commands = [[str(word) for word in argv] for argv in module.params["commands"]]
        checkpoint.write_applied(Application(commands))
        start_service(checkpoint, "apply", ["apply", request.token, str(module.params["delay"])])
    except (CheckpointError, OSError) as error:
        module.fail_json(msg=f"nic_apply: {error}")
    module.exit_json(changed=True, results=[])


if __name__ == "__main__":
    main()
