# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make entries what they shall be at the destination, and count what that took. Private to the collection."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time

from .._job.context import Context
from .._job.outcome import Outcome
from .._tree import metadata, xattr
from .._tree.compare import ATTRIBUTES, CREATE, NONE, REPLACE, Verdict, compare
from .._tree.descent import DIRECTORY_FLAGS
from .._tree.entry import DIRECTORY, REGULAR, SYMLINK, Entry
from .._tree.ids import IdMap
from .._tree.look import read_entry
from .._tree.manifest import Decoder, encode
from .._tree.names import escape
from .._tree.place import ABSENT, Root
from .extras import below
from .full import FULL, full
from .links import Follower
from .sparse import make_sparse
from .spool import Spool
from .writing import write_new

_FRESH = 1.0  # seconds; then a directory is looked up again, in case it was moved or replaced meanwhile
_MADE_KNOWN = 20_000  # directories that this run made and remembers; what is in others is renamed into place
_UNCHANGED = Verdict(NONE, " " * 11, frozenset())  # nobody is shown what did not change


class Placer:
    """Everything that writes below the destination root. In check mode it writes nothing, and counts the same."""

    def __init__(self, context: Context, root: Root, outcome: Outcome) -> None:
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
        self._limit = int(settings["changes_max"])
        self._arrow = ">" if context.part == "drive" else "<"
        self._created: dict[str, Verdict] = {}  # by type: what is new is all the same
        self._spool = Spool(context.folder)
        self._deletes = bool(settings["delete"])
        self._fresh = 0
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

    def look(self, path: bytes) -> Entry | None:
        """Give what is at the path now, None where nothing is or no way leads there."""
        folder, _slash, name = path.rpartition(b"/")
        try:
            folder_fd = self._folder(folder)
            return read_entry(folder_fd, name or b".", path, self.wants_xattrs, here=self._last)
        except OSError as error:
            if error.errno in ABSENT:
                return None
            raise

    def is_unchanged(self, entry: Entry) -> bool:
        """Whether a regular file is there with the size, time and metadata that it shall have.

        It says of most of a tree that was here before all that is asked, at the least cost; where it says no, ``look``
        and ``judge`` say why.
        """
        folder, _slash, name = entry.path.rpartition(b"/")
        try:
            folder_fd = self._folder(folder)
            found = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
            return (
                found.st_mtime_ns == entry.mtime_ns
                and found.st_size == entry.size
                and found.st_mode == stat.S_IFREG | entry.mode
                and found.st_uid == entry.uid
                and found.st_gid == entry.gid
                and (self._numeric or self._ids_stay(entry))
                and not entry.xattrs
                and not (self.wants_xattrs and xattr.read(folder_fd, name, self._last))
            )
        except OSError:
            return False

    def judge(self, entry: Entry, found: Entry | None, equal: bool | None = None, link_ok: bool = True) -> Verdict:
        """Compare an entry with what is there, under this transfer's settings."""
        if equal is None and link_ok:
            if found is None:
                if entry.type not in self._created:
                    self._created[entry.type] = compare(entry, None, preserve=self.preserve, arrow=self._arrow)
                return self._created[entry.type]
            if self._is_same(entry, found):
                return _UNCHANGED
        return compare(
            entry,
            found,
            preserve=self.preserve,
            checksum_equal=equal,
            link_ok=link_ok,
            ids=self.ids,
            powers=self.powers,
            arrow=self._arrow,
        )

    def _is_same(self, entry: Entry, found: Entry) -> bool:
        """Whether nothing at all differs that could be kept.

        In slices, which is quicker than field by field: type to mtime_ns, then target and xattrs.
        """
        return (
            entry[1:7] == found[1:7]
            and entry[13:] == found[13:]
            and entry.rdev == found.rdev
            and (self._numeric or self._ids_stay(entry))
            and (self._numeric or not entry.xattrs)  # else the ids in ACLs may mean others here
        )

    def _ids_stay(self, entry: Entry) -> bool:
        """Whether the names of an entry's owner and group have the same numbers here."""
        return self.ids.uid(entry.uid) == entry.uid and self.ids.gid(entry.gid) == entry.gid

    def count(self, entry: Entry, verdict: Verdict) -> None:
        """Count a verdict that has been carried out (or would be)."""
        if verdict.action == NONE:
            return
        outcome = self.outcome
        if verdict.itemized.endswith("+"):
            outcome.files_created += 1
        elif verdict.action == ATTRIBUTES:
            outcome.attributes_changed += 1
        else:
            outcome.files_updated += 1
        if len(outcome.changes) >= self._limit:  # it is counted, and nobody will see the text
            outcome.changes_total += 1
            return
        shown = (escape(entry.path) or ".") + ("/" if entry.type == DIRECTORY and entry.path else "")
        self.outcome.change(f"{verdict.itemized} {shown}", self._limit)

    def failed(self, path: bytes, error: OSError | ValueError | str) -> None:
        """List what went wrong with a path; a full destination ends the transfer."""
        if isinstance(error, OSError) and error.errno in FULL:
            raise full(self._context.root, f"{error.strerror}, at {escape(path)}")
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        self.outcome.error(escape(path), reason)

    # one entry after the other

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

    def directory(self, entry: Entry, found: Entry | None) -> Verdict:
        """Make a directory; its metadata are set at the end."""
        verdict = self.judge(entry, found)
        self.clear(entry, found)
        if not self.check:
            if found is None or found.type != DIRECTORY:
                self.root.make_directory(entry.path)
                if len(self._made) >= _MADE_KNOWN:
                    self._made.clear()
                self._made.add(entry.path)
            elif not self.powers.all and found.uid == self.powers.uid and found.mode & 0o700 != 0o700:
                parent, name = self.root.open_parent(entry.path)
                metadata.chmod(parent, name, found.mode | 0o700)
            self._spool.push(encode(entry))
        self.count(entry, verdict)
        return verdict

    def special(self, entry: Entry, found: Entry | None) -> Verdict:
        """Make a symlink, FIFO, socket or device, or mend its attributes."""
        verdict = self.judge(entry, found)
        if verdict.action in (CREATE, REPLACE):
            self.clear(entry, found)
            if not self.check:
                if found is not None and found.type != DIRECTORY:
                    self.root.remove(entry.path)
                if entry.type == SYMLINK:
                    self.root.make_symlink(entry.path, entry.target)
                else:
                    self.root.make_special(entry.path, entry)
                self._dress_new(entry)
        elif verdict.action == ATTRIBUTES and not self.check:
            self.apply(entry, found)
        self.count(entry, verdict)
        return verdict

    def _dress_new(self, entry: Entry) -> None:
        """Set the metadata of what was made in its place; most symlinks lack nothing but their time."""
        folder, _slash, name = entry.path.rpartition(b"/")
        plain = entry.type == SYMLINK and self._keeps_all and not entry.xattrs
        if plain and (self.ids.uid(entry.uid), self.ids.gid(entry.gid)) == self._own:
            folder_fd = self._folder(folder)
            if folder == self._new_folder:
                os.utime(name, ns=(self._now, entry.mtime_ns), dir_fd=folder_fd, follow_symlinks=False)
                return
        self.apply(entry, None)

    def apply(self, entry: Entry, found: Entry | None) -> None:
        """Set the metadata of what is in place."""
        parent, name = self.root.open_parent(entry.path)
        for problem in metadata.apply(parent, name, entry, found, self.preserve, self.ids, powers=self.powers):
            self.failed(entry.path, problem)

    def attributes(self, entry: Entry, found: Entry, verdict: Verdict) -> None:
        """Mend the attributes of a regular file whose content is right."""
        if not self.check:
            self.apply(entry, found)
        self.count(entry, verdict)

    def follower(self, link: Follower) -> Verdict:
        """Give a file one more name."""
        entry = link.entry
        leader, found = self.root.lstat(link.leader), self.look(entry.path)
        linked = (
            leader is not None
            and found is not None
            and (leader.dev, leader.ino) == (found.dev, found.ino)
            and not (self.check and link.is_new)
        )
        verdict = self.judge(entry, found, link_ok=linked)
        if linked:
            return verdict._replace(action=NONE)  # the other name got whatever it needed
        self.clear(entry, found)
        if not self.check:
            if found is None or found.type == DIRECTORY:
                self.root.hard_link(link.leader, entry.path)
            else:
                parent, name = self.root.open_parent(link.leader)
                temporary = self.temporary_name()
                os.link(name, temporary, src_dir_fd=parent, dst_dir_fd=self.temporary_fd, follow_symlinks=False)
                self.root.rename_into(self.temporary_fd, temporary, entry.path)
        self.count(entry, verdict)
        return verdict

    def temporary_name(self) -> bytes:
        """Give a name in the staging folder that nobody has."""
        self._fresh += 1
        return b"link-%d" % self._fresh

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

    # the end

    def finish(self) -> None:
        """Give the directories their metadata, the deepest first."""
        for record in self._spool.drain():
            entry = next(iter(Decoder().feed(record)))
            try:
                found = self.look(entry.path)
                if found is None or found.type != DIRECTORY:
                    self.failed(entry.path, "the directory vanished from the destination during the transfer")
                elif not self._is_same(entry, found):
                    self._dress_directory(entry, found)
            except (OSError, OverflowError) as error:
                self.failed(entry.path, error)

    def _dress_directory(self, entry: Entry, found: Entry) -> None:
        """Give a directory its metadata, by its own fd where that is all: a tree has many."""
        uid, gid = self.ids.uid(entry.uid), self.ids.gid(entry.gid)
        same_owner = (uid, gid) == (found.uid, found.gid)
        if not self._keeps_all or entry.xattrs or found.xattrs or not (same_owner or self.powers.all):
            if metadata.differences(entry, found, self.preserve, self.ids, self.powers):
                self.apply(entry, found)
            return
        folder, _slash, name = entry.path.rpartition(b"/")
        fd = os.open(name or b".", DIRECTORY_FLAGS, dir_fd=self._folder(folder))
        try:
            if not same_owner:
                os.fchown(fd, uid, gid)
            if not same_owner or found.mode != entry.mode:
                os.fchmod(fd, entry.mode)
            os.utime(fd, ns=(self._now, entry.mtime_ns))
        finally:
            os.close(fd)

    def close(self) -> None:
        """Give back what is open."""
        self._spool.close()
        for fd in (self.temporary_fd, self._last[1]):
            if fd >= 0:
                os.close(fd)
