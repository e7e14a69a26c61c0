# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a migration decides and does on the control node.

Typed, pure functions of the state that is kept of a job:

* ``job_problems``: what is wrong with the jobs themselves;
* ``stages``: how far a job is;
* ``steps``: what a run does with a job, by the phase that was asked for and the stage, as a table;
* ``programs``: what a method needs on both hosts; ``preflight``: what their answers mean;
* ``deletions``: what would be deleted, and whether that was agreed to;
* ``transfers``: a job as a transfer, and what is kept of its result;
* ``remedies``: what a run does after a failure, as a table;
* ``record``: what is kept of a job at its destination, and where that stops a run;
* ``standing``: where a job stands, for an overview;
* ``back``: jobs turned round;
* ``groups``: jobs that switch over together, or not at all;
* ``switch``: which hooks of the switch have run;
* ``advice``: what a person should do next; ``report``: what a report says beside the state;
  ``report_text``: reports for people;
* ``summary``: what a run did, in a few figures.

``plugins/filter/migrate_logic.py`` is how the role's tasks ask these. What acts, for the action migrate_conduct:

* ``life``: the steps of a job until its cutover; ``hosts``: what it asks of both hosts;
* ``terms``: the lease of a job for the role's tasks; ``store``: states and reports on the control node;
* ``conduct``: a whole run, which gives the lives of its jobs to the conductor (``fleet``).
"""
