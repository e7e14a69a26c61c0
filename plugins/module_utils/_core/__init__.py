# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Foundations of every other package.

* ``errors``: what ends a transfer.
* ``settings``: what both ends of a transfer share.
* ``context``: what a method is told on one end of a transfer, and how far it is.
* ``outcome``: what a transfer did, in counts and in words. ``counted``: numbers in sentences.
* ``json_shape``: read members of JSON objects, each of the type that is due.
* ``search_path``: where programs are looked for.
* ``subprocesses``: find a program and start it; the only place that starts any.
* ``host_name``: names and addresses, for the functions that look them up. ``ports``: TCP ports to listen at.
* ``files``: the hash of a file, and what exists of a path. ``memory_file``: a file without a name, in memory.
* ``durability``: wait until the disk has what was written.
* ``mounts``: the mounted file systems, on Linux.
* ``disk_full``: the room of a file system, and what is told of one that has none.
* ``state_folder``: where jobs keep what they must remember.
* ``boot``: the id of the system's current boot, and the seconds since it began.
* ``archives``: archives that Python runs.
* ``garbage``: fewer runs of Python's cyclic garbage collector.
* ``die_with_parent``: programs that end with the process that started them.
* ``rsync_vulnerabilities``: known vulnerabilities of the installed rsync.
* ``confinement``: what a process of a transfer gives up before the peer can say anything to it.
* ``time_accounting``: what the threads of an end spend their time on.
* ``disk_usage``: how busy the disks below a tree are, and the state of a ZFS pool.

It must not import any other package. All of module_utils is private to the collection.
"""
