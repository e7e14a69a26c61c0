# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists of the files that the peer may read or write: the session tells them to the SFTP servers beside it.

The session runs in one process of the serving end, and each SFTP server in another. The list of a shard is a file in
the job's own folder, there from before the peer hears of the shard until its files were collected. To the peer a file
is ``view-SHARD/NUMBER``; what that means stands in the list alone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import Iterable, NamedTuple

_FOLDER = "shards"


class ServedFile(NamedTuple):
    """A file that the peer may access: its path below the folder that is served, and its planned size."""

    path: bytes
    size: int


def dump(files: Iterable[tuple[int, ServedFile]]) -> bytes:
    """Return a list as bytes."""
    return b"".join(b"%d %d %s\0" % (number, file.size, file.path) for number, file in files)


def parse(data: bytes) -> dict[int, ServedFile]:
    """Return the files of a list by their numbers."""
    found = {}
    for line in data.split(b"\0")[:-1]:
        number, size, path = line.split(b" ", 2)
        found[int(number)] = ServedFile(path, int(size))
    return found


class ShardLists:
    """The lists of a transfer, in a folder that is held open. Lists of an earlier job are removed."""

    def __init__(self, job_folder: str) -> None:
        folder = os.path.join(job_folder, _FOLDER)
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder, 0o700)
        self.fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._read: tuple[int, int, dict[int, ServedFile]] = (-1, -1, {})  # the last one: shard, inode, files

    def write(self, shard: int, files: Iterable[tuple[int, ServedFile]]) -> None:
        """Let the peer have these files of a shard, by their numbers."""
        new = f"{shard}.new"
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600, dir_fd=self.fd)
        with open(fd, "wb") as stream:
            stream.write(dump(files))
        os.rename(new, str(shard), src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def remove(self, shard: int) -> None:
        """Let the peer have nothing of a shard any more."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(str(shard), dir_fd=self.fd)

    def read(self, shard: int) -> dict[int, ServedFile]:
        """Return the files of a shard, by their numbers; none if there is no such shard now."""
        try:
            inode = os.stat(str(shard), dir_fd=self.fd).st_ino
            if self._read[:2] != (shard, inode):
                self._read = (shard, inode, parse(self._content(shard)))
        except FileNotFoundError:
            return {}
        return self._read[2]

    def _content(self, shard: int) -> bytes:
        fd = os.open(str(shard), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.fd)
        with open(fd, "rb") as stream:
            return stream.read()
