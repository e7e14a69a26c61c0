# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An rsync daemon and its modules on a host: configure it, open it, find out why a module does not work.

* ``options``: every option of rsyncd.conf. ``check``: what users write for them, checked. Both pure.
* ``conf``: rsyncd.conf and what it includes, as rsync reads them. ``render``: the text that is written.
* ``access``: who may connect. ``identity``: what a module's user may do in a directory.
* ``host_problems``: what stands in the way. ``config_writer``: a trial by rsync itself, then the files in place.
* ``firewall``, ``selinux``, ``sandbox``: what must be opened beside the configuration.
* ``probe_modules``: try every module as a client would, with ``local_client``. ``diagnose``: what a failure means.

It may import ``_core``.
"""
