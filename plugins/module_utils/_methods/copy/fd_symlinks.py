# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A view of files under names that no program can stumble over.

scp and sftp know neither hostile names nor paths longer than PATH_MAX, and they follow whatever symlink a parent
became. So each file that should be sent is opened here, from the root down and without following anything, and a folder
gets a symlink with a number for a name that leads to the open file: ``/proc/PID/fd/N``.
"""

from __future__ import annotations

import os
import re
import resource
import shutil

from ..._core.context import Context
from ..._engine.net.carrier import FileRequest
from ..._tree.dirfd import Root

_HAS_PROC = os.path.isdir("/proc/self/fd")
_VIEW = re.compile(r"view-(0|[1-9][0-9]{0,9})")
_MOST_FDS = 16384
_SPARE_FDS = 256  # for everything else that the process has open


def view_name(shard: int) -> str:
    """Name a shard's view."""
    return f"view-{shard}"


def shard_of(name: str) -> int | None:
    """Return the shard whose view has this name; None if it is no view's."""
    found = _VIEW.fullmatch(name)
    return int(found.group(1)) if found else None


def raise_fd_limit() -> None:
    """Let this process open as many files as a few shards have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FDS if hard == resource.RLIM_INFINITY else min(hard, _MOST_FDS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def fd_room(streams: int) -> int:
    """How many files each of so many streams may hold open."""
    return max(1, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _SPARE_FDS) // streams)


class View:
    """A folder with a symlink for each file; a context manager that closes and removes it again.

    ``problems`` says, by index, which files could not be opened. Where the system has no /proc, or the process may not
    open as many files (``room``), the symlink leads to the path itself.
    """

    def __init__(self, context: Context, folder: str, files: list[FileRequest], room: int) -> None:
        self.folder, self._root = folder, context.root
        self.problems: dict[int, str] = {}
        self._fds: list[int] = []
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, mode=0o700)
        with Root(context.top) as source:
            for file in files:
                self._add(source, file, room)

    def _add(self, source: Root, file: FileRequest, room: int) -> None:
        try:
            fd = source.open_file(file.entry.path)
        except OSError as error:
            self.problems[file.index] = f"cannot be read: {error.strerror}"
            return
        if _HAS_PROC and len(self._fds) < room:
            self._fds.append(fd)
            target = b"/proc/%d/fd/%d" % (os.getpid(), fd)
        else:
            os.close(fd)
            target = os.path.join(self._root, file.entry.path)
        os.symlink(target, os.path.join(self.folder, str(file.index)))

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_exception: object) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
        shutil.rmtree(self.folder, ignore_errors=True)
