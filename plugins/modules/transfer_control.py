#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: transfer_control
short_description: Pause, slow, resume or stop transfers that run on a host
version_added: 0.1.1
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Controls transfers of M(longhaul.fleet.transfer) while they run, whatever their method and whichever host connects. It
    takes effect within two seconds, and the module returns when it is in force.
  - It is enough to run it on one of the two hosts of a transfer, but for O(state=cancelled). What two hosts are told adds
    up, so either can pause the transfer, and the lower limit counts. To resume a transfer, run it on the same hosts again.
  - A pause stops the contents of files. The connections stay open, and each host notices if the other one is lost. A
    pause that lasts longer than the O(longhaul.fleet.transfer#module:timeout) of the transfer ends it. It is V(paused)
    then (RV(transfers[].state)), and its task resumes it when it is run again.
  - A task that waits for a paused transfer says so, and goes on waiting. It fails if the transfer ends.
  - What is told to a transfer ends with it. The next run of its task begins with the options of the task.
  - Users can control only their own transfers. For transfers that run as root, use the same C(become) as for the transfer.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.change
options:
  id:
    description:
      - Ids of the transfers. An id is RV(longhaul.fleet.transfer#module:transfer_id) of the transfer, and
        M(longhaul.fleet.transfer_info) lists it.
      - If this host does not have such a transfer, the module fails, lists the transfers of the host, and changes
        nothing.
      - Exactly one of O(id) and O(all) is required.
    type: list
    elements: str
    aliases: [transfer_id]
  all:
    description:
      - Control all transfers of this host that this user may control. It is no error if none runs.
    type: bool
    default: false
  state:
    description:
      - V(paused) lets a transfer wait until it is told to run again.
      - V(running) lets it run again.
      - V(cancelled) stops it on this host. The partial files stay at the destination, so that its task resumes it when it
        is run again. With V(stream), V(tar_nc), V(scp) and V(sftp) the other host stops too. With V(rsync) and V(rsyncd)
        it ends within seconds if you run this on the listening host (RV(transfers[].part=serve)), else after
        O(longhaul.fleet.transfer#module:timeout) of the transfer, but after at least two minutes. To stop both at once,
        run it on both hosts.
      - If not specified, it stays as it is.
      - A transfer that has ended already is left alone.
    type: str
    choices: [running, paused, cancelled]
  bwlimit:
    description:
      - Maximum rate in bytes per second, over all connections of the transfer together, in place of
        O(longhaul.fleet.transfer#module:bwlimit) of the transfer. V(0) means no limit.
      - Units are V(K), V(M), V(G) and V(T), powers of 1024, for example V(50M).
      - If not specified, it stays as it is.
    type: str
notes:
  - With O(longhaul.fleet.transfer#module:rsyncd_module) a transfer uses a daemon that serves others too. Then run the
    module on the host that connects.
  - With methods other than V(stream) and V(tar_nc), a limit needs Linux on the host.
seealso:
  - module: longhaul.fleet.transfer
  - module: longhaul.fleet.transfer_info
  - name: Pause, slow or stop a transfer
    description: How to attach to a transfer, to pause, slow or stop one, and what stays on the hosts.
    link: https://github.com/longhaul-fleet/longhaul.fleet/tree/main/docs/stop-a-transfer.md
"""

EXAMPLES = r"""
- name: Pause a transfer
  longhaul.fleet.transfer_control:
    id: 5f3c0d2a9b17e846
    state: paused

- name: Resume it, at 20 MiB per second at most
  longhaul.fleet.transfer_control:
    id: 5f3c0d2a9b17e846
    state: running
    bwlimit: 20M

- name: Let all transfers of this host share the line with office hours
  longhaul.fleet.transfer_control:
    all: true
    bwlimit: 2M

# Both hosts of the transfer at once: hosts: [old.example.com, new.example.com]
- name: Stop a transfer
  longhaul.fleet.transfer_control:
    id: 5f3c0d2a9b17e846
    state: cancelled
"""

RETURN = r"""
transfers:
  description:
    - The transfers on this host. If it is both source and destination of one, that has two elements.
    - In check mode, O(state) and O(bwlimit) are predicted, and the rest is as it was.
  returned: always, but for wrong options
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
      sample: running
    paused:
      description: Whether it is paused, by what either host was told.
      type: bool
      sample: true
    bwlimit:
      description: Maximum rate in force, in bytes per second. V(0) means no limit.
      type: int
      sample: 20971520
"""

from typing import Sequence

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._job.control_client import (
    ControlResult,
    parse_wish,
    select,
    tell,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._job.state import JobInfo, list_jobs

_SHOWN = ("id", "side", "part", "peer", "root", "state", "paused", "bwlimit")


def unknown(identities: Sequence[str], jobs: Sequence[JobInfo]) -> str:
    """Return a message that this host has no such transfers, with those that it has."""
    listed = "; ".join(
        f"{job['id']} ({job['root']}, {job['side']}, with {job['peer'] or 'an unknown host'}, {job['state']})"
        for job in jobs
    )
    have = f"It has: {listed}" if listed else "It has none at all"
    return (
        f"this user has no transfer {', '.join(identities)} on this host. {have}. Correct id, or use the become of the "
        "transfer; one whose result was collected has ended, and left nothing to control"
    )


def shown(job: JobInfo) -> dict[str, object]:
    """Return what the result says of a transfer."""
    return {name: value for name, value in job.items() if name in _SHOWN}


def difference(told: Sequence[ControlResult]) -> dict[str, dict[str, object]]:
    """Return what diff mode shows."""

    def of(jobs: Sequence[JobInfo]) -> dict[str, object]:
        return {
            f"{job['id']} ({job['side']})": {name: job.get(name) for name in ("state", "paused", "bwlimit")}
            for job in jobs
        }

    changed = [one for one in told if one.changed]
    return {"before": of([one.before for one in changed]), "after": of([one.after for one in changed])}


def main() -> None:
    """Tell this host's transfers."""
    module = AnsibleModule(
        argument_spec={
            "id": {"type": "list", "elements": "str", "aliases": ["transfer_id"]},
            "all": {"type": "bool", "default": False},
            "state": {"type": "str", "choices": ["running", "paused", "cancelled"]},
            "bwlimit": {"type": "str"},
        },
        required_one_of=[["state", "bwlimit"]],
        supports_check_mode=True,
    )
    identities = module.params["id"]
    if bool(identities) == module.params["all"]:
        module.fail_json(msg="name the transfers with id, or set all: true for all transfers of this host, not both")
    try:
        wish = parse_wish(module.params["state"], module.params["bwlimit"])
    except ValueError as error:
        module.fail_json(msg=f"bwlimit: {error}")
    jobs = list_jobs()
    chosen, missing = select(jobs, None if module.params["all"] else identities)
    if missing:
        module.fail_json(msg=unknown(missing, jobs))
    told = tell(chosen, wish, module.check_mode)
    result = {
        "changed": any(one.changed for one in told),
        "transfers": [shown(one.after) for one in told],
        "diff": difference(told),
    }
    problems = list(dict.fromkeys(one.problem for one in told if one.problem))
    if problems:
        others = " The others were told." if len(problems) < len(told) else ""
        module.fail_json(msg="; ".join(problems) + "." + others, **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
