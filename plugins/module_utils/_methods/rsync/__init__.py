# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real rsync over ssh.

* ``method``: both ends.
* ``passes``: the runs that make up a transfer. ``run``: one of them, over as many connections as it takes.
  ``child``: one process. ``argv``: what is typed; ``user_options``: what a user may add.
* ``output``, ``failure``: what rsync prints. ``tally``: what all runs did. ``watch``: whether one waits for ever.
* ``shards``: a tree listed, and divided among several. ``leftover``: what a killed one left.
* ``server_command``, ``server_options``: what the serving end runs for the peer. ``confinement``: what keeps it inside
  the root; ``chrooted``: in a root folder of its own; ``conf_line``: how that is configured.

It may import ``_methods/ssh``, ``_engine``, ``_tree``, ``_model`` and ``_core``.
"""
