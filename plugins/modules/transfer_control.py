#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: transfer_control
short_description: Stop a transfer that runs on a host
version_added: 0.1.1
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Stops a transfer of M(longhaul.fleet.transfer), which otherwise goes on although Ansible was interrupted.
  - What has arrived stays at the destination, partial files included, so that the task of the transfer resumes when it is run
    again.
  - Run it on both hosts of the transfer. Where it runs only on the host that was connected to (RV(transfers[].part=serve)), the
    other one gives up within seconds. Where it runs only on the host that connects (RV(transfers[].part=drive)), the other one
    waits as long as O(longhaul.fleet.transfer#module:timeout) of the transfer says, two minutes at least, before it ends.
  - A task that waits for the transfer fails, and says that the transfer was told to stop.
  - A user stops the own transfers. For those that run as root, C(become) must be as it was for the transfer.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.change
attributes:
  diff_mode:
    support: none
options:
  id:
    description:
      - The name of the transfer. It is RV(longhaul.fleet.transfer#module:transfer_id) of the transfer, and
        M(longhaul.fleet.transfer_info) lists it.
      - A name that this host has no transfer of is an error, which lists the transfers that it has.
    type: str
    required: true
    aliases: [transfer_id]
  state:
    description:
      - With V(cancelled) the transfer does not run on this host any more.
      - A transfer that has ended already is left as it is, and nothing is changed.
    type: str
    choices: [cancelled]
    required: true
seealso:
  - module: longhaul.fleet.transfer
  - module: longhaul.fleet.transfer_info
  - name: Stop a transfer
    description: How to attach to a transfer, how to stop one, and what stays on the hosts.
    link: https://github.com/longhaul-fleet/longhaul.fleet/tree/main/docs/stop-a-transfer.md
"""

EXAMPLES = r"""
# Both hosts of the transfer at once: hosts: [old.example.com, new.example.com]
- name: Stop a transfer
  longhaul.fleet.transfer_control:
    id: 5f3c0d2a9b17e846
    state: cancelled

- name: See what runs on a host
  longhaul.fleet.transfer_info:
  register: running

- name: Stop all of it
  longhaul.fleet.transfer_control:
    id: "{{ item }}"
    state: cancelled
  loop: "{{ running.transfers | map(attribute='id') | unique }}"
"""

RETURN = r"""
transfers:
  description:
    - What this host has of the transfer, one element, or two where it is source and destination at once.
    - In check mode it is what there was before.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: The name of the transfer.
      type: str
      sample: 5f3c0d2a9b17e846
    side:
      description: Whether this host is the V(source) or the V(dest) of the transfer.
      type: str
      sample: dest
    part:
      description: Whether this host opened the connection (V(drive)) or was connected to (V(serve)).
      type: str
      sample: serve
    peer:
      description: The inventory host at the other end.
      type: str
      sample: old.example.com
    root:
      description: The root of the tree on this host.
      type: str
      sample: /srv/data
    state:
      description: How the transfer stands on this host now, as with M(longhaul.fleet.transfer_info).
      type: str
      sample: failed
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._job.launcher import stop
from ansible_collections.longhaul.fleet.plugins.module_utils._job.state import JobFolder, list_jobs

_RUNS = ("starting", "running", "serving")
_SHOWN = ("id", "side", "part", "peer", "root", "state")


def unknown(identity: str, jobs: list[dict[str, Any]]) -> str:
    """Say that this host has no such transfer, and which ones it has."""
    listed = "; ".join(
        f"{job['id']} ({job['root']}, {job['side']}, with {job['peer'] or 'an unknown host'}, {job['state']})"
        for job in jobs
    )
    have = f"It has: {listed}" if listed else "It has none at all"
    return (
        f"this user has no transfer {identity} on this host. {have}. Correct id, or use the become of the transfer; "
        "one whose result was collected has ended, and left nothing to stop"
    )


def main() -> None:
    """Stop this host's part of the transfer."""
    module = AnsibleModule(
        argument_spec={
            "id": {"type": "str", "required": True, "aliases": ["transfer_id"]},
            "state": {"type": "str", "choices": ["cancelled"], "required": True},
        },
        supports_check_mode=True,
    )
    identity, jobs = module.params["id"], list_jobs()
    known = [job for job in jobs if job["id"] == identity]
    if not known:
        module.fail_json(msg=unknown(identity, jobs))
    running = [job for job in known if job["state"] in _RUNS]
    if not module.check_mode:
        for job in running:
            folder = JobFolder(identity, job["side"])
            stop(folder, succeeded=False)
            if folder.is_running():
                module.fail_json(
                    msg=f"process {job['pid']} of transfer {identity} does not end, although it was killed: a disk or "
                    "a network file system that it waits for does not answer. Look at dmesg on this host"
                )
        left = {job["side"]: job for job in list_jobs() if job["id"] == identity}
        known = [left.get(job["side"], {**job, "state": "failed"}) for job in known]
    module.exit_json(changed=bool(running), transfers=[{name: job[name] for name in _SHOWN} for job in known])


if __name__ == "__main__":
    main()
