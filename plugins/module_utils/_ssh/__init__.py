# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role ssh_client asks of hosts.

* ``probe``, ``kexinit``: what an ssh server offers, read without logging in.
* ``processor``: whether this processor is quick at AES.
* ``config_text``: the Include lines of ssh's configuration.

It must not import any other package. Which ciphers are used is decided in plugin_utils/ssh.
"""
