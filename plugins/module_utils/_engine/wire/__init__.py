# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The protocol as bytes: bytes go in, messages come out, and the other way round. Nothing here opens, waits or forks.

* ``frames``: what a control channel carries.
* ``messages``: what the frames of a session hold. ``conversation``: which of them may follow which.
* ``handshake``: which connection of a transfer this is, and that both ends know the one-time secret.
* ``records``: what a data connection carries. ``ranges``: which parts of a file.
* ``summary``: an outcome as the peer knows it, and the whole made of both.

It may import ``_model`` and ``_core`` alone.
"""
