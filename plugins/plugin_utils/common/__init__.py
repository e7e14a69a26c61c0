# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tools of the control node that know no host and no transfer.

* ``units``: sizes and times for people; ``timespec``: points in time as people write them; ``paths``: which path lies
  inside which; ``host_text``: texts of a host made harmless before they are shown;
* ``refusal``: the error for a task that must not be done; ``argument_spec``: the options that documentation describes;
* ``typed_json``: dataclasses as JSON; ``files``: files written at once and as a whole; ``memory``: what is remembered
  of hosts between two runs; ``prometheus``: metrics as files;
* ``ansible_process``: the process of ansible-playbook; ``deadline``: an end for what waits.

Imports nothing else of ``plugin_utils``.
"""
