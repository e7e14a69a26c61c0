# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder of a job in a repository, opened so that nothing leads out of it. Private to the collection.

``<repository>/<host>/<job>`` holds the snapshots of one job; docs/snapshot-format.md tells what each name in it means.
All changes are made under its lock, in steps that each leave a sound repository: :meth:`Series.step` is told before
each, so a test can stop a process exactly there.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from typing import Callable, Iterator

from .._core.files import rewound
from .._core.json_shape import as_object
from .._model.entry_codec import ManifestError
from .._tree.dirfd import Root
from .._tree.resolve import ForeignLink, open_folder
from . import names
from .atomic_io import open_directory, open_file, read_json, rename
from .errors import Busy, Refused
from .facts import FORMAT, CheckRecord, Facts, parse_checked, parse_facts
from .manifest import ManifestReader

_LOCK_ATTEMPTS, _LOCK_PAUSE = 10, 0.05  # seconds
_NO_DIRECTORY = (errno.ENOTDIR, errno.ELOOP, errno.EMLINK)  # EMLINK: a symlink, on FreeBSD


class Series:
    """The snapshots of one job. Close it when done; it is a context manager."""

    def __init__(self, repository: str, host: str, job: str, *, create: bool = False) -> None:
        """Open the folder of a job, and make it where ``create`` says so.

        The repository itself must be there, so that a disk that is not mounted is not taken for an empty one. Raises
        Refused for that, for a symlink, and for a folder that somebody else owns. A job without a folder is
        ``missing``, and has no snapshots.
        """
        self.host, self.job = names.check_part("host", host), names.check_part("job", job)
        self.path = os.path.normpath(repository)
        self.missing = False
        self.step: Callable[[str], None] = lambda name: None
        self.by = ""  # who changes something, for the history
        self.unnoted = ""  # why the history lacks what was done
        self.places: dict[str, frozenset[str]] | None = None  # see history.find_places
        if not os.path.isabs(repository):
            raise Refused(f"the repository {repository} is no absolute path, and could be anywhere: write it from / on")
        try:
            self.fd = open_folder(os.fsencode(self.path))
        except ForeignLink as refused:
            raise Refused(f"the repository {self.path} is not used: {refused}") from None
        except FileNotFoundError:
            raise Refused(
                f"there is no repository {self.path}. It is not made here, because its disk may just not be mounted: "
                f"mount it, or make the folder (install -d -m 0700 {self.path})"
            ) from None
        except OSError as error:
            if error.errno in _NO_DIRECTORY:
                raise self._no_directory(self.path, None) from None
            raise
        try:
            for part in (self.host, self.job):
                self.path = os.path.join(self.path, part)
                self._enter(part, create)
        except BaseException:
            os.close(self.fd)
            raise

    def __enter__(self) -> Series:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _enter(self, name: str, create: bool) -> None:
        if self.missing:
            return
        if create:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=self.fd)
                os.fsync(self.fd)
        try:
            fd = open_directory(self.fd, name)
        except FileNotFoundError:
            self.missing = True  # ``fd`` stays the nearest folder that there is
            return
        except OSError as error:
            if error.errno in _NO_DIRECTORY:
                raise self._no_directory(self.path, (self.fd, name)) from None
            raise
        owner = os.fstat(fd).st_uid
        if owner not in (0, os.geteuid()):
            os.close(fd)
            raise Refused(
                f"{self.path} belongs to user {owner}, who could put anything in the way of a backup: run this as that "
                "user (become_user), or give the folder to the one who makes the backups"
            )
        os.close(self.fd)
        self.fd = fd

    @staticmethod
    def _no_directory(path: str, at: tuple[int, str] | None) -> Refused:
        try:
            found = os.stat(at[1], dir_fd=at[0], follow_symlinks=False) if at else os.lstat(path)
            is_link = stat.S_ISLNK(found.st_mode)
        except OSError:
            is_link = False
        if is_link:
            return Refused(
                f"{path} is a symbolic link. Whoever can change it decides where backups go and what is pruned, so it "
                "is not followed: name the folder that it leads to"
            )
        return Refused(f"{path} is no folder, so no snapshots can be in it: name another, or move away what is there")

    @contextlib.contextmanager
    def lock(self, purpose: str) -> Iterator[None]:
        """Be the only one who changes this folder. Raises Busy, after half a second, where somebody else does."""
        if self.missing:
            yield  # nothing to change
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(names.LOCK, flags, 0o600, dir_fd=self.fd)
        try:
            for attempt in range(_LOCK_ATTEMPTS):
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if attempt == _LOCK_ATTEMPTS - 1:
                        raise self._locked(fd) from None
                    time.sleep(_LOCK_PAUSE)
            self._sign(fd, f"{purpose} (process {os.getpid()}, since {names.name_of(int(time.time()))})")
            yield
        finally:
            os.close(fd)

    def _locked(self, fd: int) -> Busy:
        holder = os.pread(fd, 200, 0).decode("utf-8", "replace") or "another run"
        return Busy(
            f"{self.path} is in use: {holder}. Two that write to the same snapshots would undo each other's work; "
            "nothing was changed. Wait for it to end, or end that process, and run this again"
        )

    @staticmethod
    def _sign(fd: int, text: str) -> None:
        with contextlib.suppress(OSError):  # a full disk: the lock counts, not who says to have it
            os.ftruncate(fd, 0)
            os.pwrite(fd, text.encode(), 0)

    def times(self, kind: str = names.COMPLETE) -> list[int]:
        """Return the times of the snapshots of a kind (names.COMPLETE, ASIDE or REMOVING), the oldest first."""
        if self.missing:
            return []
        with os.scandir(rewound(self.fd)) as entries:
            found = [names.read(entry.name) for entry in entries if entry.is_dir(follow_symlinks=False)]
        return sorted(at for what, at in found if what == kind and at is not None)

    def named(self, kind: str = names.COMPLETE) -> list[str]:
        """Return the names of the snapshots of a kind, the oldest first."""
        return [names.name_of(at, kind) for at in self.times(kind)]

    def all_times(self) -> set[int]:
        """Return all times that names in this folder have already, whatever they are."""
        found = [] if self.missing else [names.read(name)[1] for name in os.listdir(rewound(self.fd))]
        return {at for at in found if at is not None}

    def has(self, name: str) -> bool:
        """Return whether there is such a name in the folder."""
        if self.missing:
            return False
        try:
            os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def latest(self) -> str | None:
        """Return the target of ``latest``; None if it does not exist or is not a symlink."""
        if self.missing:
            return None
        try:
            return os.readlink(names.LATEST, dir_fd=self.fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return None

    def set_latest(self, name: str) -> None:
        """Let ``latest`` lead to a snapshot, in one step."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(names.NEW_LATEST, dir_fd=self.fd)
        os.symlink(name, names.NEW_LATEST, dir_fd=self.fd)
        self.step("latest")
        os.rename(names.NEW_LATEST, names.LATEST, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        os.fsync(self.fd)

    def settle(self, now: int, check: bool = False) -> bool:
        """Finish what a kill left behind a rename: ``latest`` leads to the newest snapshot.

        Says whether that was needed.
        """
        newest = names.latest_of(now, self.times())
        wanted = None if newest is None else names.name_of(newest)
        if wanted is None or self.latest() == wanted:
            return False
        if not check:
            self.set_latest(wanted)
        return True

    def rename(self, old: str, new: str) -> None:
        """Rename a snapshot, in one step."""
        rename(self.fd, old, new)

    def snapshot(self, name: str) -> SnapshotFolder:
        """Open the snapshot of that name, to be closed. Raise OSError if it cannot be opened."""
        return SnapshotFolder(open_directory(self.fd, name), name)


class SnapshotFolder:
    """The folder of one snapshot, whatever its state. Close it when done; it is a context manager."""

    def __init__(self, fd: int, name: str) -> None:
        self.fd = fd
        self.name = name

    def __enter__(self) -> SnapshotFolder:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self.fd)

    def facts(self) -> Facts:
        """Return its facts. Raise Refused if they cannot be read."""
        try:
            return read_json(self.fd, names.FACTS, self._parse_facts)
        except (FileNotFoundError, ValueError) as error:
            raise Refused(f"{names.FACTS} of {self.name} is missing or damaged: {error}") from None

    def _parse_facts(self, value: object) -> Facts:
        found = as_object(value, "the file").get("format")
        if found != FORMAT:
            raise Refused(
                f"{self.name} has the format {found}, and this version of the collection knows {FORMAT}: "
                "take the version that wrote it"
            )
        return parse_facts(value)

    def checked(self) -> CheckRecord:
        """Return what the checks so far found; nothing if there was none, or it cannot be read."""
        try:
            return read_json(self.fd, names.CHECKED, parse_checked)
        except (OSError, ValueError):
            return CheckRecord()

    def open_data(self) -> int:
        """Open the root of the tree; the fd is the caller's."""
        return open_directory(self.fd, names.DATA)

    @contextlib.contextmanager
    def tree(self) -> Iterator[Root]:
        """Open the tree. Raise OSError."""
        fd = self.open_data()
        try:
            root = Root(fd)
        finally:
            os.close(fd)
        with root:
            yield root

    @contextlib.contextmanager
    def manifest(self) -> Iterator[ManifestReader]:
        """Read the manifest. Raise ManifestError if there is none or it is damaged."""
        try:
            file = open_file(self.fd, names.MANIFEST)
        except FileNotFoundError:
            raise ManifestError("it is missing") from None
        with file:
            yield ManifestReader(file)
