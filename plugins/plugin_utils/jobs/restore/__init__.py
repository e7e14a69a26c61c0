# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One restore, from the request to the report.

* ``workflow``: the steps in their order. Only it asks hosts and writes files.
* ``request``: the user's options, completed from the jobs of the backup.
* ``choose``: the snapshot that a point in time means.
* ``load``: dumps of databases that are loaded after they were restored.
* ``report``, ``report_page``: the report for programs and its lines for the terminal, and the page for people.
* ``plan``: decisions about the snapshot, the destination and the transfer, by the answers of the hosts.
"""
