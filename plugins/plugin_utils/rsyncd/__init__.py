# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role rsyncd decides from what a host said. Pure.

* ``sandbox``: what a systemd unit must open for the modules of a daemon, as a drop-in.

What runs on the host is in module_utils/_rsyncd.
"""
