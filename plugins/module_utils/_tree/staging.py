# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of the destination that belongs to a transfer while it runs.

``<root>/.longhaul-<id>/tmp`` takes files on their way, ``partial`` what an interrupted run left of them. Neither its
making nor its end may show: the root keeps its times, so that a rerun that has nothing to do changes nothing.

The folders are opened once, before the peer can say anything, and must be this user's own. Whatever is done in
them later is done by descriptor: what somebody puts in the place of their names leads nowhere.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Any, Callable, Collection, Iterator, Mapping

from .._core.context import Context, staging_name
from .._core.counted import among
from .._core.errors import TransferFailed
from .._model.paths import unescape

TEMPORARY, PARTIAL = b"tmp", b"partial"
MOUNTS = b"mounts"  # a file with the escaped paths of the folders below the root that have staging folders, too
_WRITABLE_BY_OTHERS, _OPEN_TO_OTHERS, _OWNERS_OWN = 0o022, 0o077, 0o700
_PROBE = b".longhaul-probe-%s"  # a file that shows whom, and with which modes, a file system lets files belong to


def take_back(made: list[bytes]) -> None:
    """Remove folders that were made for a transfer, the deepest first, as far as nothing arrived in them."""
    from .resolve import resolve  # here, since a transfer that succeeds never needs it

    with contextlib.suppress(OSError, TransferFailed):
        for folder in made:
            above, name = os.path.split(folder)
            found = resolve(above)
            try:
                if found.real == above:  # else somebody led it elsewhere meanwhile
                    os.rmdir(name, dir_fd=found.fd)
            finally:
                os.close(found.fd)


class Staging:
    """The open staging folders of one transfer, made where they are missing. Close it when done.

    ``owners``: users other than this process's own to whom they may belong. ``root_fd``: the root, where it is open
    already. Raises TransferFailed if what is there
    was not made by this user for itself, and OSError where the folders cannot be made.
    """

    def __init__(self, root: bytes, name: bytes, owners: Collection[int] = (), root_fd: int = -1) -> None:
        self.path = os.path.join(root, name)
        self.owners = frozenset([os.geteuid(), *owners])
        self._name = name
        self._fds: list[int] = []
        self._keeps_modes = True
        self.gone: list[str] = []  # of these paths, those where there is no staging folder any more
        try:
            held = os.dup(root_fd) if root_fd >= 0 else os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self.root_fd = self._keep(held)
            with self._times_kept():
                self.fd = self._open(self.root_fd, name, self.path)
                self.temporary_fd = self._open(self.fd, TEMPORARY, os.path.join(self.path, TEMPORARY))
                self.partial_fd = self._open(self.fd, PARTIAL, os.path.join(self.path, PARTIAL))
        except BaseException:
            self.close()
            raise

    def _keep(self, fd: int) -> int:
        self._fds.append(fd)
        return fd

    def close(self) -> None:
        """Close the descriptors."""
        while self._fds:
            os.close(self._fds.pop())

    def _open(self, parent: int, name: bytes, path: bytes) -> int:
        _remove_symlink(parent, name)
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent)
        try:
            fd = self._keep(_open_folder(parent, name))
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EMLINK):  # as Linux and FreeBSD say it of a symlink
                raise _refused(path, f"it is {_kind(parent, name)}") from None
            if error.errno == errno.EACCES:
                raise _refused(path, "this user may not open it") from None
            raise
        self._check(fd, path)
        return fd

    def _check(self, fd: int, path: bytes) -> None:
        """Refuse a folder that belongs to another user, or into which another user may have put something."""
        status = os.fstat(fd)
        if status.st_uid not in self.owners:
            self._learn()
        if status.st_uid not in self.owners:
            raise _refused(path, f"it belongs to user id {status.st_uid}, and this transfer runs as {os.geteuid()}")
        if status.st_mode & _WRITABLE_BY_OTHERS and self._keeps_modes:
            self._learn()
        if status.st_mode & _WRITABLE_BY_OTHERS and self._keeps_modes:
            raise _refused(path, f"others than its owner may write to it (mode {status.st_mode & 0o7777:04o})")
        is_closed = status.st_mode & _OWNERS_OWN != _OWNERS_OWN
        if (is_closed or status.st_mode & _OPEN_TO_OTHERS) and self._keeps_modes:
            os.fchmod(fd, _OWNERS_OWN)

    def _learn(self) -> None:
        """Ask the file system whom it lets our files belong to (NFS maps root), and whether it keeps modes (CIFS)."""
        name = _PROBE % os.urandom(8).hex().encode()
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=self.root_fd)
        try:
            status = os.fstat(fd)
        finally:
            os.close(fd)
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=self.root_fd)
        self.owners |= {status.st_uid}
        self._keeps_modes = not status.st_mode & _OPEN_TO_OTHERS

    @contextlib.contextmanager
    def _times_kept(self) -> Iterator[None]:
        """Restore the times of the root afterwards, whatever is created or removed in it meanwhile."""
        before = os.fstat(self.root_fd)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.utime(self.root_fd, ns=(before.st_atime_ns, before.st_mtime_ns))

    def below_temporary(self, name: bytes) -> int:
        """Open a folder in ``tmp``, made where it is missing; the descriptor is the caller's."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=self.temporary_fd)
        fd = _open_folder(self.temporary_fd, name)
        try:
            if os.fstat(fd).st_mode & _OWNERS_OWN != _OWNERS_OWN:
                os.fchmod(fd, _OWNERS_OWN)
        except BaseException:
            os.close(fd)
            raise
        return fd

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What a process that works in the folders must keep open."""
        return tuple(self._fds)

    def give_to(self, uid: int, gid: int) -> None:
        """Let the folders belong to another user, as whom a program works in them."""
        self.owners |= {uid}
        for fd in (self.fd, self.temporary_fd, self.partial_fd):
            os.fchown(fd, uid, gid)

    def prepare(self, adopt: Callable[[Staging], Any] | None = None) -> bool:
        """Clear ``tmp``, and say whether an interrupted run left partial files.

        ``adopt`` is the method's own way to make partial files of what is in ``tmp``; what it leaves there goes.
        """
        if adopt is not None:
            adopt(self)
        try:
            _empty(self.temporary_fd)
        except OSError as error:
            raise TransferFailed(
                f"{os.fsdecode(os.path.join(self.path, TEMPORARY))} cannot be cleared of what an earlier run left: "
                f"{_said(error)}. Remove it by hand, and run the task again"
            ) from error
        has_partial = bool(names_in(self.partial_fd))
        for _path, inner in self._inner():
            has_partial |= inner.prepare()
        return has_partial

    def _inner(self) -> Iterator[tuple[str, Staging]]:
        """Yield the staging folders on file systems that are mounted inside the root, each with its path.

        They are closed afterwards. A path that has none is noted in ``gone``.
        """
        from .dirfd import Root  # here, since the source never needs it

        for path in self._mounts():
            with contextlib.ExitStack() as held:
                try:
                    fd = held.enter_context(Root(self.root_fd)).open_directory(unescape(path))
                    held.callback(os.close, fd)
                    os.stat(self._name, dir_fd=fd, follow_symlinks=False)
                except OSError:
                    self.gone += [path] if path not in self.gone else []
                    continue
                top = os.path.join(os.path.dirname(self.path), unescape(path))
                yield path, held.enter_context(contextlib.closing(Staging(top, self._name, self.owners, fd)))

    def warnings(self) -> list[str]:
        """Return what a person should know of what an earlier run left."""
        if not self.gone:
            return []
        return [
            f"an interrupted run kept files at the destination in {os.fsdecode(self._name)} below "
            f"{among([repr(self.gone[0])], len(self.gone))}, on a file system that was mounted there. They are gone "
            "and are sent again. If it should be mounted, mount it, and run the task again"
        ]

    def _mounts(self) -> list[str]:
        """Return the paths that stand in the file of mounts."""
        try:
            fd = os.open(MOUNTS, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self.fd)
        except OSError:
            return []
        with open(fd, encoding="utf-8", errors="surrogateescape") as lines:
            return list(dict.fromkeys(line.rstrip("\n") for line in lines))

    def _settle_inner(self, keep_partial: bool) -> str:
        """Settle the staging folders inside, and forget those that are no longer there; see settle."""
        left, kept = "", []
        for path, inner in self._inner():
            left = left or inner.settle(keep_partial)
            with contextlib.suppress(FileNotFoundError):
                os.stat(self._name, dir_fd=inner.root_fd, follow_symlinks=False)
                kept.append(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(MOUNTS, dir_fd=self.fd)
        for path in [*kept, *(self.gone if keep_partial else ())]:
            note_mount(self.temporary_fd, path)
        return left

    def settle(self, keep_partial: bool) -> str:
        """Remove the folders; with ``keep_partial`` only where they hold nothing of use to a rerun.

        Return why they could not be removed; empty if they are gone, or stay on purpose.
        """
        left = self._settle_inner(keep_partial)
        if left:
            return left
        if keep_partial and _holds_files(self.fd):
            return ""
        try:
            with self._times_kept():
                _empty(self.temporary_fd)  # where they are, and what they are called, now does not matter
                _empty(self.partial_fd)
                _empty(self.fd)
                os.rmdir(self._name, dir_fd=self.root_fd)
        except OSError as error:
            return f"{os.fsdecode(self.path)} cannot be removed: {_said(error)}. Remove it by hand"
        return ""


def note_mount(temporary_fd: int, path: str) -> None:
    """Note beside the open folder ``tmp`` that a folder below the root, by its escaped path, has staging folders."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(os.path.join(b"..", MOUNTS), flags, 0o600, dir_fd=temporary_fd)
    try:
        os.write(fd, f"{path}\n".encode("utf-8", "surrogateescape"))
    finally:
        os.close(fd)


def open_staging(context: Context) -> Staging:
    """Return the staging folders of a transfer; open them where they are not open yet.

    Methods work in them by descriptor alone. Raises TransferFailed if they are not this transfer's own.
    """
    if context.staged is None:
        owners = owners_of(context.top, context.settings)
        name = os.fsencode(staging_name(context.settings["id"]))
        context.staged = Staging(context.root, name, owners, context.root_fd)
    staged: Staging = context.staged
    return staged


def owners_of(root: bytes | int, settings: Mapping[str, Any]) -> list[int]:
    """Return the users but this one to whom the staging folders of a root may belong: that of an rsyncd module."""
    return [os.stat(root).st_uid] if settings.get("rsyncd_module") else []


def _open_folder(parent: int, name: bytes) -> int:
    """Open a folder in an open one, following no symlink; one of this user's own even if it may not be read.

    The default ACL of its parent, which counts more than the mode that mkdir is given, can withhold that.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=parent)
    except PermissionError as error:
        from .inode import Inode, exchanged  # here, since the source never needs it

        with Inode(parent, name) as held:
            status = held.status()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                raise error
            held.chmod(_OWNERS_OWN)
        fd = os.open(name, flags, dir_fd=parent)
        if not os.path.samestat(os.fstat(fd), status):
            os.close(fd)
            raise exchanged() from None
        return fd


def names_in(fd: int) -> list[bytes]:
    """Return what is in an open directory now: some file systems list through it what was there when it was opened."""
    again = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
    try:
        return [os.fsencode(name) for name in os.listdir(again)]
    finally:
        os.close(again)


def _empty(fd: int) -> None:
    """Remove what is in an open directory, as far as that can be done, following no symlink.

    Raises OSError, the first that was met, where something stays.
    """
    from .dirfd import Root  # here, since the source never needs it

    problem: OSError | None = None
    with Root(fd) as folder:
        for name in names_in(fd):
            try:
                folder.remove(name)
            except FileNotFoundError:
                continue
            except OSError as error:
                problem = problem or error
    if problem is not None:
        raise problem


def _holds_files(fd: int) -> bool:
    """Return whether an open directory has anything but readable directories below it, at any depth."""
    from .._model.entry import DIRECTORY
    from .walk import walk

    unread: list[bytes] = []
    found = walk(fd, on_error=lambda path, _error: unread.append(path))
    return any(entry.type != DIRECTORY for entry in found) or bool(unread)


def _said(error: OSError) -> str:
    about = os.fsdecode(error.filename) if error.filename else ""
    return f"{about}: {error.strerror}" if about else str(error.strerror)


def _remove_symlink(parent: int, name: bytes) -> None:
    """Remove a symlink that stands where a folder of this transfer belongs.

    A host that was hostile, or a user who owns the root, can leave one there, and each later run would be refused until
    a person removes it. It holds no data, and what it leads to stays as it is: only the name goes. A file could hold
    somebody's data, and so can a folder of another user: they are left to a person.
    """
    with contextlib.suppress(OSError):  # whatever stays is met when the folder is opened
        if stat.S_ISLNK(os.lstat(name, dir_fd=parent).st_mode):
            os.unlink(name, dir_fd=parent)


def _kind(parent: int, name: bytes) -> str:
    with contextlib.suppress(OSError):
        status = os.lstat(name, dir_fd=parent)
        what = "a file" if stat.S_ISREG(status.st_mode) else "a symbolic link" if stat.S_ISLNK(status.st_mode) else ""
        return f"{what or 'no directory'} of user id {status.st_uid}"
    return "no directory"


def _refused(path: bytes, why: str) -> TransferFailed:
    import shlex  # here, since it takes its time to import, and hardly anything is refused

    quoted = shlex.quote(os.fsdecode(path))
    return TransferFailed(
        f"{os.fsdecode(path)} cannot be the folder of this transfer, in which it keeps files until they are complete: "
        f"{why}. Nothing in it was touched. Look at it with `ls -la {quoted}`, remove it "
        f"with `rm -r {quoted}`, and run the task again"
    )
