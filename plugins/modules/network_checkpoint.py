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
  - Keeps files and the state of network links on the host, and starts a timer B(on the host) that brings them back by itself
    unless the checkpoint is confirmed in time. So a mistake that cuts the host off, or the death of the control node, undoes
    itself.
  - The timer is a transient unit of systemd where systemd runs, else a process of its own. It needs neither Ansible nor the
    connection.
  - A host that is restarted before the checkpoint was confirmed reverts at boot, before its network is started where systemd
    runs, and after it where only cron does. RV(survives_reboot) says which. Where neither is there, a boot is not survived.
  - The way back restores the files (content, mode, owner, times, extended attributes; files that were not there are removed),
    removes the links that the change made, runs the commands that make the network's manager take up the old files, and
    then compares the links with what they were, MTU, addresses, bond or bridge, up or down, and routes of the main table, and
    corrects what still differs.
  - On FreeBSD routes are left to its manager, and the module was not run there.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.change
attributes:
  idempotent:
    details:
      - A checkpoint that is armed in the same way already is left alone, with the state that it saved and the time it has left.
options:
  state:
    description:
      - V(armed) saves the present state and starts the timer.
      - V(confirmed) keeps what was changed since then. It fails where the checkpoint has reverted in the meantime.
      - V(reverted) brings the saved state back at once. Nothing happens where no checkpoint is armed.
      - V(query) only looks.
    type: str
    choices: [armed, confirmed, reverted, query]
    default: query
  name:
    description:
      - Which checkpoint. A host can have one of each name, and no two that keep the same path.
    type: str
    default: network
  paths:
    description:
      - The files and folders that are kept. Name those, too, that will be made by the change, so that they are removed again.
    type: list
    elements: path
    default: []
  links:
    description:
      - The links whose state is kept. Without them, all links of the host.
    type: list
    elements: str
  made:
    description:
      - The links that the change will make. The way back removes those of them that were not there before.
    type: list
    elements: str
    default: []
  managers:
    description:
      - The programs that manage the network, which need to take up the old files again. They choose the commands.
    type: list
    elements: str
    choices: [netplan, networkd, networkmanager, ifupdown, ifcfg, freebsd]
    default: []
  commands:
    description:
      - The commands that make the old files count again, each a list of a program and its arguments. They take the place of those
        that O(managers) chooses. One that fails stops nothing.
    type: list
    elements: list
  timeout:
    description:
      - Seconds after which the host reverts by itself.
    type: int
    default: 180
seealso:
  - name: Network tuning
    description: The guide to MTU, bonds and the automatic rollback.
    link: https://github.com/longhaul-fleet/longhaul.fleet/blob/main/docs/network-tuning.md
"""

EXAMPLES = r"""
- name: Arm the way back
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

- name: Forget the old connection
  ansible.builtin.meta: reset_connection

- name: See that the host is still reached
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
  description: Seconds until it reverts by itself.
  returned: success
  type: float
timer:
  description: The timer on the host, with its C(kind) (C(systemd) or C(process)), and whether it is C(alive). V(null) without one.
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
    - How the last checkpoint of this name ended, with C(outcome) (C(confirmed) or C(reverted)), C(by) (C(request), C(timer) or
      C(boot)), C(at) in seconds since 1970, and C(errors). Empty where there was none.
  returned: success
  type: dict
all_armed:
  description: The names of all checkpoints that are armed on the host.
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
    try:
        checkpoint = Checkpoint(module.params["name"])
        before = "armed" if checkpoint.request else "none"
        changed = False
        if state == "armed":
            changed = arming.arm(checkpoint, module.params, check)
        elif state == "confirmed":
            changed = arming.confirm(checkpoint, check)
        elif state == "reverted":
            changed = arming.revert(checkpoint, check)
    except (CheckpointError, OSError, ValueError, RuntimeError) as error:
        module.fail_json(msg=f"network_checkpoint: {error}")
    after = _AFTER.get(state, before)
    diff = {"before": f"checkpoint: {before}\n", "after": f"checkpoint: {after}\n"}
    module.exit_json(changed=changed, diff=diff, **arming.describe(checkpoint))


if __name__ == "__main__":
    main()
