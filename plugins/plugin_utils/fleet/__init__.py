# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many jobs from one control node: limits, the loop that drives them, locks, and what is shown meanwhile.

* ``limits``: how many pairs may run at once, in all, for each host and for each link; ``queue``: which job starts next;
* ``scheduler``: the loop that drives the workflows of all jobs with a few threads, and holds none for a job that waits;
* ``polling``: asks the hosts of running transfers how far they are; ``poll_schedule``: when;
* ``lock``: the lease of a job at its destination, so that two control nodes do not work on it; ``lock_renewal``: renews
  all leases of a run; ``controller``, ``claims``: who this control node is, and which run of it works on a job;
* ``console``: what a run says while it runs; ``progress_view``: the same as a window; ``progress_file``: for the
  callback that shows it.

An overview of a fleet, which any machine can ask for:

* ``answers``: what hosts say of their transfers, parsed; ``asking``: asks many hosts; ``overview``: all of it;
* ``rows``: the state of each pair, and totals; ``table``, ``columns``: for people; ``exposition``: for Prometheus.

Imports ``transfer``, ``hosts`` and ``common``; knows no workflow.
"""
