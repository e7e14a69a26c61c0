# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a backup decides, as typed, pure functions of what the role keeps of it.

* ``jobs``: what each job means, and which client is backed up when; ``job_problems``: what is wrong with the jobs;
* ``left``: which backups of a play are still to be made, and which one ends because a host was lost;
* ``stages``, ``progress``: how far a backup is, and what happened; ``steps``: what is left to do, as a table of both;
* ``transfers``: the transfers of a backup, what becomes of their results, and what the snapshot must hold then;
* ``record``: what became of a backup; ``health``: how all of them are; ``metrics``: the same for Prometheus;
* ``report_text``: reports for people.

These are pure. What acts, for the actions backup_conduct, backup_part and backup_report:

* ``store``: records, claims and reports on the control node;
* ``hosts``: what is asked of the hosts; ``life``: the steps of one backup, one after the other;
* ``planning``: what a run is to do; ``conduct``: the lives of its backups, driven by ``fleet/conductor``.
"""
