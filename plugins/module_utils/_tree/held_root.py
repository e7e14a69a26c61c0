# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The root of a transfer, opened once and held.

The plan names a real path, and was made by what a probe found there. A user who owns a folder above it could exchange
that folder afterwards, and lead what root writes, reads or deletes elsewhere (rsync: CVE-2026-53796). So each folder on
the way is opened without following a symbolic link, what the probe saw must still be there, and all work is done from
the open descriptor.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING, Any, Callable, Mapping, cast

from .._core.errors import TransferFailed
from .._core.json_shape import WrongShape, as_object, check_members
from .descent import DIRECTORY_FLAGS

if TYPE_CHECKING:
    from typing import TypedDict

    class ProbedRoot(TypedDict):
        """A directory as a probe found it: the root, or the nearest one above it that existed."""

        path: str
        device: int
        inode: int

else:  # making such classes takes time at each job's start
    ProbedRoot = dict

# A folder on the way need not be readable; a system without O_PATH needs that.
_WAY_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_EXCHANGED = (errno.ENOTDIR, errno.ELOOP, errno.EMLINK)  # as Linux and FreeBSD say it of a symbolic link


def describe(path: bytes, fd: int) -> ProbedRoot:
    """Return an open directory as it is now; ``path`` is its real path."""
    status = os.fstat(fd)
    return {"path": os.fsdecode(path), "device": status.st_dev, "inode": status.st_ino}


def program_path(path: bytes, fd: int) -> bytes:
    """Return the path by which a program that inherits ``fd`` finds that folder, whatever ``path`` leads to by then.

    Where the system has no such path, or the folder is not open, it is ``path``.
    """
    return b"/proc/self/fd/%d" % fd if fd >= 0 and os.path.isdir("/proc/self/fd") else path


def parse_probed(value: object) -> ProbedRoot:
    """Return what a request says that the probe found; raise WrongShape."""
    found: Mapping[str, Any] = as_object(value, "probed")
    check_members(found, {"path": str, "device": int, "inode": int})
    if not found["path"].startswith("/"):
        raise WrongShape("probed has no absolute path")
    return cast(ProbedRoot, found)


def open_held(
    root: bytes,
    probed: ProbedRoot | None = None,
    make: bool = False,
    check: Callable[[bytes, os.stat_result], None] | None = None,
) -> int:
    """Open a directory by its real path; with ``make`` what is missing on the way is made. The fd is the caller's.

    ``check`` is called with the path and the status of each folder from "/" on, and may raise.
    Raises TransferFailed if something on the way is not what the probe found, and OSError if the way ends.
    """
    parts = [part for part in root.split(b"/") if part]
    known = os.fsencode(probed["path"]).rstrip(b"/") if probed is not None else None
    here = b""
    fd = os.open(b"/", _WAY_FLAGS if parts else DIRECTORY_FLAGS)
    try:
        _require(fd, here, known, probed)
        _call(check, b"/", fd)
        for number, part in enumerate(parts, 1):
            here += b"/" + part
            below = _enter(fd, part, here, DIRECTORY_FLAGS if number == len(parts) else _WAY_FLAGS, make)
            os.close(fd)
            fd = below
            _require(fd, here, known, probed)
            _call(check, here, fd)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _call(check: Callable[[bytes, os.stat_result], None] | None, path: bytes, fd: int) -> None:
    if check is not None:
        check(path, os.fstat(fd))


def _enter(fd: int, name: bytes, path: bytes, flags: int, make: bool) -> int:
    try:
        return os.open(name, flags, dir_fd=fd)
    except FileNotFoundError:
        if not make:
            raise
    except OSError as error:
        if error.errno in _EXCHANGED and _is_link(fd, name):
            raise _exchanged(path) from None
        raise
    with contextlib.suppress(FileExistsError):  # another transfer's job makes it, too
        os.mkdir(name, 0o777, dir_fd=fd)
    return os.open(name, flags, dir_fd=fd)


def _is_link(fd: int, name: bytes) -> bool:
    try:
        os.readlink(name, dir_fd=fd)
    except OSError:
        return False
    return True


def _require(fd: int, path: bytes, known: bytes | None, probed: ProbedRoot | None) -> None:
    if probed is None or path != known:
        return
    status = os.fstat(fd)
    if (status.st_dev, status.st_ino) != (probed["device"], probed["inode"]):
        raise _exchanged(path or b"/")


def _exchanged(path: bytes) -> TransferFailed:
    return TransferFailed(
        f"{os.fsdecode(path)} is no longer the folder that was there when the transfer was planned: somebody exchanged "
        "it, a file system was mounted or unmounted, or a transfer that was interrupted has just removed the empty "
        "folder that it had made. Nothing was read or written there. Look who may write to the folders above it, then "
        "run the task again"
    )
