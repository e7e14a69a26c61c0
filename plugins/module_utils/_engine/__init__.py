# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The engine: two ends that compare a tree and send what differs, over connections that somebody made.

* ``wire``: the protocol as bytes, without I/O. Read ``frames`` and ``messages`` first.
* ``content``: what becomes of the contents of files on their way.
* ``net``: the connections, and the session over them.
* ``sender``: the source's end. ``receiver``: the destination's. They do not know each other.

``sender`` and ``receiver`` import ``net``, ``content`` and ``_tree``; ``net`` and ``content`` import ``wire``. Nothing
here may import ``_methods`` or ``_job``.
"""
