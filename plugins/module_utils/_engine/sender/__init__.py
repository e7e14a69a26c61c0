# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The source's end of a session.

* ``sender``: scans, offers, sends and accounts. ``leftovers``: what is not offered.
* ``stream_sender``: the same for the method stream, which sends ``small_files`` in the session and ``large_files`` over
  data connections. ``range_queue``: the ranges of files, of which each connection gets its ``link_share``.

It may import the rest of ``_engine`` but for ``receiver``, and ``_tree``, ``_model`` and ``_core``.
"""
