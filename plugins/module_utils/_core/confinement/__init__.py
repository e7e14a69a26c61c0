# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rights that a process of a transfer gives up before the peer can say anything to it: defence in depth, on Linux.

* ``capabilities``: which of root's capabilities it keeps. Pure.
* ``landlock``: which files it may still write, and at a source read, and whom it may send signals. Pure.
* ``plan``: both, for a process of a transfer. Pure.
* ``confine``: give it up, by the system calls of Linux; the entry point.

What holds a peer is what the rest of the code does: open by descriptor, follow nothing, check every name against the
plan. This is for the day on which that, or a program that a transfer runs, has a defect. So nothing here ever fails a
transfer: what a kernel or a container withholds is not in force, and the result does not name it.
"""
