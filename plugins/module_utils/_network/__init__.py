# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links of a host, their MTU, bonds and VLANs: what there is, new files tried out, and the way back.

* ``link``, ``host``: a link, and all that is known of a host's network, as modules return them.
* ``discover``: read a host's links and managers. ``facts`` and ``managers`` evaluate what was read. Both pure.
* ``planning``: decide everything that one run of the role nic does to a host. Pure.
* ``file_marks``: whose a file is. ``validate``: files tried out by the manager's own program.
* ``ping``: the largest packet on a path.
* ``request``: what a checkpoint's folder says of it.
* ``arming``, ``checkpoint``, ``saved``, ``live``: keep a checkpoint of files and running links, and go back to it.
* ``commands``, ``mtu``: how a manager takes up old files, and in which order MTUs are changed. Both pure.
* ``revert_agent``, ``timer``: what goes back on its own, and what starts it.
* ``programs``: run the host's programs.

It must not import any other package but _core.
"""
