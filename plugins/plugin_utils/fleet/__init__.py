# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many pairs of hosts from one control node: what a run of a whole fleet decides, and the loop that drives it.

* ``limits``: how many pairs may run at once, in all, for each host and for each link;
* ``queue``: which job starts next under these limits;
* ``scheduler``: the loop that drives the workflows of all jobs with a few threads, and holds none for a job that waits;
* ``workflow``: steps of all workflows: a transfer to its end, a step with retries, a hook; ``hook_steps``: hooks that
  run, and files of tasks for the role;
* ``looks``: the running transfers, and what their hosts say of them; ``looking``: when the hosts are asked again;
* ``pair_hosts``, ``sessions``: the two hosts of a job, and its transfers; ``source_changes``: what changed at the
  source while a transfer read it;
* ``lease``: the lease of a job at its destination, so that two control nodes do not work on it; ``keeper``: renews all
  leases of a run; ``controller``, ``claims``: who this control node is, and which run of it works on a job;
* ``telling``: what a run says while it runs; ``live``: that for a window; ``snapshot``: for the callback that shows it;
* ``folder``: what is known of jobs on the control node;
* ``failures``: all failures of a run; ``slices``: inventories that lack hosts of jobs;
* ``conduct_action``: what the actions share that drive jobs.

What an overview of a fleet needs, which any machine can ask for:

* ``answers``: what a host says of its transfers, read as what nobody can be trusted with;
* ``rows``: where each pair stands, and the sums;
* ``table``, ``columns``: that for people; ``exposition``: for Prometheus;
* ``asking``: asks many hosts; ``overview``: all of it.

Nothing here knows what a job does: the packages ``migrate`` and ``backup`` do.
"""
