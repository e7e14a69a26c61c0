# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One place that asks hosts, and what is known of a host before it is asked.

* ``host_runner``: runs the collection's module on an inventory host and returns typed values; ``host_action``: the
  same for any module, whose answer never reaches ansible-core; ``host_facts``: variables that a host must not set;
* ``execution_retry``: which failed executions are run again; ``pacing``: no more new connections than sshd takes;
* ``endpoint``: a host as source or destination of a transfer; ``pair``: both of them; ``trust``: how far they are
  trusted;
* ``engine``: what runs on hosts, packed into one file; ``engine_digest``: its digest, remembered; ``preload``: work
  done once for all tasks;
* ``interruption``: what the user reads when ansible is interrupted.

Imports ``common``.
"""
