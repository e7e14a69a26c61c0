# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Put regular files in their places at the destination."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from typing import Callable

from ..._core.context import Context
from ..._core.disk_full import FULL, full_disk
from ..._core.outcome import Outcome
from ..._model.entry import REGULAR, SYMLINK, Entry, entry_from_stat
from ..._model.ids import IdMap, acl_mode
from ..._model.paths import escape
from ..._tree import metadata, xattr
from ..._tree.dirfd import Root
from ..._tree.inner_staging import InnerStaging
from ..._tree.inode import Inode
from ..._tree.staging import open_staging
from ..._tree.stat_entry import stat_entry
from ..content.sparse import allocate, make_sparse
from .new_file import copy_file, write_new

ENTRY_ERRORS = (OSError, ValueError, OverflowError)  # of one entry; the last if it has a number that is too large

_FRESH = 1.0  # seconds; then a directory is looked up again, in case it was moved or replaced meanwhile
_MADE_KNOWN = 20_000  # directories that this run made and remembers; what is in others is renamed into place


class FileApplier:
    """Makes regular files, of content in memory or of what has arrived, with everything that belongs to them.

    Several processes may do so in one tree; ``process`` is another number in each of them.
    """

    def __init__(
        self, context: Context, root: Root, outcome: Outcome, process: int = 0, staging_fd: int | None = None
    ) -> None:
        self._context, self.root, self.outcome = context, root, outcome
        settings = context.settings
        self.check = bool(settings["check"])
        self.preserve = frozenset(settings["preserve"])
        self.wants_xattrs = bool({"xattrs", "acls"} & self.preserve)
        self.powers = metadata.Powers.of_this_process(settings.get("trust") != "none")
        self._is_root = self.powers.all
        self.ids = IdMap.of(settings.get("owner_map"))
        self._numeric = bool(settings["numeric_ids"]) and not settings.get("owner_map")
        self._process, self._fresh = process, 0
        self._last: tuple[bytes | None, int, float] = (None, -1, 0.0)  # directory, its fd, when it was opened
        self.temporary_fd = -1 if self.check else self._open_temporary(staging_fd)
        self.inner = InnerStaging(root, self.temporary_fd, context.root, settings["id"], ())
        self._stage: tuple[bytes | None, int] = (None, -1)  # a directory, and where what goes there is staged
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._own = (os.geteuid(), os.getegid())
        self._keeps_all = {"owner", "group", "permissions", "times"} <= self.preserve
        self._keeps_holes = "sparse" in self.preserve
        self._may_rewrite = self._keeps_holes and not settings.get("inplace")
        # What a folder hands down to what is made in it, though that is made in the staging folder.
        self._inherits_acl = "acls" not in self.preserve
        self._inherited_acl = b""  # of the last folder: its default ACL
        self._made: set[bytes] = set()  # directories that were made in this run and may still be filled
        self._new_folder: bytes | None = None
        self._now = time.time_ns()

    def _open_temporary(self, staging_fd: int | None) -> int:
        """Take the staging folder; what is made in it must not inherit ACLs from the destination.

        ``staging_fd`` is the folder as another process has opened it for this one.
        """
        fd = os.dup(open_staging(self._context).temporary_fd if staging_fd is None else staging_fd)
        _inherit_nothing(fd)
        return fd

    # file systems that are mounted inside the destination

    @property
    def stage_fd(self) -> int:
        """The folder to stage in what goes to the last directory. Raises OSError if nothing may be written there."""
        if not self.inner.is_used:
            return self.temporary_fd
        path, folder_fd, _since = self._last
        if self._stage[0] != path:
            self._set_stage(path or b"", folder_fd)
        return self._stage[1]

    def _stages_elsewhere(self, error: OSError, stage: int) -> bool:
        """Return whether a file that could not leave ``stage`` can be staged on the last directory's file system."""
        if error.errno != errno.EXDEV:
            return False
        self._set_stage(self._last[0] or b"", self._last[1])
        return self._stage[1] != stage

    def staged(self, path: bytes, place: Callable[[int], None]) -> None:
        """Call ``place`` with the folder to stage in what goes to a path, and again if that must be another one."""
        self._folder(path.rpartition(b"/")[0])
        stage = self.stage_fd
        try:
            place(stage)
        except OSError as error:
            if not self._stages_elsewhere(error, stage):
                raise
            place(self.stage_fd)

    def stage_at(self, path: bytes) -> int:
        """Return the folder to stage in what goes to a path, by what is known so far. Raises OSError."""
        self._folder(path.rpartition(b"/")[0])
        return self.stage_fd

    def find_stage(self, path: bytes) -> None:
        """Find out where to stage what goes to a path. Raises OSError if nothing may be written."""
        folder = path.rpartition(b"/")[0]
        self._set_stage(folder, self._folder(folder))

    def _set_stage(self, path: bytes, folder_fd: int) -> None:
        inner = self.inner.at(path, folder_fd)
        if inner is not None and self._stage[1] != inner.temporary_fd:
            _inherit_nothing(inner.temporary_fd)
        self._stage = (path, self.temporary_fd if inner is None else inner.temporary_fd)

    def _bring(self, folder_fd: int, name: bytes) -> tuple[bytes, os.stat_result]:
        """Copy a staged file to the file system of the last directory; return its name in ``stage_fd``, and lstat."""
        brought = self.temporary_name()
        with Root(folder_fd) as folder:
            copy_file(folder, stat_entry(folder_fd, name, name), self.stage_fd, brought)
        return brought, os.stat(brought, dir_fd=self.stage_fd, follow_symlinks=False)

    def failed(self, path: bytes, error: OSError | ValueError | OverflowError | str) -> None:
        """List what went wrong with a path; a full destination ends the transfer."""
        if isinstance(error, OSError) and error.errno in FULL:
            raise full_disk(error, self._context, f"{error.strerror}, at {escape(path)}")
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        self.outcome.error(escape(path), reason)

    def note(self, path: bytes, problems: list[str]) -> None:
        """List what metadata.apply could not set, and count what it left out on purpose."""
        for problem in problems:
            if isinstance(problem, metadata.Withheld):
                self.outcome.withhold(str(problem), escape(path))
            else:
                self.failed(path, problem)

    def remember(self, path: bytes) -> None:
        """Take note of a directory that this run made: what is put there can be seen by nobody else yet."""
        if len(self._made) >= _MADE_KNOWN:
            self._made.clear()
        self._made.add(path)

    def has_made(self, path: bytes) -> bool:
        """Return whether a directory is known as one that this run made."""
        return path in self._made

    def clear(self, entry: Entry, found: Entry | None) -> None:
        """Make way where something of another type is. Raises InTheWay for a directory with contents."""
        self.root.clear_for(entry, found, self.check)

    def temporary_name(self) -> bytes:
        """Return an unused name in the staging folder."""
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
        elif not self._keeps_holes and entry.is_sparse and status.st_blocks * 512 < entry.size:
            status = allocate(folder_fd, name, entry.size, status)
        folder, _slash, final = entry.path.rpartition(b"/")
        final_fd = self._folder(folder)
        if (
            not self._keeps_all
            or self._inherited_acl
            or entry.xattrs
            or status.st_mtime_ns != entry.mtime_ns
            or status.st_mode & 0o7777 != entry.mode
            or status.st_uid != self.ids.uid(entry.uid)
            or status.st_gid != self.ids.gid(entry.gid)
        ):
            self._dress(entry, found, folder_fd, name, status)
        self.clear(entry, found)
        try:
            if status.st_nlink == 1:
                os.rename(name, final, src_dir_fd=folder_fd, dst_dir_fd=final_fd)
            else:
                self.root.rename_into(folder_fd, name, entry.path)
        except OSError as error:
            if not self._stages_elsewhere(error, folder_fd):
                raise
            brought, status = self._bring(folder_fd, name)
            self.finish_file(entry, found, self.stage_fd, brought, status)
            os.unlink(name, dir_fd=folder_fd)

    def write_file(self, entry: Entry, found: Entry | None, content: memoryview) -> None:
        """Make a regular file of its whole content, with everything that belongs to it, and move it to its place.

        With many small files every call counts: what was just made here is known without a look, and where nothing
        else can be seen in a directory yet the file gets its name at once. Its time, set last, says that it is whole.
        """
        path, _type, mode, uid, gid, size, mtime_ns = entry[:7]
        sparse = self._keeps_holes and entry.blocks * 512 < size
        if not self._numeric:
            uid, gid = self.ids.uid(uid), self.ids.gid(gid)
        is_own = (uid, gid) == self._own
        folder, _slash, final = path.rpartition(b"/")
        folder_fd = self._folder(folder)
        usual = metadata.EARLIEST_NS <= mtime_ns <= metadata.LATEST_NS
        plain = self._keeps_all and usual and not entry.xattrs and not self._inherited_acl
        if not plain or not (is_own or self._is_root):
            name, target = self.temporary_name(), self.stage_fd
            os.close(write_new(target, name, 0o600, content, sparse))
            status = os.stat(name, dir_fd=target, follow_symlinks=False)
            self.finish_file(entry, found, target, name, status)
            return
        at_once = found is None and folder == self._new_folder
        target, name = (folder_fd, final) if at_once else (self.stage_fd, self.temporary_name())
        permissions = mode & 0o777
        fd = write_new(target, name, permissions if is_own else permissions & 0o700, content, sparse)
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
            try:
                os.rename(name, final, src_dir_fd=target, dst_dir_fd=folder_fd)
            except OSError as error:
                os.unlink(name, dir_fd=target)
                if not self._stages_elsewhere(error, target):
                    raise
                self.write_file(entry, found, content)

    def _folder(self, path: bytes) -> int:
        """Return the fd of a directory; most files go to the same one as the file before."""
        last, fd, since = self._last
        now = time.monotonic()
        if last != path or now - since > _FRESH:
            new = self.root.open_directory(path)
            if fd >= 0:
                os.close(fd)
            fd = new
            self._last = (path, fd, now)
            self._now = time.time_ns()
            self._new_folder = path if path in self._made and self._is_private(fd) else None
            if self._inherits_acl:
                self._inherited_acl = dict(xattr.read(fd, b".")).get(xattr.DEFAULT_ACL, b"")
        return fd

    def _is_private(self, fd: int) -> bool:
        """Return whether a new file in a directory is its maker's alone: it inherits no group and no ACL, and nobody
        else may exchange it.
        """
        status = os.fstat(fd)
        return (
            not status.st_mode & 0o2022
            and status.st_uid == self._own[0]
            and not any(key.startswith(xattr.ACL_PREFIX) for key, _value in xattr.read(fd, b"."))
        )

    def _dress(self, entry: Entry, found: Entry | None, folder_fd: int, name: bytes, status: os.stat_result) -> None:
        old = found if found is not None and found.type == REGULAR else None
        arrived = entry_from_stat(entry.path, status)
        with Inode(folder_fd, name, arrived) as inode:
            if old is None or (old.dev, old.ino) != (status.st_dev, status.st_ino):  # else it was written in place
                self._inherit(entry, old, inode, arrived)
            self._set(inode, entry, inode.entry(entry.path, self.wants_xattrs))

    def _set(self, inode: Inode, entry: Entry, found: Entry | None) -> None:
        """Set the metadata of what is held, which has those of ``found``; None: look."""
        self.note(entry.path, metadata.dress(inode, entry, found, self.preserve, self.ids, powers=self.powers))

    def _inherit(self, entry: Entry, old: Entry | None, inode: Inode, arrived: Entry) -> None:
        """Set what something staged would have if it had been created in place, as far as that is not preserved.

        That is the user's own ids, or the group of a setgid folder; the folder's default ACL; and the mode of the file
        that it replaces, or one that the default ACL or the umask allows.
        """
        uid, gid = (arrived.uid if "owner" in self.preserve else self._own[0]), arrived.gid
        if "group" not in self.preserve:
            folder = os.fstat(self._last[1])
            gid = folder.st_gid if folder.st_mode & 0o2000 else self._own[1]
        if (uid, gid) != (arrived.uid, arrived.gid):
            inode.chown(uid, gid)
        if arrived.type == SYMLINK:
            return
        allowed = ~self._umask
        if self._inherited_acl:
            inode.set_xattr(xattr.ACCESS_ACL, self._inherited_acl)
            allowed = acl_mode(self._inherited_acl)
        if "permissions" not in self.preserve:
            if old is None:
                mode = entry.mode & 0o777 & allowed
            else:  # its contents are another's now
                mode = old.mode & ~(0o4000 if old.uid != uid else 0) & ~(0o2000 if old.gid != gid else 0)
            inode.chmod(mode)

    def close(self) -> None:
        """Close what is open."""
        self.inner.close()
        for fd in (self.temporary_fd, self._last[1]):
            if fd >= 0:
                os.close(fd)


def _inherit_nothing(folder_fd: int) -> None:
    """Let nothing that is made in an open folder of this transfer's inherit an ACL or a group."""
    with contextlib.suppress(OSError), Inode(folder_fd, b".") as folder:  # a file system without ACLs
        folder.remove_xattr(xattr.DEFAULT_ACL)
    os.fchmod(folder_fd, 0o700)
