#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: fleet_status
short_description: Show where a migration, a backup or other transfers of many hosts stand
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Asks hosts what their transfers do at the moment, and shows a row for each pair, with its phase, progress, rate, the
    remaining time and what went wrong, and the sums. It works from any machine with the inventory, also while the
    migration or backup is driven from another one.
  - Each host is asked once, for all its transfers. Of the hosts of O(jobs) the destinations are asked, and those sources
    that know more than their destinations, such as with O(longhaul.fleet.transfer#module:method=rsync).
  - A host that cannot be reached gives a row that says so, and what is known of the job from O(folder).
  - Users see only their own transfers. Use the same C(become) as for the transfers.
  - Run it for one host only (C(run_once)), as the playbook C(longhaul.fleet.status) does.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.change
attributes:
  action:
    description: Indicates this has a corresponding action plugin so some parts of the options can be executed on the control node.
    support: full
    details:
      - The action reaches each host over that host's own connection, with its own variables.
  check_mode:
    details:
      - Changes nothing but O(textfile), which is predicted in check mode.
  idempotent:
    details:
      - The contents of O(textfile) change whenever a transfer makes progress.
options:
  jobs:
    description:
      - Jobs of a migration, as in the variable C(migrate_jobs) of the role P(longhaul.fleet.migrate#role). Each is a row.
      - Only C(name), C(src_host), C(src), C(dest_host) and C(dest) of a job are used.
      - Transfers of these hosts that belong to no job are rows, too.
    type: list
    elements: dict
    default: []
  defaults:
    description: Options for all jobs, as in C(migrate_defaults). A job's own options take precedence.
    type: dict
    default: {}
  hosts:
    description:
      - Inventory hosts that are asked besides those of O(jobs). Each transfer that they know and that belongs to no job is
        a row, for example one of a backup.
    type: list
    elements: str
    default: []
  folder:
    description:
      - Folder of the reports and states of the migration on the control node, which is C(migrate_report_dir). It tells the
        phases of the jobs. If it does not exist here, the rows show only what the hosts know.
      - Empty means C(longhaul-migrate) in the folder that the variable C(longhaul_state_dir) names, or without that beside
        the inventory.
    type: path
    default: ""
  textfile:
    description:
      - Write the figures to this file on the control node, for the textfile collector of the Prometheus node exporter. Its
        name must end in C(.prom) for the collector to read it. It is replaced as a whole.
    type: path
  on_unreachable:
    description: Whether the task fails if a host does not answer.
    type: str
    choices: [report, fail]
    default: report
  show:
    description: Whether the table is printed.
    type: bool
    default: true
  width:
    description:
      - Width of the table in columns, 60 at least. V(0) means that of the terminal, or without one the environment
        variable E(COLUMNS), or 79.
    type: int
    default: 0
  max_rows:
    description:
      - How many rows the table has at most. Those that need attention come first. RV(rows) always has all.
    type: int
    default: 50
  interval:
    description:
      - Seconds between the two looks that a host with running transfers takes to find out their rate, 10 at most. V(0)
        means one look, without rates and remaining times.
    type: float
    default: 2
seealso:
  - module: longhaul.fleet.transfer_info
  - module: longhaul.fleet.transfer_control
  - name: Watch a fleet
    description: The overview, live progress and figures for Prometheus.
    link: https://github.com/longhaul-fleet/longhaul.fleet/tree/main/docs/watch-a-fleet.md
"""

EXAMPLES = r"""
- name: Show where the migration stands
  longhaul.fleet.fleet_status:
    jobs: "{{ migrate_jobs }}"
    folder: "{{ inventory_dir }}/longhaul-migrate"
  run_once: true

- name: Show all transfers of the play's hosts, also those of backups
  longhaul.fleet.fleet_status:
    hosts: "{{ ansible_play_hosts_all }}"
  run_once: true

- name: Write the figures for Prometheus, and print nothing
  longhaul.fleet.fleet_status:
    jobs: "{{ migrate_jobs }}"
    textfile: /var/lib/prometheus/node-exporter/longhaul.prom
    show: false
  run_once: true
"""

RETURN = r"""
rows:
  description: A row for each job, in their order, then one for each other transfer.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the job. For a transfer that belongs to none, its id.
      type: str
      sample: n01
    src_host:
      description: Inventory host of the source.
      type: str
      sample: old01
    src:
      description: The tree there. Empty if it is not known.
      type: str
      sample: /srv/data/
    dest_host:
      description: Inventory host of the destination.
      type: str
      sample: new01
    dest:
      description: The tree there. Empty if it is not known.
      type: str
      sample: /srv/data
    phase:
      description:
        - Phase that the job is in, or that it finished last. Empty if no phase has begun, or none is known.
        - V(transfer) for a transfer that belongs to no job.
      type: str
      sample: seed
    state:
      description:
        - V(running) and V(paused) mean that a transfer or comparison runs, V(ended) that its result was not collected yet.
        - V(waiting) means that no transfer runs and the job is not finished, V(not begun) that nothing is known of it.
        - V(stopped) means that the cutover has begun, so the source may be stopped, V(switching) that hooks of the switch
          run.
        - V(switched) means that the job was switched over, V(done) that its trees were compared as well.
        - V(failed), V(interrupted) and V(unreachable) have RV(rows[].error).
      type: str
      sample: running
    method:
      description: Method of the transfer. Empty if none runs.
      type: str
      sample: stream
    bytes_done:
      description: Bytes of file content without holes that are done, including what the destination had already.
      type: int
      sample: 1073741824
    bytes_total:
      description: Bytes of file content without holes in the tree. V(0) if unknown.
      type: int
      sample: 2684354560
    bytes_sent:
      description: Bytes that the last transfer sent over the wire as content, after compression.
      type: int
      sample: 536870912
    bytes_apparent:
      description: Sum of the sizes of all files in the tree, with holes. V(0) if unknown.
      type: int
      sample: 5905580032
    files_done:
      description: Entries that are done.
      type: int
      sample: 20000
    files_total:
      description: Entries in the tree, as far as they are known.
      type: int
      sample: 54344
    rate:
      description: Bytes per second at the moment. V(null) if unknown, or nothing runs.
      type: int
      sample: 118489088
    eta:
      description: Estimated seconds until the running transfer ends. V(null) if unknown.
      type: int
      sample: 13
    age:
      description: Seconds since the figures were true, by the host or by O(folder). V(null) if there are none.
      type: float
      sample: 0.6
    error:
      description: What went wrong. Empty if nothing did.
      type: str
      sample: ""
    next:
      description: What to do about it.
      type: str
      sample: ""
    bottleneck:
      description:
        - What held back the last transfer of the job, in one sentence, as the RV(longhaul.fleet.transfer#module:bottleneck)
          of its result said. Empty if nothing stood out or nothing is known.
      type: str
      sample: >-
        The source's disk was busy for 94 % of 312 s (18.0 MiB/s read): a faster disk there, or less other work for it
        (iostat -x), would help; more streams would not.
      version_added: 0.3.0
    holder:
      description: Which control node works on the job, as its destination says. Empty if none does.
      type: str
      sample: root@control1
sums:
  description:
    - What all rows come to.
    - A transfer that belongs to no job counts only while it runs, apart from RV(sums.states).
  returned: success
  type: dict
  contains:
    states:
      description: How many rows are in each state.
      type: dict
      sample: {running: 2, waiting: 1}
    bytes_done:
      description: Bytes without holes that are done.
      type: int
      sample: 1073741824
    bytes_total:
      description: Bytes without holes in all trees of known size.
      type: int
      sample: 2684354560
    bytes_sent:
      description: Bytes that the last transfers sent over the wire as content.
      type: int
      sample: 536870912
    bytes_apparent:
      description: Sizes of all files in these trees, with holes.
      type: int
      sample: 5905580032
    unknown_sizes:
      description: How many trees are not finished and have no known size. RV(sums.eta) does not count them.
      type: int
      sample: 0
    rate:
      description: Sum of all rates, in bytes per second.
      type: int
      sample: 118489088
    eta:
      description: Estimated seconds until the rest of all trees is sent at this rate, without what is paused. V(null) if nothing runs.
      type: int
      sample: 13
unreachable_hosts:
  description: The hosts that did not answer.
  returned: success
  type: list
  elements: dict
  contains:
    host:
      description: The inventory host.
      type: str
      sample: new02
    reason:
      description: What happened.
      type: str
      sample: "Failed to connect to the host via ssh: connection timed out"
table:
  description: The lines of the table.
  returned: success
  type: list
  elements: str
"""
