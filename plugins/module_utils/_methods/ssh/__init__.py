# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Code that the methods over ssh share.

* Driving end: ``client_command`` (how ssh is called), ``client_check`` (whether it works), ``failure``.
* Serving end: ``server`` (takes connections), ``service`` (what it runs for one), ``authorized_keys`` and ``sshd`` (how
  the driving end gets in), ``forced_command`` and ``forced_command_socket`` (how its connection gets to the job).
* ``sshd_config``: what OpenSSH's programs print of their configuration.

It may import ``_tree`` and ``_core`` alone.
"""
