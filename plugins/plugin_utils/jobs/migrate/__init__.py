# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Migrations, on the control node.

To read in this order:

* ``workflow``: the steps of one job in one run, from its preflight to its last comparison;
* ``phases``: which steps a run makes, and what follows a failure, as tables; ``state``: what is kept of a job,
  ``history``: its transfers in all runs;
* ``jobs``: the list of jobs: which run, what is wrong with them, and jobs turned round;
* ``groups``: jobs that switch over together, or not at all;
* ``preflight``: decisions of the preflight; ``verify``: comparisons of trees, ``verify_page`` the report on them;
* ``record``: what the destination keeps of a job, and where that stops a run;
* ``forecast``: how long a cutover will take, by rates that were measured; ``prediction_check``: what a benchmark
  predicted, beside what it really took;
* ``advice``: what a person should do next; ``report``: what a report says beside the state, and the figures of a run;
  ``job_status``: the status of a job in an overview; ``metrics``: the figures of all jobs for Prometheus.

All of these but ``workflow`` decide without asking anyone. What the workflow uses:

* ``job_run``: transfers, hooks and writes of one run of one job, of which its steps are made;
* ``hosts``: the two hosts of a job; ``store``: states and reports on the control node; ``samples``: progress over time;
* ``report_text``: the lines of the terminal; ``report_page``: pages for people, of ``report_facts``, ``report_charts``
  and ``job_blocks``;
* ``metrics_file``: the file of metrics, which is replaced while a run is at work;
* ``run``: one call of the action migrate_run, which gives the workflows of its jobs to the scheduler (``fleet``).
"""
