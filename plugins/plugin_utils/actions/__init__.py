# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Base classes of the actions in ``plugins/action``, which alone import from here.

* ``fleet_action``: options, harmless texts, failures: all that a user sees leaves through it;
* ``pair_action``: a task on two hosts; ``control_node_action``: a task that writes on the control node, or drives jobs;
* ``state_folder``: where states and reports are kept.
"""
