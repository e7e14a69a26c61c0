# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""rsync to a daemon, one that is there or one for this transfer.

* ``method``: both ends.
* ``server``: the daemon. ``conf``: its configuration. ``acceptor``, ``daemon_log``: its connections, and what it says.

It may import ``_engine/{net,wire}``, ``_methods/rsync``, ``_methods/ssh``, ``_tree``, ``_model`` and ``_core``.
"""
