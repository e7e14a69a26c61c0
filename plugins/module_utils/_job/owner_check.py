# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that a destination's file system keeps owners, before anything is sent.

A file system of another machine may refuse root what a local one allows it (NFS with root_squash, CIFS without POSIX
extensions), and a whole tree that arrives with the wrong owners is no copy.
"""

from __future__ import annotations

import contextlib
import os

from .._core.context import Context
from .._core.errors import TransferFailed
from .._tree.staging import open_staging

_NAME = b"owner"
_OTHER = 1  # an id that is not root's


def require_owners(context: Context) -> None:
    """Try to give a file in the staging folder away, where the transfer must keep owners.

    Raises TransferFailed if the file system refuses, or keeps the old owner without an error. Does nothing for users
    other than root, who cannot give files away anywhere.
    """
    if os.geteuid() != 0 or not {"owner", "group"} & set(context.settings["preserve"]):
        return
    reason = _refusal(open_staging(context).temporary_fd)
    if reason:
        raise TransferFailed(
            f"the file system of {os.fsdecode(context.root)} does not keep owners ({reason}), as NFS with root_squash "
            "and CIFS without POSIX extensions do not. Nothing was written. Export it with no_root_squash, or set "
            "preserve without owner and group"
        )


def _refusal(folder_fd: int) -> str:
    """Return why files in the folder cannot be given away; empty if they can."""
    fd = os.open(_NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder_fd)
    try:
        os.fchown(fd, _OTHER, _OTHER)
        status = os.fstat(fd)
        return "" if (status.st_uid, status.st_gid) == (_OTHER, _OTHER) else "chown has no effect"
    except OSError as error:
        return f"chown: {error.strerror}"
    finally:
        os.close(fd)
        with contextlib.suppress(OSError):
            os.unlink(_NAME, dir_fd=folder_fd)
