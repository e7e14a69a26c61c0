# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that a killed rsync left become a basis for the next one.

With ``--temp-dir`` a file on its way is ``NAME.XXXXXX``, without the leading dot that it has beside its target (rsync's
``get_tmpname()`` in receiver.c). A receiver that ends in order moves it to the partial folder by itself; one that is
killed does not.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from typing import Collection

from ..._tree.staging import Staging, names_in

_TEMPORARY = re.compile(rb"^(?P<name>.+)\.[A-Za-z0-9]{6}$", re.DOTALL)


def final_name(temporary: bytes) -> bytes:
    """Name the file that a temporary one in ``--temp-dir`` was to become."""
    match = _TEMPORARY.match(temporary)
    return match.group("name") if match else temporary


def adopt(staged: Staging) -> int:
    """Move what is in ``tmp`` to ``partial``, the larger where there are two; gives the bytes that are there then.

    Only regular files of one name that belong to this transfer's user are moved, and nothing but a regular file of one
    name is replaced: the peer may have put anything there. For a moment at which no rsync of this transfer works.
    """
    temporary, partial = staged.temporary_fd, staged.partial_fd
    for name in names_in(temporary):
        size, wanted = _size(temporary, name, staged.owners), final_name(name)
        if size is None:
            continue
        try:
            old = _size(partial, wanted)  # rsync may have given it to its owner already
        except FileNotFoundError:
            old = -1
        with contextlib.suppress(FileNotFoundError):  # the peer may have removed the folder
            if old is not None and size > old:
                os.rename(name, wanted, src_dir_fd=temporary, dst_dir_fd=partial)
            else:
                os.unlink(name, dir_fd=temporary)
    return sum(_size(partial, name) or 0 for name in names_in(partial))


def _size(folder: int, name: bytes, owners: Collection[int] | None = None) -> int | None:
    """Return the size of a regular file of one name (that one of ``owners`` has); None for anything else.

    Raises FileNotFoundError.
    """
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or (owners is not None and status.st_uid not in owners):
        return None
    return status.st_size
