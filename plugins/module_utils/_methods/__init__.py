# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The methods: one way each to move the contents of a tree, with what must be known of the programs that do it.

* ``registry``: the methods by their names.
* ``stream``: our own engine over its own connections.
* ``rsync``: the real rsync over ssh. ``rsyncd``: rsync to a daemon.
* ``copy``: scp, sftp and tar over netcat; the engine decides what is sent.
* ``ssh``: what the methods over ssh share, on both ends.
* ``detect_programs``: which programs each method runs, and what must be known of them.

A method's module offers ``serve(context)`` and ``drive(context)``, see docs/architecture.md. Nothing here may import
``_job``; ``ssh``, ``rsync``, ``rsyncd`` and ``copy`` import nothing of this folder but each other, in that order.
"""
