#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: network_checkpoint
short_description: Arm, confirm or revert an automatic rollback around a risky network change
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Saves files and the state of network links on the host, and starts a timer B(on the host) that restores them unless
    the checkpoint is confirmed in time. So a mistake that cuts off the host, or the loss of the control node, is
    reverted automatically.
  - The timer is a transient unit of systemd if systemd runs, else a separate process. It needs neither Ansible nor the
    connection.
  - A host that is restarted before the checkpoint was confirmed reverts at boot, with systemd before its network is
    started, and with only cron afterwards. RV(survives_reboot) says which. Without both, it does not revert after a
    restart.
  - Reverting restores the files (content, mode, owner, times, extended attributes; files that did not exist are
    removed), removes the links that the change created, and runs the commands that make the network's manager read the
    old files. It then compares the links with their saved state, that is MTU, addresses, bond or bridge, up or down,
    and routes of the main table, and corrects remaining differences.
  - On FreeBSD routes are left to its manager, and the module was not tested there.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.change
attributes:
  idempotent:
    details:
      - A checkpoint that is already armed in the same way is left alone, with its saved state and its remaining time.
options:
  state:
    description:
      - V(armed) saves the current state and starts the timer.
      - V(confirmed) keeps the changes since then. It fails if the checkpoint has reverted in the meantime.
      - V(reverted) restores the saved state at once. If no checkpoint is armed, nothing happens.
      - V(query) only returns the state of the checkpoint.
    type: str
    choices: [armed, confirmed, reverted, query]
    default: query
  name:
    description:
      - Name of the checkpoint. A host can have several, but no two of them may save the same path.
    type: str
    default: network
  paths:
    description:
      - Files and folders to save. Include those that the change will create, so that they are removed again.
    type: list
    elements: path
    default: []
  links:
    description:
      - Links whose state is saved. By default all links of the host.
    type: list
    elements: str
  made:
    description:
      - Links that the change will create. Reverting removes those that did not exist before.
    type: list
    elements: str
    default: []
  managers:
    description:
      - Programs that manage the network, and must read the old files again. They determine the commands.
    type: list
    elements: str
    choices: [netplan, networkd, networkmanager, ifupdown, ifcfg, freebsd]
    default: []
  commands:
    description:
      - Commands that activate the old files, each a list of a program and its arguments. They replace those of
        O(managers). If one fails, the others still run.
    type: list
    elements: list
  timeout:
    description:
      - Seconds after which the host reverts automatically.
    type: int
    default: 180
seealso:
  - name: Network tuning
    description: The guide to MTU, bonds and the automatic rollback.
    link: https://github.com/longhaul-fleet/longhaul.fleet/blob/main/docs/network-tuning.md
"""

EXAMPLES = r"""
- name: Arm the rollback
  longhaul.fleet.network_checkpoint:
    state: armed
    paths: [/etc/netplan]
    managers: [netplan]
    timeout: 120

- name: Change the network
  ansible.builtin.copy:
    src: 60-storage.yaml
    dest: /etc/netplan/60-storage.yaml
    mode: "0600"

- name: Apply the change
  ansible.builtin.command: netplan apply
  changed_when: true

- name: Close the old connection
  ansible.builtin.meta: reset_connection

- name: Check that the host can still be reached
  ansible.builtin.wait_for_connection:
    timeout: 60

- name: Keep the change
  longhaul.fleet.network_checkpoint:
    state: confirmed
"""

RETURN = r"""
armed:
  description: Whether a checkpoint of this name is armed now.
  returned: success
  type: bool
seconds_left:
  description: Seconds until it reverts automatically.
  returned: success
  type: float
timer:
  description: Timer on the host, with its C(kind) (C(systemd) or C(process)), and whether it is C(alive). V(null) if
    there is none.
  returned: success
  type: dict
survives_reboot:
  description:
    - How a boot before the confirmation reverts. V(systemd) means before the network is started, V(cron) after it, V(no) not at
      all.
  returned: success
  type: str
  sample: systemd
last:
  description:
    - How the last checkpoint of this name ended, with C(outcome) (C(confirmed) or C(reverted)), C(by) (C(request),
      C(timer) or C(boot)), C(at) in seconds since 1970, and C(errors). Empty if there was none.
  returned: success
  type: dict
all_armed:
  description: Names of all checkpoints that are armed on the host.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._network import arming
from ansible_collections.longhaul.fleet.plugins.module_utils._network.checkpoint import Checkpoint, CheckpointError

_AFTER = {"armed": "armed", "confirmed": "none", "reverted": "none"}


def main() -> None:
    """Bring the checkpoint to the state that is wanted, or look at it."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["armed", "confirmed", "reverted", "query"], "default": "query"},
            "name": {"type": "str", "default": "network"},
            "paths": {"type": "list", "elements": "path", "default": []},
            "links": {"type": "list", "elements": "str"},
            "made": {"type": "list", "elements": "str", "default": []},
            "managers": {
                "type": "list",
                "elements": "str",
                "choices": ["netplan", "networkd", "networkmanager", "ifupdown", "ifcfg", "freebsd"],
                "default": [],
            },
            "commands": {"type": "list", "elements": "list"},
            "timeout": {"type": "int", "default": 180},
        },
        supports_check_mode=True,
    )
    state, check = module.params["state"], module.check_mode
    if module.params["timeout"] < 1:
        module.fail_json(msg=f"timeout is {module.params['timeout']}; it must be at least one second")
    options = arming.Arming(**{name: module.params[name] for name in arming.Arming._fields})
    try:
        checkpoint = Checkpoint(module.params["name"])
        before = "armed" if checkpoint.request else "none"
        changed = False
        if state == "armed":
            changed = arming.arm(checkpoint, options, check)
        elif state == "confirmed":
            changed = arming.confirm(checkpoint, check)
        elif state == "reverted":
            changed = arming.revert(checkpoint, check)
    except (CheckpointError, OSError, ValueError, RuntimeError) as error:
        module.fail_json(msg=f"network_checkpoint: {error}")
    after = _AFTER.get(state, before)
    diff = {"before": f"checkpoint: {before}\n", "after": f"checkpoint: {after}\n"}
    known = arming.describe(checkpoint)
    last = known.last._asdict() if known.last else {}
    module.exit_json(changed=changed, diff=diff, **{**known._asdict(), "last": last})


if __name__ == "__main__":
    main()
