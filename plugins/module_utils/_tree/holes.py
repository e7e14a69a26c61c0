# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bytes of a file outside of its holes."""

from __future__ import annotations

import os

from .._core.files import segments
from .._model.entry import BLOCK_BYTES, Entry
from .dirfd import Root

_MOST = 100_000  # stretches of one file that are looked for, in about a tenth of a second


def count_holes(root: Root, entry: Entry) -> Entry:
    """Return a file's entry with the blocks that its contents need, whatever its file system allocates.

    A file system that compresses allocates fewer, so the holes are looked for. The entry stays sparse even if none is
    found, since not every file system can tell. It is returned as it is if the file is small or not sparse, has too
    many holes, or cannot be opened.
    """
    if not entry.has_large_holes:
        return entry
    holes = 0
    try:
        fd = root.open_file(entry.path)
    except OSError:
        return entry
    try:
        for number, (start, end, holds) in enumerate(segments(fd, 0, entry.size)):
            if number == _MOST:
                return entry
            holes += 0 if holds else end - start
    except OSError:
        return entry
    finally:
        os.close(fd)
    return entry._replace(blocks=-(-entry.size // BLOCK_BYTES) - max(1, -(-holes // BLOCK_BYTES)))
