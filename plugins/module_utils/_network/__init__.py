# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links of a host, their MTU, bonds and VLANs: facts, files, plan, path test, checkpoint. Private to the collection.

What decides is pure: plain data in, plain data out. What touches the host is in ``discover``, ``live``, ``saved``,
``validate``, ``timer``, ``arming``, ``revert_agent`` and ``pinging``.
"""
