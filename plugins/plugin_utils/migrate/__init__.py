# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a migration decides, as typed, pure functions of the state that the role keeps of a job.

* ``job_problems``: what is wrong with the jobs themselves;
* ``stages``: how far a job is;
* ``steps``: what a run does with a job, by the phase that was asked for and the stage, as a table;
* ``preflight``: what the answers of both hosts mean; ``deletions``: what would be deleted, and whether that was agreed
to; * ``source_changes``: what changed at the source while a transfer read it;
* ``remedies``: what a run does after a failure, as a table;
* ``switch``: which hooks of the switch have run;
* ``advice``: what a person should do next; ``report``: what a report says beside the state.

Nothing here asks a host, reads a file or imports a role's filter: ``plugins/filter/migrate_logic.py`` is how the role
asks.
"""
