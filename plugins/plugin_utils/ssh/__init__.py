# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is decided about ssh before a host is asked to use it. Pure.

* ``ciphers``: which ciphers a connection offers, the fastest first.
* ``peers``: the peers of an ssh client, with what the inventory knows of each.
* ``client_plan``: what the client offers to each of them.

What runs on hosts is in module_utils/_ssh and module_utils/_methods/ssh.
"""
