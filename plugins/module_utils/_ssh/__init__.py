# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide what the ssh client of a host offers to each peer.

* ``probe``: what an ssh server offers, read without logging in.
* ``local_offer``: the Include lines of ssh's configuration, and whether this processor is quick at AES.
* ``peers``: the peers of the role ssh_client, completed and checked.
* ``ciphers``, ``client_plan``: which algorithms the client offers to each of them, and why.

It must not import any other package but _core.
"""
