# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The jobs of migrate, backup and restore: what they share, and a package for each.

* ``selection``: which jobs a run works on; ``mistakes``: options that are wrong as a user wrote them;
* ``workflow``: steps that all workflows have: a transfer to its end, a step with retries, a hook; ``sessions``: the
  transfer of a job, ``job_options``: its options; ``source_changes``: what changed while it was read;
* ``hooks``: commands, modules and files of tasks of the user; ``hook_steps``: those that ran or that the role runs;
* ``notify``: messages about runs, to URLs and commands of the user; ``notify_delivery``: sends them;
* ``snapshot_answers``: what a repository host says of snapshots; ``failures``: all failures of a run.

Imports ``fleet``, ``transfer``, ``hosts`` and ``common``; its packages also import ``report``, and ``migrate`` also
``benchmark``.
"""
