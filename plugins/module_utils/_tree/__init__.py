# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""File trees on disks: what they are, how they are changed, how two of them compare.

* ``stat_entry``: look at one name. ``xattr``: its extended attributes and ACLs.
* ``descent``: a way down by directory fds that never leaves the tree.
* ``resolve``: a user's path, resolved without following a symbolic link of somebody less trusted.
* ``held_root``: the root of a transfer, opened once and held.
* ``walk``: every entry of a tree, in one order. ``directory_tags``: files that leave out the rest of their directory.
* ``dirfd``: change a tree below a root, and nothing outside of it. ``remove``: remove a name with all below it.
* ``inode``: what a name stands for, held while it is changed.
* ``metadata``: owner, mode, ACLs, xattrs and times: what differs, and how it is set.
* ``holes``: how much of a file is none of its holes.
* ``compare``: what one entry needs at the destination. Pure.
* ``staging``: the folders of a transfer below its destination. ``inner_staging``: those on file systems mounted inside.
* ``time_units``: in which unit the file systems of a destination keep times.
* ``accounts``, ``owners``, ``foreign_owners``: what owners are called on two hosts, and what their numbers become.
* ``content_hash``: hash the files of a tree, several at a time.
* ``change_times``: the ctimes of a source's files, kept beside their copies.
* ``record``, ``record_store``, ``digest``: compare two trees on two hosts that have no link between them.

It may import ``_model`` and ``_core`` alone.
"""
