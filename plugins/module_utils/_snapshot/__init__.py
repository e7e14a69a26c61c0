# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dated snapshots of a tree, as docs/snapshot-format.md describes them.

What there is, and what it is called:

* ``names``: the names in the folder of a job. ``repository``: that folder, opened so that nothing leads out of it.
* ``facts``: what the two small files beside a tree say of it.
* ``manifest``: the file that tells every entry with the hash of its contents. ``moved_files``: paths in it by size and
  time, or by size and name.
* ``atomic_io``: small files, and the order in which they reach the disk. ``errors``: why something is not done.
* ``history``: who made, accepted, removed or restored each snapshot, and which are gone that should be there.
* ``room``: the room of its file system, and how much a backup must leave.
* ``listing``: what snapshots a job has. ``predicted_states``: the same as check mode shows it, before and after.

The life of a snapshot:

* ``begin``: begin one, or resume the interrupted one.
* ``finish``, ``build_manifest``, ``suspicion``: make it a complete one.
* ``prove_copy``: whether a copy from another repository is what its manifest says.
* ``quarantine``: take one that was set aside, or drop it.
* ``hold``: protect one from being removed until a date. ``read_only``: make the folders of its tree immutable.
* ``policy``, ``time_zones``, ``prune``, ``read_lock``: which ones are kept, and how the others are removed.
* ``check``, ``check_contents``, ``subset``, ``check_run``: whether they are what their manifests say.
  ``damage``: the damaged files that were found, which no later snapshot uses. ``repair``: replace them by intact ones.
* ``search``, ``conditions``: find entries in all of them, and the history of a path. ``differences``: between two.
* ``audit``: what an auditor asks of a whole repository.
* ``inspect_path``: look at a path of one before it is restored. ``overlap``: where it goes.
* ``drill``: practise a restore: choose a share of a snapshot, and compare what arrived of it.
* ``rsnapshot``, ``adopt``: take the snapshots of rsnapshot over.
* ``actions``: all of that under the names that the module ``snapshot`` has for it.

It may import ``_tree``, ``_model`` and ``_core`` alone.
"""
