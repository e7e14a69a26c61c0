# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups: what the role backup decides, and the workflow of one backup. In the order in which to read them:

* ``workflow``: the steps of one backup, one after the other; ``state``: how far it is, the steps that are left, and the
  record that it leaves;
* ``jobs``: what each job means; ``job_problems``: what is wrong with the jobs; ``planning``: the backups of a run;
* ``run``: one call of the action backup_run, which drives the workflows with ``fleet/scheduler``;
* ``consistent``: dumps of databases and snapshots of the file system that a client makes before its transfers;
* ``drill``: drills, which practise a restore: when one is due, its record, and what hosts say of it; ``drill_run``: its
  steps;
* ``copies``: copies of snapshots in other repositories; ``copy_workflow``: the steps that make, check and repair them;
* ``transfers``: the transfers of a backup, and what its snapshot must hold; ``hosts``: questions to its hosts;
* ``store``: records, states, claims and reports on the control node;
* ``capacity``: the room of the repositories, and when each is full; ``audit``: what they have against the jobs, and who
  decided what; ``audit_page``: its page;
* ``health``: the state of all jobs; ``metrics``: the same for Prometheus; ``report_text``: lines for the terminal;
  ``report_page``: the page for people.
"""
