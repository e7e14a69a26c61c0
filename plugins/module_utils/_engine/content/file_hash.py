# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How contents are hashed in the conversation."""

from __future__ import annotations

import hashlib
import os

_CHUNK = 1 << 20


def hash_fd(fd: int) -> str:
    """Hash what an open regular file holds from its start to its end (BLAKE2b, 32 bytes, as hex)."""
    digest = hashlib.blake2b(digest_size=32)
    offset = 0
    while True:
        data = os.pread(fd, _CHUNK, offset)
        if not data:
            return digest.hexdigest()
        digest.update(data)
        offset += len(data)
