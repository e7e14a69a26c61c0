# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder of dumps in the source tree of a backup, held open while they are made. Private to the collection.

A dump is written as NAME.part. When all of a kind are complete and on the disk, they get their names at once, so that
a failure leaves the dumps of the backup before.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from typing import Sequence

from .._core.errors import TransferFailed
from .._tree.descent import DIRECTORY_FLAGS
from .._tree.held_root import open_held
from .._tree.resolve import real_path
from .made import FILE, FOLDER, MadeList
from .request import DumpPlace

MARK = ".made-by-longhaul"  # a folder with this file holds nothing but dumps
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


class DumpFolder:
    """The folder of the dumps of one kind; a context manager."""

    def __init__(self, place: DumpPlace, made: MadeList, mode: int = 0o700) -> None:
        """Open it, and make what is missing of it. ``mode`` is that of a new folder. Raises TransferFailed."""
        self._made, self._keep = made, place.keep
        self.parts: list[str] = []
        try:
            root = real_path(os.fsencode(place.root))
            self.root_fd = open_held(root)
        except OSError as error:
            raise TransferFailed(f"the source {place.root} cannot be opened: {error.strerror}") from error
        self.fd = os.dup(self.root_fd)
        self.path = root
        relative = os.path.relpath(place.into, place.root)
        try:
            parts = [] if relative == "." else os.fsencode(relative).split(b"/")
            for number, part in enumerate(parts, 1):
                self._enter(part, mode if number == len(parts) else _WAY)
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
        """Close its descriptors."""
        for fd in (self.fd, self.root_fd):
            with contextlib.suppress(OSError):
                os.close(fd)

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
        names = os.listdir(self.fd)
        if MARK in names:
            return
        if names:
            raise TransferFailed(
                f"{where} holds {names[0]!r:.80}, which no backup made, so dumps could overwrite files there. Set into "
                "to a folder that is empty or missing"
            )
        if not self._keep:
            self._made.add(FILE, self.path, os.fsencode(MARK))
        os.close(os.open(MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=self.fd))

    def require_room(self, size: int, percent: int = 100) -> None:
        """Raise TransferFailed unless ``percent`` of so many bytes are free."""
        room = os.fstatvfs(self.fd)
        free, needed = room.f_bavail * room.f_frsize, size * percent // 100
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
        self.parts.append(name)
        return fd

    def publish(self) -> int:
        """Rename all dumps to their names, once they are on the disk; return their size in bytes."""
        size = 0
        for name in self.parts:
            fd = os.open(f"{name}{PART}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.fd)
            try:
                os.fsync(fd)
                size += os.fstat(fd).st_size
            finally:
                os.close(fd)
        for name in self.parts:
            os.replace(f"{name}{PART}", name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        os.fsync(self.fd)
        return size


def find_files(root: int, patterns: Sequence[str]) -> list[str]:
    """Return the regular files below an open folder that patterns name, relative to it; no link is followed.

    ``*`` and ``?`` match within a name, also a dot at its beginning, as in the filter rules that leave these files out
    of the transfer. Raises TransferFailed for a pattern that no file has.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        matches = list(_matching(root, pattern.split("/"), ""))
        if not matches:
            raise TransferFailed(f"no file matches {pattern} in the source. Correct files")
        found.update(dict.fromkeys(matches))
    return list(found)


def _matching(folder: int, parts: Sequence[str], above: str) -> list[str]:
    matches = re.compile(
        "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in parts[0]) + r"\Z", re.DOTALL
    ).match
    found: list[str] = []
    for name in sorted(os.listdir(folder)) if set("*?") & set(parts[0]) else [parts[0]]:
        if not matches(name):
            continue
        try:
            kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if len(parts) == 1 and stat.S_ISREG(kind):
                found.append(above + name)
            elif len(parts) > 1 and stat.S_ISDIR(kind):
                below = os.open(name, DIRECTORY_FLAGS, dir_fd=folder)
                try:
                    found += _matching(below, parts[1:], f"{above}{name}/")
                finally:
                    os.close(below)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise TransferFailed(f"{above}{name} cannot be read: {error.strerror}") from error
    return found
