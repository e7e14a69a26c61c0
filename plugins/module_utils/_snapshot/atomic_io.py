# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small files and the order in which they reach the disk. Private to the collection.

Everything is relative to the fd of an open directory and follows no symlink.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any, BinaryIO, Callable, Iterator, TypeVar

from .._tree.descent import DIRECTORY_FLAGS
from .names import NEW_SUFFIX

_JSON_LIMIT = 1 << 22  # bytes
T = TypeVar("T")


def open_directory(parent_fd: int, name: str) -> int:
    """Open a directory; the fd is the caller's. Raises OSError for a symlink and whatever else it is not."""
    return os.open(name, DIRECTORY_FLAGS, dir_fd=parent_fd)


def open_file(parent_fd: int, name: str) -> BinaryIO:
    """Open a file for reading."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return os.fdopen(os.open(name, flags, dir_fd=parent_fd), "rb", buffering=1 << 20)


@contextlib.contextmanager
def replacing(parent_fd: int, name: str, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Write a file that takes its place, whole and on the disk, when the block ends without an exception."""
    new = name + NEW_SUFFIX
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new, dir_fd=parent_fd)  # what a kill left
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(new, flags, mode, dir_fd=parent_fd), "wb", buffering=1 << 20) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.rename(new, name, src_dir_fd=parent_fd, dst_dir_fd=parent_fd)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new, dir_fd=parent_fd)
        raise
    os.fsync(parent_fd)


def write_json(parent_fd: int, name: str, data: Any) -> None:
    """Replace a file in one step by data, and wait until it is on the disk."""
    with replacing(parent_fd, name) as file:
        file.write(json.dumps(data, indent=1, sort_keys=True).encode("ascii") + b"\n")


def read_json(parent_fd: int, name: str, parse: Callable[[object], T]) -> T:
    """Read what write_json wrote. Raise FileNotFoundError if there is nothing, ValueError for anything else.

    ``parse`` reads the value, and raises ValueError if it has another shape.
    """
    with open_file(parent_fd, name) as file:
        text = file.read(_JSON_LIMIT + 1)
    if len(text) > _JSON_LIMIT:
        raise ValueError(f"it has more than {_JSON_LIMIT} bytes")
    return parse(json.loads(text))


def rename(parent_fd: int, old: str, new: str) -> None:
    """Rename within a directory, and wait until that is on the disk. Raise OSError if the new name is taken."""
    try:
        os.stat(new, dir_fd=parent_fd, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=parent_fd, dst_dir_fd=parent_fd)
        os.fsync(parent_fd)
    else:
        raise FileExistsError(17, "the name is taken already", new)
