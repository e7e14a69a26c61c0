# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plain data that all of the collection speaks of, each with its one parser. Nothing here opens, waits or forks.

* ``entry``: one name in a file tree.
* ``paths``: which paths below a root are accepted from a peer, and how they are printed.
* ``file_index``: files found by size and time, or by size and name.
* ``entry_codec``: entries as bytes, for wires and files.
* ``filters``: rules in rsync's syntax, and what they match.
* ``ticket``: what a running transfer is told: pause, end, rate. ``rate``: rates as people write them.
* ``congestion``: which congestion control connections get.
* ``time_units``: when times are the same on a file system that keeps them coarsely.
* ``ids``: numbers of users and groups, in ACLs too, and what they become at the destination.

It may import ``_core`` alone.
"""
