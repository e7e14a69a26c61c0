# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Consistent sources of a backup on its client: dumps of databases, and a snapshot of the file system.

* ``request``: the sources that the control node asks for.
* ``made``: the list of all that a preparation makes, its removal, and the locks on folders of dumps.
* ``dump_folder``: the folder of dumps in the source tree. ``programs``: run a database's programs as its user.
* ``postgresql``, ``mariadb``, ``sqlite``: make and load the dumps of one kind. ``btrfs``: make and remove a snapshot.
* ``preparation``: make all sources, one after the other. ``load``: load dumps that were restored;
  ``scratch_server``: a server of its own, into which a drill loads them, in a ``namespace``.

It may import ``_tree`` and ``_core`` alone.
"""
