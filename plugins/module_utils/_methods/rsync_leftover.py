# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a killed rsync left of its files becomes a basis for the next one. Private to the collection.

With ``--temp-dir`` a file on its way is ``NAME.XXXXXX``, without the leading dot that it has beside its target (rsync's
``get_tmpname()`` in receiver.c). A receiver that ends in order moves it to the partial folder by itself; one that is
killed does not.
"""

from __future__ import annotations

import contextlib
import os
import re

_TEMPORARY = re.compile(rb"^(?P<name>.+)\.[A-Za-z0-9]{6}$", re.DOTALL)


def final_name(temporary: bytes) -> bytes:
    """Name the file that a temporary one in ``--temp-dir`` was to become."""
    match = _TEMPORARY.match(temporary)
    return match.group("name") if match else temporary


def adopt(staging: bytes) -> int:
    """Move what is in ``tmp`` to ``partial``, the larger where there are two; gives the bytes that are there then.

    For a moment at which no rsync of this transfer is at work.
    """
    temporary, partial = os.path.join(staging, b"tmp"), os.path.join(staging, b"partial")
    kept = 0
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(temporary):
            found, wanted = os.path.join(temporary, name), os.path.join(partial, final_name(name))
            if _size(found) > _size(wanted):
                os.replace(found, wanted)
            else:
                os.unlink(found)
        kept = sum(_size(os.path.join(partial, name)) for name in os.listdir(partial))
    return kept


def _size(path: bytes) -> int:
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return -1
