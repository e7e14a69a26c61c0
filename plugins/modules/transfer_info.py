#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: transfer_info
short_description: Show the transfers that a host takes part in
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Lists the transfers of M(longhaul.fleet.transfer) that the host takes part in, as source or as destination, with
    their progress.
  - Lists running transfers, and those whose result was not collected yet. A transfer whose result was collected leaves
    nothing on the host.
  - Users see only their own transfers. Only root sees transfers that run as root, so use the same C(become) as for the
    transfer.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.info
options:
  transfer_id:
    description:
      - Show only this transfer. It is RV(longhaul.fleet.transfer#module:transfer_id) of the transfer.
    type: str
seealso:
  - module: longhaul.fleet.transfer
  - module: longhaul.fleet.transfer_control
  - module: longhaul.fleet.fleet_status
"""

EXAMPLES = r"""
- name: List the transfers of the new host
  longhaul.fleet.transfer_info:
  register: running

- name: Show the progress of each transfer
  ansible.builtin.debug:
    msg: "{{ item.root }}: {{ item.progress.bytes_done }} of {{ item.progress.bytes_total }} bytes"
  loop: "{{ running.transfers }}"
  loop_control:
    label: "{{ item.id }}"
"""

RETURN = r"""
transfers:
  description: Transfers, the oldest first.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Id of the transfer, the same on both hosts.
      type: str
      sample: 5f3c0d2a9b17e846
    side:
      description: Whether this host is the V(source) or the V(dest) of the transfer.
      type: str
      sample: dest
    part:
      description: Whether this host opens the connection (V(drive)) or listens (V(serve)).
      type: str
      sample: serve
    method:
      description: The method of the transfer.
      type: str
      sample: rsync
    peer:
      description: Inventory host of the peer.
      type: str
      sample: old.example.com
    root:
      description: The root of the tree on this host.
      type: str
      sample: /srv/data
    state:
      description:
        - State of the transfer on this host. V(starting), V(running) and V(serving) mean that it runs.
        - V(finished) and V(failed) mean that its result was not collected yet, V(interrupted) that its process is gone.
          Run the task of the transfer again. V(served) means that the process of the listening host has ended; the
          connecting host knows the result.
        - V(cancelled) means that M(longhaul.fleet.transfer_control) stopped it. Run the task of the transfer again to resume
          it.
        - V(paused) means that it was paused for longer than its O(longhaul.fleet.transfer#module:timeout), and has
          ended. Run the task of the transfer again to resume it. One that is paused and still runs has
          RV(transfers[].paused).
      type: str
      sample: running
    pid:
      description: Process id of the transfer on this host.
      type: int
      sample: 4711
    paused:
      description: Whether it is paused by M(longhaul.fleet.transfer_control), on either host as far as this one knows.
      type: bool
      sample: false
      version_added: 0.1.1
    bwlimit:
      description: Maximum rate in force, in bytes per second, from the transfer or M(longhaul.fleet.transfer_control).
        V(0) means no limit.
      type: int
      sample: 0
      version_added: 0.1.1
    started:
      description: When the transfer started, in seconds since 1970.
      type: float
      sample: 1795201234.5
    updated:
      description: When the transfer last reported its progress, in seconds since 1970.
      type: float
      sample: 1795201299.5
      version_added: 0.2.0
    failure:
      description: Why the transfer failed. Empty if it did not.
      type: str
      sample: ""
      version_added: 0.2.0
    progress:
      description: Progress of the transfer.
      type: dict
      contains:
        phase:
          description: Current phase.
          type: str
          sample: transfer
        current:
          description: Current path.
          type: str
          sample: photos/2026/0001.jpg
        bytes_done:
          description:
            - Bytes of file content without holes that are done, including what the destination had already.
            - Content that is sent again because it changed during the transfer counts once. The two hosts count
              independently, so the destination is slightly behind.
          type: int
          sample: 1073741824
        bytes_total:
          description:
            - Total bytes of file content without holes. V(0) if unknown, which is the case until the source has listed
              the whole tree.
            - With methods other than V(stream) only the connecting host (RV(transfers[].part=drive)) knows the
              progress. That is the source unless O(longhaul.fleet.transfer#module:connect) says otherwise.
          type: int
          sample: 2684354560
        bytes_sent:
          description:
            - Bytes that went over the wire for this content, after compression, as
              RV(longhaul.fleet.transfer#module:bytes_sent).
            - They are counted when a file is complete, so they are left out while the transfer runs.
          returned: when the transfer has ended
          type: int
          version_added: 0.2.0
          sample: 536870912
        bytes_apparent:
          description: Sum of the sizes of all files, with holes. V(0) if unknown.
          type: int
          version_added: 0.2.0
          sample: 5905580032
        files_done:
          description: Entries that are done.
          type: int
          sample: 20000
        files_total:
          description: Total number of entries. While the source still lists the tree, those that were listed so far.
          type: int
          sample: 54344
        rate:
          description: Bytes per second since the start.
          type: int
          sample: 118489088
        eta:
          description: Estimated seconds until the transfer is complete. V(null) if unknown.
          type: int
          sample: 13
"""

import time
from typing import cast

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._job.state import RUNNING, JobInfo, list_jobs


def with_rate(job: JobInfo, now: float) -> JobInfo:
    """Return a job whose progress also has the rate (bytes per second) and the remaining seconds.

    ``now`` is in seconds since 1970. A job that does not run has rate 0 and no time left to tell.
    """
    progress = job["progress"]
    seconds = now - (job["started"] or now)
    done, total = progress.get("bytes_done", 0), progress.get("bytes_total", 0)
    runs = job["state"] in RUNNING
    rate = int(done / seconds) if runs and seconds > 0 else 0
    eta = int((total - done) / rate) if rate > 0 and total >= done and not job.get("paused") else None
    counted = {name: value for name, value in progress.items() if name != "bytes_sent" or not runs}
    return cast(JobInfo, {**job, "progress": {**counted, "rate": rate, "eta": eta}})


def main() -> None:
    """List this host's transfers, or the one that was asked for."""
    module = AnsibleModule(argument_spec={"transfer_id": {"type": "str"}}, supports_check_mode=True)
    wanted = module.params["transfer_id"]
    now = time.time()
    jobs = [with_rate(job, now) for job in list_jobs() if wanted in (None, job["id"])]
    module.exit_json(changed=False, transfers=sorted(jobs, key=lambda job: job["started"]))


if __name__ == "__main__":
    main()
