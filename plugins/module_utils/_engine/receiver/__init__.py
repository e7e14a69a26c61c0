# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The destination's end of a session.

* ``receiver``: leads. ``offer_check`` holds the source to the plan. ``reconcile`` compares what is offered with what is
  there, and says what must happen.
* ``apply`` puts entries in place, ``apply_file`` regular files; ``new_file`` writes one.
* ``delete``: what the source does not have. ``obstacles``: what is in the way. ``link_dest``: files of older snapshots.
* ``hardlinks``, ``inode_claims``: names that share a file. ``owner_book``: what ids become.
* ``disk_stack``: what comes last.
* ``writer_pool``: processes that write small files; ``writer_process`` is one of them.
* ``stream_receiver``: large files over data connections, into a ``partial_file`` or an ``inplace_file``;
  ``basis``: an old version that has blocks of one.

It may import the rest of ``_engine`` but for ``sender``, and ``_tree``, ``_model`` and ``_core``.
"""
