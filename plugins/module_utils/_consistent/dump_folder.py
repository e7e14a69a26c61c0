# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder of dumps in the source tree of a backup, held open while they are made. Private to the collection.

A dump is written as NAME.part. When all of a kind are complete and on the disk, they get their names at once, so that
a failure leaves the dumps of the backup before. Nobody but root and the user of the database may be able to exchange
the folder or one above it: a later restore loads the dumps with the rights of that user.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from typing import Callable, Mapping, Sequence

from .._core.disk_full import find_room
from .._core.errors import TransferFailed
from .._core.files import rewound
from .._tree.descent import DIRECTORY_FLAGS
from .._tree.held_root import open_held
from .._tree.resolve import real_path
from .made import FILE, FOLDER, MARK, MadeList
from .programs import Account
from .request import DumpPlace

PART = ".part"
_WAY = 0o711  # mode of folders above it: the owner of a database of SQLite passes through them, and lists nothing
_LONGEST_NAME = 255 - len(PART)
_PLAIN = re.compile(rb"[^A-Za-z0-9_.-]|^\.")


def file_name(name: str, ending: str) -> str:
    """Return the name of the file for a dump of ``name``, other bytes than plain ones as %XX. Pure.

    Raises TransferFailed if it is too long for a file.
    """
    plain = _PLAIN.sub(lambda found: b"%%%02X" % found[0][0], os.fsencode(name)).decode() + ending
    if len(plain) > _LONGEST_NAME:
        raise TransferFailed(f"{name!r:.80} is too long for the name of a file, so it cannot be dumped by this job")
    return plain


def name_in_file(file: str, ending: str) -> str:
    """Return the name of what a file is the dump of: the inverse of file_name. Pure."""
    plain = os.fsencode(file[: len(file) - len(ending)])
    return os.fsdecode(re.sub(rb"%([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), plain))


def describe_stranger(status: os.stat_result, account: Account | None, allow_sticky: bool = True) -> str:
    """Return why others than root, this user and an account can exchange what is in a folder; empty if none can. Pure.

    The main group of an account counts as itself. In a sticky folder others can only add files.
    """
    trusted = (0, os.geteuid(), *([account.uid] if account else []))
    if status.st_uid not in trusted:
        return f"belongs to user {status.st_uid}"
    mode = status.st_mode
    if allow_sticky and mode & stat.S_ISVTX:
        return ""
    if mode & stat.S_IWOTH:
        return "is writable for all users"
    is_own_group = account is not None and account.uid != 0 and status.st_gid == account.gid
    return f"is writable for group {status.st_gid}" if mode & stat.S_IWGRP and not is_own_group else ""


class DumpFolder:
    """The folder of the dumps of one kind; a context manager."""

    def __init__(self, place: DumpPlace, made: MadeList, account: Account | None, mode: int = 0o700) -> None:
        """Open it, and make what is missing of it. ``mode`` is that of a new folder. Raises TransferFailed.

        ``account`` is the user of the databases.
        """
        self._made, self._keep, self._account = made, place.keep, account
        self._parts: dict[str, os.stat_result] = {}  # unfinished dumps
        self.path, self.fd = open_source(place, self._check)
        relative = os.path.relpath(place.into, place.root)
        try:
            parts = [] if relative == "." else os.fsencode(relative).split(b"/")
            for number, part in enumerate(parts, 1):
                self._enter(part, mode if number == len(parts) else _WAY)
                if number < len(parts):
                    self._check(self.path, os.fstat(self.fd))
            self._require_own()
        except OSError as error:
            self.close()
            raise TransferFailed(f"the folder of dumps {place.into} cannot be made: {error.strerror}") from error
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> DumpFolder:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its descriptor."""
        with contextlib.suppress(OSError):
            os.close(self.fd)

    def _check(self, path: bytes, status: os.stat_result) -> None:
        stranger = describe_stranger(status, self._account)
        if stranger:
            raise TransferFailed(
                f"no dumps are made below {os.fsdecode(path)}, because it {stranger}: dumps could be exchanged there "
                "before the backup reads them. Make a folder that belongs to root and that nobody else can write to, "
                "add it to src of the job, and set into to it"
            )

    def _enter(self, name: bytes, mode: int) -> None:
        """Open a folder in this one, and make it with this mode if it is missing."""
        try:
            below = os.open(name, DIRECTORY_FLAGS, dir_fd=self.fd)
        except FileNotFoundError:
            if not self._keep:
                self._made.add(FOLDER, self.path, name)
            os.mkdir(name, mode, dir_fd=self.fd)
            below = os.open(name, DIRECTORY_FLAGS, dir_fd=self.fd)
            os.fchmod(below, mode)
        os.close(self.fd)
        self.fd, self.path = below, os.path.join(self.path, name)

    def _require_own(self) -> None:
        """Refuse a folder that others can write to, and one with files that are no dumps."""
        found = os.fstat(self.fd)
        where = os.fsdecode(self.path)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
            raise TransferFailed(
                f"{where} is not a folder of this user alone, and others could exchange dumps there. Give it to this "
                "user (chmod go-w), or set into to another folder"
            )
        names = os.listdir(rewound(self.fd))
        if MARK in names:
            self._made.lock(self.path, self.fd)
            return
        if names:
            raise TransferFailed(
                f"{where} holds {names[0]!r:.80}, which no backup made, so dumps could overwrite files there. Set into "
                "to a folder that is empty or missing"
            )
        if not self._keep:
            self._made.add(FILE, self.path, os.fsencode(MARK))
        os.close(os.open(MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=self.fd))
        self._made.lock(self.path, self.fd)

    def require_room(self, size: int, percent: int = 100) -> None:
        """Raise TransferFailed unless ``percent`` of so many bytes are free."""
        free, needed = find_room(self.fd).free, size * percent // 100
        if free < needed:
            raise TransferFailed(
                f"{os.fsdecode(self.path)} has {free >> 20} MiB free, and dumps of {size >> 20} MiB of databases may "
                f"need {needed >> 20} MiB. Nothing was dumped. Make room, or lower free_percent if dumps are smaller"
            )

    def create(self, name: str) -> int:
        """Create the unfinished file of a dump, and return its descriptor, which is the caller's."""
        part = f"{name}{PART}"
        self._made.add(FILE, self.path, os.fsencode(part))
        if not self._keep:
            self._made.add(FILE, self.path, os.fsencode(name))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part, dir_fd=self.fd)
        fd = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self.fd)
        self._parts[name] = os.fstat(fd)
        return fd

    def take(self, name: str, folder: int, file: str, status: os.stat_result) -> None:
        """Take a file of this status from another open folder as an unfinished dump."""
        os.close(self.create(name))
        os.replace(file, f"{name}{PART}", src_dir_fd=folder, dst_dir_fd=self.fd)
        self._parts[name] = status

    def publish(self) -> int:
        """Rename all dumps to their names, once they are on the disk; return their size in bytes.

        Files of earlier dumps go, whose databases are not dumped any more.
        """
        size = 0
        for name, status in self._parts.items():
            fd = os.open(f"{name}{PART}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.fd)
            try:
                if not os.path.samestat(os.fstat(fd), status):
                    raise TransferFailed(
                        f"{os.fsdecode(self.path)}/{name}{PART} was exchanged by another process before it was "
                        "complete. Find out which one writes there, and run the backup again"
                    )
                os.fsync(fd)
                size += os.fstat(fd).st_size
            finally:
                os.close(fd)
        for name in self._parts:
            os.replace(f"{name}{PART}", name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        for name in os.listdir(rewound(self.fd)):
            kind = os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_mode
            if name != MARK and name not in self._parts and stat.S_ISREG(kind):
                os.unlink(name, dir_fd=self.fd)
        os.fsync(self.fd)
        return size


def open_source(place: DumpPlace, check: Callable[[bytes, os.stat_result], None] | None = None) -> tuple[bytes, int]:
    """Return the real path of the source of a place, and its fd, which is the caller's. Raises TransferFailed.

    ``check`` is that of open_held.
    """
    try:
        root = real_path(os.fsencode(place.root))
        return root, open_held(root, check=check)
    except OSError as error:
        raise TransferFailed(f"the source {place.root} cannot be opened: {error.strerror}") from error


def find_files(root: int, patterns: Sequence[str]) -> Mapping[str, os.stat_result]:
    """Return the regular files below an open folder that patterns name, relative to it; no link is followed.

    ``*`` and ``?`` match within a name, also a dot at its beginning, as in the filter rules that leave these files out
    of the transfer. Folders of dumps have none. Raises TransferFailed for a pattern that no file has, and for a link or
    a special file that has one: the transfer would leave it out.
    """
    found: dict[str, os.stat_result] = {}
    for pattern in patterns:
        matches = _matching(root, pattern.split("/"), "")
        if not matches:
            raise TransferFailed(f"no file matches {pattern} in the source. Correct files")
        found.update(matches)
    return found


def _has_dumps(folder: int) -> bool:
    try:
        return os.stat(MARK, dir_fd=folder, follow_symlinks=False).st_uid in (0, os.geteuid())
    except FileNotFoundError:
        return False


def _matching(folder: int, parts: Sequence[str], above: str) -> dict[str, os.stat_result]:
    matches = re.compile(
        "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in parts[0]) + r"\Z", re.DOTALL
    ).match
    found: dict[str, os.stat_result] = {}
    if _has_dumps(folder):
        return found
    for name in sorted(os.listdir(folder)) if set("*?") & set(parts[0]) else [parts[0]]:
        if not matches(name):
            continue
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            is_folder = stat.S_ISDIR(status.st_mode)
            if len(parts) == 1 and stat.S_ISREG(status.st_mode):
                found[above + name] = status
            elif len(parts) == 1 and not is_folder:
                raise TransferFailed(
                    f"{above}{name} is a link or a special file, so it is no SQLite database that can be copied, and "
                    "the backup would have nothing of it. Correct files, so that they match databases alone"
                )
            elif len(parts) > 1 and is_folder:
                below = os.open(name, DIRECTORY_FLAGS, dir_fd=folder)
                try:
                    found.update(_matching(below, parts[1:], f"{above}{name}/"))
                finally:
                    os.close(below)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise TransferFailed(f"{above}{name} cannot be read: {error.strerror}") from error
    return found
