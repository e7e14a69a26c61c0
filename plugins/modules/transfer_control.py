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
  - Stops a transfer of M(longhaul.fleet.transfer), which otherwise continues even if Ansible was interrupted.
  - Received data stays at the destination, including partial files, so that the task of the transfer resumes when it is
    run again.
  - Run it on both hosts of the transfer. If you run it only on the listening host (RV(transfers[].part=serve)), the
    other one ends within seconds. If you run it only on the connecting host (RV(transfers[].part=drive)), the other one
    ends after O(longhaul.fleet.transfer#module:timeout) of the transfer, but after at least two minutes.
  - A task that waits for the transfer fails, and says that the transfer was told to stop.
  - Users can stop only their own transfers. For transfers that run as root, use the same C(become) as for the transfer.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.change
attributes:
  diff_mode:
    support: none
options:
  id:
    description:
      - Id of the transfer. It is RV(longhaul.fleet.transfer#module:transfer_id) of the transfer, and
        M(longhaul.fleet.transfer_info) lists it.
      - If this host has no such transfer, the module fails and lists its transfers.
    type: str
    required: true
    aliases: [transfer_id]
  state:
    description:
      - V(cancelled) stops the transfer on this host.
      - A transfer that has ended already is left alone, and nothing is changed.
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

- name: List the transfers of a host
  longhaul.fleet.transfer_info:
  register: running

- name: Stop all of them
  longhaul.fleet.transfer_control:
    id: "{{ item }}"
    state: cancelled
  loop: "{{ running.transfers | map(attribute='id') | unique }}"
"""

RETURN = r"""
transfers:
  description:
    - The transfer on this host, one element, or two if the host is both source and destination.
    - In check mode the state before.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Id of the transfer.
      type: str
      sample: 5f3c0d2a9b17e846
    side:
      description: Whether this host is the V(source) or the V(dest) of the transfer.
      type: str
      sample: dest
    part:
      description: Whether this host opened the connection (V(drive)) or listened (V(serve)).
      type: str
      sample: serve
    peer:
      description: Inventory host of the peer.
      type: str
      sample: old.example.com
    root:
      description: The root of the tree on this host.
      type: str
      sample: /srv/data
    state:
      description: State of the transfer on this host now, as in M(longhaul.fleet.transfer_info).
      type: str
      sample: failed
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._job.launcher import stop
from ansible_collections.longhaul.fleet.plugins.module_utils._job.state import JobFolder, JobInfo, list_jobs

_RUNS = ("starting", "running", "serving")
_SHOWN = ("id", "side", "part", "peer", "root", "state")


def unknown(identity: str, jobs: list[JobInfo]) -> str:
    """Return a message that this host has no such transfer, with those that it has."""
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
    shown = [{name: value for name, value in job.items() if name in _SHOWN} for job in known]
    module.exit_json(changed=bool(running), transfers=shown)


if __name__ == "__main__":
    main()
