# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs that only copy; the engine decides what is sent, and puts it in place.

* ``scp``, ``sftp``: over ssh. ``common``: what they share. ``fd_symlinks``: names that no program can stumble over.
* ``serving``: what their serving end runs. ``file_server``: the process that serves one client, by ``sftp_server`` or
  ``rcp_server``, which the real clients meet. ``sftp_protocol``: the packets of sftp.
* ``shard_list``: the files that such a server knows, by their numbers. ``shard_files``: opens them, and nothing else.
* ``tar_nc``: tar over netcat. ``tar_command``, ``tar_carrier``: tar. ``netcat``, ``netcat_transport``: the connections.

It may import ``_methods/ssh``, ``_engine``, ``_tree``, ``_model`` and ``_core``.
"""
