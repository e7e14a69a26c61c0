# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The destination's end of a session.

* ``receiver``: leads. ``offer_check`` holds the source to the plan.
* ``reconcile``: takes the source's entries, and finds out what decides about each. ``decide``: decides, and looks at no
  file. ``apply``: does what was decided; ``apply_file`` makes regular files, with ``new_file``.
* ``deferred``: what waits for other entries; ``disk_stack`` keeps it on the disk if it is much. ``delete``: what the
  source does not have, and directories in the way. ``link_dest``: files that older snapshots have, or another path;
  ``files_here`` finds the latter.
* ``writer_pool``: processes that write small files; ``writer_process`` is one of them.
* ``stream_receiver``: large files over data connections, into a ``partial_file`` or another ``incoming_file``;
  ``basis``: an old version that has blocks of one.

It may import the rest of ``_engine`` but for ``sender``, and ``_tree``, ``_model`` and ``_core``.
"""
