# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure what a host can do: its tree, its disk, its processor. Private to the collection.

* ``tree``: count a tree, choose files to read, and take a sample of their contents.
* ``disk``: read at the source, write at the destination, past the caches, and how busy the device was.
* ``processor``: what one core encrypts, hashes and compresses.
* ``link``: both ends of a measurement of the line. ``line_facts``: what the kernel says of it.

Everything here runs in a job of idle priority (``_job/benchmark_job.py``) and takes about the seconds it is given.
"""
