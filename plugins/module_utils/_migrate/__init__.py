# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of a host before a migration.

* ``preflight``: what one host says before a migration, read-only. ``tree_users``: the processes that use a tree.

It must not import transfers or jobs.
"""
