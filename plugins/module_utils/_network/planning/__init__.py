# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide everything that one run of the role nic does to a host. Pure.

* ``interfaces``: what the user wants of a host's links, as checked data.
* ``plan``: everything that one run will do to a host; it brings the others together.
* ``problems``: what stands in the way on this host, and what a manager cannot do.
* ``files``: what all files that are made share. ``render_netplan``, ``render_networkd``, ``render_networkmanager``,
  ``render_ifupdown``, ``render_ifcfg``, ``render_freebsd``: those of each manager.
* ``apply_commands``: the commands that bring changed files to life.
* ``tcp``: TCP settings for fast links.
"""
