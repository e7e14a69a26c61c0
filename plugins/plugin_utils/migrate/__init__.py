# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a migration decides, as typed, pure functions of the state that the role keeps of a job.

* ``stages``: how far a job is;
* ``steps``: what a run does with a job, by the phase that was asked for and the stage, as a table;
* ``advice``: what a person should do next.

Nothing here asks a host, reads a file or imports a role's filter.
"""
