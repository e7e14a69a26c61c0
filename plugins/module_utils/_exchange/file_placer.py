# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Put regular files in their places at the destination. Private to the collection."""

from __future__ import annotations

import contextlib
import errno
import os
import time

from .._job.context import Context
from .._job.outcome import Outcome
from .._tree import metadata, xattr
from .._tree.entry import DIRECTORY, REGULAR, Entry
from .._tree.ids import IdMap
from .._tree.look import read_entry
from .._tree.names import escape
from .._tree.place import Root
from .extras import below
from .full import FULL, full
from .sparse import make_sparse
from .writing import write_new

_FRESH = 1.0  # seconds; then a directory is looked up again, in case it was moved or replaced meanwhile
_MADE_KNOWN = 20_000  # directories that this run made and remembers; what is in others is renamed into place


class FilePlacer:
    """Makes regular files, of content in memory or of what has arrived, with everything that belongs to them.

    Several processes may do so in one tree; ``process`` is another number in each of them.
    """

    def __init__(self, context: Context, root: Root, outcome: Outcome, process: int = 0) -> None:
        self._context, self.root, self.outcome = context, root, outcome
        settings = context.settings
        self.check = bool(settings["check"])
        self.preserve = frozenset(settings["preserve"])
        self.wants_xattrs = bool({"xattrs", "acls"} & self.preserve)
        self.powers = metadata.Powers.of_this_process()
        self._is_root = self.powers.all
        self._users = {0: "root"}
        self._groups = {0: "root"}
        self.ids = metadata.NUMERIC if settings["numeric_ids"] else IdMap(self._users, self._groups)
        self._numeric = self.ids is metadata.NUMERIC
        self._deletes = bool(settings["delete"])
        self._process, self._fresh = process, 0
        self._last: tuple[bytes | None, int, float] = (None, -1, 0.0)  # directory, its fd, when it was opened
        self.temporary_fd = -1 if self.check else self._open_temporary()
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._own = (os.geteuid(), os.getegid())
        self._keeps_all = {"owner", "group", "permissions", "times"} <= self.preserve
        self._may_rewrite = "sparse" in self.preserve and not settings.get("inplace")
        self._made: set[bytes] = set()  # directories that were made in this run and may still be filled
        self._new_folder: bytes | None = None
        self._now = time.time_ns()

    def _open_temporary(self) -> int:
        """Open the staging folder; what is made in it shall not inherit ACLs from the destination."""
        fd = os.open(os.path.join(self._context.staging, b"tmp"), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        with contextlib.suppress(OSError):  # a file system without them
            xattr.remove(fd, b".", xattr.ACL_PREFIX + b"default")
        os.fchmod(fd, 0o700)  # nor a group
        return fd

    def learn_names(self, users: dict[int, str], groups: dict[int, str]) -> None:
        """Take the source's names of ids, before the entries that have them."""
        self._users.update(users)
        self._groups.update(groups)

    def failed(self, path: bytes, error: OSError | ValueError | str) -> None:
        """List what went wrong with a path; a full destination ends the transfer."""
        if isinstance(error, OSError) and error.errno in FULL:
            raise full(self._context.root, f"{error.strerror}, at {escape(path)}")
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        self.outcome.error(escape(path), reason)

    def remember(self, path: bytes) -> None:
        """Take note of a directory that this run made: what is put there can be seen by nobody else yet."""
        if len(self._made) >= _MADE_KNOWN:
            self._made.clear()
        self._made.add(path)

    def has_made(self, path: bytes) -> bool:
        """Whether a directory is known as one that this run made."""
        return path in self._made

    def clear(self, entry: Entry, found: Entry | None) -> None:
        """Make way where something of another type is; raises OSError where it must not go."""
        if found is None or found.type == entry.type or DIRECTORY not in (found.type, entry.type):
            return
        if self.check:
            if found.type == DIRECTORY:
                gone = below(self._context.root, entry.path)
                if len(gone) > 1 and not self._deletes:
                    self.root_refuses(entry)
                self.outcome.files_deleted += len(gone)
            else:
                self.outcome.files_deleted += 1
            return
        self.outcome.files_deleted += self.root.clear_for(entry, found, self._deletes)

    @staticmethod
    def root_refuses(entry: Entry) -> None:
        """Raise what Root.clear_for would raise."""
        raise OSError(
            errno.ENOTEMPTY,
            "a directory with contents is where the source has something else, so it would all be lost: "
            "move it away, or set delete: true",
            escape(entry.path),
        )

    def temporary_name(self) -> bytes:
        """Give a name in the staging folder that nobody has."""
        self._fresh += 1
        return b"new-%d-%d" % (self._process, self._fresh)

    def finish_file(
        self, entry: Entry, found: Entry | None, folder_fd: int, name: bytes, status: os.stat_result
    ) -> None:
        """Move a regular file that has arrived complete to its place, with everything that belongs to it.

        ``status`` is what lstat says of it: with many small files every call counts.
        """
        if self._may_rewrite and entry.is_sparse and status.st_blocks * 512 >= entry.size:
            make_sparse(folder_fd, name)
            status = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
        if (
            entry.xattrs
            or status.st_mtime_ns != entry.mtime_ns
            or status.st_mode & 0o7777 != entry.mode
            or status.st_uid != self.ids.uid(entry.uid)
            or status.st_gid != self.ids.gid(entry.gid)
        ):
            self._dress(entry, found, folder_fd, name)
        self.clear(entry, found)
        if status.st_nlink == 1:
            folder, _slash, final = entry.path.rpartition(b"/")
            os.rename(name, final, src_dir_fd=folder_fd, dst_dir_fd=self._folder(folder))
        else:
            self.root.rename_into(folder_fd, name, entry.path)

    def write_file(self, entry: Entry, found: Entry | None, content: memoryview) -> None:
        """Make a regular file of its whole content, with everything that belongs to it, and move it to its place.

        With many small files every call counts: what was just made here is known without a look, and where nothing
        else can be seen in a directory yet the file gets its name at once. Its time, set last, says that it is whole.
        """
        path, _type, mode, uid, gid, _size, mtime_ns = entry[:7]
        if not self._numeric:
            uid, gid = self.ids.uid(uid), self.ids.gid(gid)
        is_own = (uid, gid) == self._own
        folder, _slash, final = path.rpartition(b"/")
        if entry.xattrs or not (is_own or self._is_root) or not self._keeps_all:
            name = self.temporary_name()
            os.close(write_new(self.temporary_fd, name, 0o600, content))
            status = os.stat(name, dir_fd=self.temporary_fd, follow_symlinks=False)
            self.finish_file(entry, found, self.temporary_fd, name, status)
            return
        folder_fd = self._folder(folder)
        at_once = found is None and folder == self._new_folder
        target, name = (folder_fd, final) if at_once else (self.temporary_fd, self.temporary_name())
        permissions = mode & 0o777
        fd = write_new(target, name, permissions if is_own else permissions & 0o700, content)
        try:
            if not is_own:
                os.fchown(fd, uid, gid)
                os.fchmod(fd, mode)
            elif permissions & ~self._umask != mode:
                os.fchmod(fd, mode)
            os.utime(fd, ns=(self._now, mtime_ns))
        finally:
            os.close(fd)
        if not at_once:
            self.clear(entry, found)
            os.rename(name, final, src_dir_fd=target, dst_dir_fd=folder_fd)

    def _folder(self, path: bytes) -> int:
        """Give the fd of a directory; most files are put where the one before was."""
        last, fd, since = self._last
        now = time.monotonic()
        if last != path or now - since > _FRESH:
            new = self.root.open_directory(path)
            if fd >= 0:
                os.close(fd)
            fd = new
            self._last = (path, fd, now)
            self._now = time.time_ns()
            self._new_folder = path if path in self._made and self._gives_nothing(fd) else None
        return fd

    @staticmethod
    def _gives_nothing(fd: int) -> bool:
        """Whether what is made in a directory belongs to its maker alone: no group and no ACL comes from above."""
        return not os.fstat(fd).st_mode & 0o2000 and not any(
            key.startswith(xattr.ACL_PREFIX) for key, _value in xattr.read(fd, b".")
        )

    def _dress(self, entry: Entry, found: Entry | None, folder_fd: int, name: bytes) -> None:
        if "permissions" not in self.preserve:
            old = found if found is not None and found.type == REGULAR else None
            metadata.chmod(folder_fd, name, old.mode if old else entry.mode & 0o777 & ~self._umask)
        staged = read_entry(folder_fd, name, entry.path, self.wants_xattrs)
        for problem in metadata.apply(folder_fd, name, entry, staged, self.preserve, self.ids, powers=self.powers):
            self.failed(entry.path, problem)

    def close(self) -> None:
        """Give back what is open."""
        for fd in (self.temporary_fd, self._last[1]):
            if fd >= 0:
                os.close(fd)
