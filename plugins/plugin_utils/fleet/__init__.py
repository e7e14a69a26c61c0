# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many pairs of hosts from one control node: what a run of a whole fleet decides, and the loop that drives it.

* ``limits``: how many pairs may run at once, in all, for each host and for each link;
* ``queue``: which job starts next under these limits;
* ``retries``: which failures may pass, and when a job is tried again;
* ``looks``: the running transfers, and what their hosts say of them; ``looking``: when the hosts are asked again;
* ``telling``: what a run says while it runs; ``live``: that for a window; ``snapshot``: for the callback that shows it;
* ``conductor``: the loop that drives all jobs with a few threads, and holds none for a job that waits;
* ``source_changes``: what changed at the source while a transfer read it;
* ``life``, ``pair_hosts``, ``sessions``: what the lives of all jobs use: steps that are tried again, hosts, transfers;
* ``lease``: the lease of a job at its destination, so that two control nodes do not work on it; ``keeper``: renews all
  leases of a run; ``controller``, ``claims``: who this control node is, and which run of it works on a job;
* ``folder``: what is known of jobs on the control node;
* ``failures``: all failures of a run; ``slices``: inventories that lack hosts of jobs;
* ``driving``, ``conduct_action``: how an action drives the jobs of a role.

What an overview of a fleet needs, which any machine can ask for:

* ``answers``: what a host says of its transfers, read as what nobody can be trusted with;
* ``rows``: where each pair stands, and the sums;
* ``table``, ``columns``: that for people; ``exposition``: for Prometheus;
* ``asking``: asks many hosts; ``overview``: all of it.

Nothing here knows what a job does: ``migrate/life.py`` says what a migration does, and ``backup/workflow.py`` what a
backup does.
"""
