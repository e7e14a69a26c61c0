# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A path that a user wrote, resolved without following a symbolic link of somebody less trusted.

A local user who owns a folder above a root could otherwise put a link there before the transfer, and lead what root
writes, reads or deletes elsewhere. Each name is opened in the open folder before it, so nothing can be exchanged
between the look at a link and the step through it. What is opened later is opened by the resolved path, which has no
links: see ``held_root``.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat
from typing import Iterable, NamedTuple

from .._core.errors import TransferFailed
from .descent import DIRECTORY_FLAGS

# A folder on the way need not be readable, and a link is opened itself. Without O_PATH the right to read is needed.
_PATH = getattr(os, "O_PATH", 0)
_FOLDER = (_PATH or os.O_NONBLOCK) | os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FOLDER = (errno.ENOTDIR, errno.ELOOP, errno.EMLINK)  # as Linux and FreeBSD say it of a symbolic link
_MOST_LINKS = 40  # path_resolution(7)
_TRIES = 1000  # for a name that is exchanged while it is opened


class ForeignLink(TransferFailed):
    """A symbolic link that is not followed, since its owner would decide where this process works."""


class ResolvedPath(NamedTuple):
    """Where a path leads.

    ``fd`` is ``folder``, the folder in which it ends: the path itself, the folder that it is in, or the nearest one
    that there is. It is for the caller to close, and good for calls that take a folder alone. ``real`` has no links;
    ``existing`` is what there is of it. ``status`` is None if nothing is there; ``dangling``: because the path itself
    is a link to nothing. ``error``: why the rest of it cannot be looked at.
    """

    fd: int
    folder: bytes
    real: bytes
    existing: bytes
    status: os.stat_result | None
    dangling: bool = False
    error: OSError | None = None


def may_follow(owner: int, entered: Iterable[int], job_uid: int) -> bool:
    """Decide whether a process of ``job_uid`` follows a symbolic link of ``owner``. Pure.

    ``entered``: the owners of the folders that are entered after the link, the one in which it ends among them. Who
    owns them all could have moved that one to the place of the link.
    """
    return owner in (0, job_uid) or all(folder == owner for folder in entered)


def resolve(path: bytes) -> ResolvedPath:
    """Resolve an absolute path; raise ForeignLink for a link that is not followed."""
    walk = _PathWalk(path)
    try:
        return walk.to_end()
    except BaseException:
        os.close(walk.fd)
        raise


def real_path(path: bytes) -> bytes:
    """Return an absolute path without links; its last names may be missing. Raise ForeignLink, and OSError."""
    found = resolve(path)
    os.close(found.fd)
    if found.error is not None:
        raise found.error
    return found.real


def open_folder(path: bytes) -> int:
    """Open a folder whose own name is no link, for the caller to close; above it links are followed as by ``resolve``.

    Raise ForeignLink, and OSError.
    """
    above, name = os.path.split(os.path.normpath(path))
    found = resolve(above)
    try:
        if found.error is not None:
            raise found.error
        if found.real != found.folder:
            missing = errno.ENOENT if found.status is None else errno.ENOTDIR
            raise OSError(missing, os.strerror(missing), os.fsdecode(path))
        return os.open(name or b".", DIRECTORY_FLAGS, dir_fd=found.fd)
    finally:
        os.close(found.fd)


class _Entered(NamedTuple):
    """A folder on the way."""

    name: bytes
    owner: int
    device: int
    inode: int


class _FollowedLink(NamedTuple):
    """A symbolic link on the way."""

    path: bytes
    owner: int
    target: bytes
    known: frozenset[tuple[int, int]]  # folders on the way to it: the path leads there without the link
    rest: int  # how many names of the path come after it

    def leads_to(self, folder: _Entered, left: int) -> bool:
        """Return whether a folder that is entered with so many names ``left`` counts as one to which the link leads."""
        return left <= self.rest or (folder.device, folder.inode) not in self.known


class _PathWalk:
    """The way from "/" to where a path leads; ``fd`` is the deepest folder so far."""

    def __init__(self, path: bytes) -> None:
        self.fd = os.open(b"/", _FOLDER)
        self._uid = os.geteuid()
        self._way = [_folder(b"", self.fd)]
        self._left = _names(path)  # the last one is the next
        self._links: list[_FollowedLink] = []
        self._is_link = False  # the path itself

    @property
    def _here(self) -> bytes:
        return b"/" + b"/".join(folder.name for folder in self._way[1:])

    def to_end(self) -> ResolvedPath:
        """Go as far as there is something, and return what that is."""
        while self._left:
            name = self._left.pop()
            try:
                status = self._step(name)
            except OSError as error:
                return self._end(name, self._here, error)
            if status is not None:
                return self._file(name, status)
        return ResolvedPath(self.fd, self._here, self._here, self._here, os.fstat(self.fd))

    def _file(self, name: bytes, status: os.stat_result) -> ResolvedPath:
        path = os.path.join(self._here, name)
        if self._left:
            return self._end(name, path, OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
        self._require(0)
        return ResolvedPath(self.fd, self._here, path, path, status)

    def _end(self, name: bytes, existing: bytes, error: OSError) -> ResolvedPath:
        real = os.path.normpath(os.path.join(self._here, name, *reversed(self._left)))
        if error.errno != errno.ENOENT:
            return ResolvedPath(self.fd, self._here, real, existing, None, error=error)
        self._require(0)
        return ResolvedPath(self.fd, self._here, real, existing, None, dangling=self._is_link)

    def _step(self, name: bytes) -> os.stat_result | None:
        """Enter a folder, or turn to where a link leads; return the status of anything else. Raise OSError."""
        for _try in range(_TRIES):
            try:
                self._enter(name, os.open(name, _FOLDER, dir_fd=self.fd))
                return None
            except OSError as error:
                if error.errno not in _NO_FOLDER:
                    raise
            status, target = _look(name, self.fd)
            if stat.S_ISLNK(status.st_mode):
                if target is None:  # exchanged meanwhile
                    continue
                self._follow(name, status.st_uid, target)
                return None
            if not stat.S_ISDIR(status.st_mode):
                return status
        raise OSError(errno.ESTALE, "it was exchanged again and again while it was looked at")

    def _enter(self, name: bytes, fd: int) -> None:
        folder = _folder(name, fd)
        os.close(self.fd)
        self.fd = fd
        if name == b"..":
            if len(self._way) > 1:
                self._way.pop()
            if self._way[-1][1:] != folder[1:]:
                raise OSError(errno.ESTALE, "a folder above it was moved while it was looked at")
        else:
            self._way.append(folder)
        self._require(len(self._left))

    def _follow(self, name: bytes, owner: int, target: bytes) -> None:
        if len(self._links) == _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        self._is_link |= not self._left
        known = frozenset((folder.device, folder.inode) for folder in self._way)
        self._links.append(_FollowedLink(os.path.join(self._here, name), owner, target, known, len(self._left)))
        if target.startswith(b"/"):
            fd = os.open(b"/", _FOLDER)
            os.close(self.fd)
            self.fd = fd
            del self._way[1:]
        names = _names(target)
        self._left += names
        if not names:
            self._require(len(self._left))

    def _require(self, left: int) -> None:
        """Raise ForeignLink if a link may not lead to the folder that was just entered with so many names ``left``."""
        folder = self._way[-1]
        for link in self._links:
            if link.leads_to(folder, left) and not may_follow(link.owner, [folder.owner], self._uid):
                raise _refusal(link, self._here, folder.owner, self._uid)


def _names(path: bytes) -> list[bytes]:
    """Return the names in a path, the last one first."""
    return [name for name in reversed(path.split(b"/")) if name not in (b"", b".")]


def _folder(name: bytes, fd: int) -> _Entered:
    status = os.fstat(fd)
    return _Entered(name, status.st_uid, status.st_dev, status.st_ino)


def _look(name: bytes, parent: int) -> tuple[os.stat_result, bytes | None]:
    """Return the status of a name, and where it leads if it is a link: None if it was exchanged meanwhile."""
    if not _PATH:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        target = os.readlink(name, dir_fd=parent) if stat.S_ISLNK(status.st_mode) else None
        now = os.stat(name, dir_fd=parent, follow_symlinks=False)
        is_same = (status.st_dev, status.st_ino, status.st_ctime_ns) == (now.st_dev, now.st_ino, now.st_ctime_ns)
        return status, target if is_same else None
    fd = os.open(name, _PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        status = os.fstat(fd)
        return status, os.readlink(b"", dir_fd=fd) if stat.S_ISLNK(status.st_mode) else None
    finally:
        os.close(fd)


def _refusal(link: _FollowedLink, place: bytes, owner: int, job_uid: int) -> ForeignLink:
    import shlex  # here, since it takes its time to import, and hardly anything is refused

    path, trusted = os.fsdecode(link.path), "root" if job_uid == 0 else f"root or {_user(job_uid)}"
    return ForeignLink(
        f"{path} is a symbolic link of {_user(link.owner)} to {os.fsdecode(link.target)}, and so leads to "
        f"{os.fsdecode(place)}, which belongs to {_user(owner)}. It is not followed, because the owner of the link "
        f"would decide where {_user(job_uid)} reads, writes and deletes. Nothing was touched there. Find out who made "
        f"it (ls -ld {shlex.quote(path)}). If it is meant, name the path that `realpath` prints for it, or let the "
        f"link belong to {trusted} (chown -h)"
    )


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return f"user id {uid}"
