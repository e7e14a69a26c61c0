# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a restore decides, as typed, pure functions of what was asked for and of what the hosts answered.

* ``request``: what is to be restored, completed from the jobs of the backup;
* ``choose``: which snapshot a point in time means;
* ``integrity``: whether a snapshot is restored from, by what its check found, as a table;
* ``target``: from where to where it goes;
* ``place``: whether it may go there, by what is there already, as a table.

Nothing here asks a host or reads a file: ``plugins/filter/restore_logic.py`` is how the role asks.
"""
