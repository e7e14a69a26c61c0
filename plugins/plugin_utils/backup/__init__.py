# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a backup decides, as typed, pure functions of what the role keeps of it.

* ``jobs``: what each job means, and which client is backed up when; ``job_problems``: what is wrong with the jobs;
* ``left``: which backups of a play are still to be made, and which one ends because a host was lost;
* ``stages``: how far a backup is; ``steps``: what is left to do, by that and by what happened, as a table;
* ``transfers``: what becomes of the result of a transfer, and what the snapshot must hold then;
* ``record``: what became of a backup; ``health``: how all of them are; ``metrics``: the same for Prometheus.

Nothing here asks a host or reads a file: ``plugins/filter/backup_logic.py`` is how the role asks.
"""
