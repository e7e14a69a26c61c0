# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One line in a user's authorized_keys, for as long as a transfer lives.

Our line goes to the top, so that every other byte of the file stays as and where it was. Its comment tells whose it
is, until when it holds, and what we created and therefore remove again: the last of several transfers clears up.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Iterator, Sequence

from ..._core.errors import TransferFailed
from ..._tree.resolve import open_folder, real_path

LOCK_PATIENCE = 30.0  # seconds
_ATTEMPTS = 100

_OURS = re.compile(rb"^\S.* longhaul-([0-9a-f]{16}) until=(\d+)(?: created=([a-z,]+))?\s*$")
_RESTRICT = "restrict"  # since OpenSSH 7.2, it also closes what later versions add
_EXPIRY_SINCE, _EXPIRY_UTC_SINCE = (7, 7), (9, 1)


@dataclass(frozen=True)
class Key:
    """What one transfer may do with one key.

    ``until`` is in seconds since 1970, ``public_key`` is ``type base64``; ``addresses`` are those the key may come
    from (any if there are none); ``version`` is that of the sshd which will read the line.
    """

    transfer_id: str
    public_key: str
    command: str
    addresses: tuple[str, ...]
    until: int
    version: tuple[int, int]

    def line(self, created: Sequence[str] = ()) -> bytes:
        """Write the line, with the options as sshd(8) describes them. Raises TransferFailed for what cannot be said."""
        options = [_RESTRICT]
        if self.addresses:
            options.append(f"from={_quoted(','.join(self.addresses))}")
        if self.version >= _EXPIRY_SINCE:
            # Older versions know only the local time; an hour of daylight saving does not matter here.
            utc = self.version >= _EXPIRY_UTC_SINCE
            moment = time.gmtime(self.until) if utc else time.localtime(self.until)
            options.append(f'expiry-time="{time.strftime("%Y%m%d%H%M%S", moment)}{"Z" if utc else ""}"')
        options.append(f"command={_quoted(self.command)}")
        kind, blob = self.public_key.split()[:2]
        comment = f"longhaul-{self.transfer_id} until={self.until}"
        comment += f" created={','.join(sorted(created))}" if created else ""
        return os.fsencode(f"{','.join(options)} {kind} {blob} {comment}\n")


def _quoted(text: str) -> str:
    """Quote an option's value: sshd knows ``\\"`` for a quote, and takes every other backslash as it stands."""
    if "\n" in text or "\r" in text or "\0" in text or text.endswith("\\") or '\\"' in text:
        raise TransferFailed(
            f"{text!r} cannot stand in an authorized_keys file, which the peer's login needs. Use a state folder "
            "(home folder) without newlines and backslashes before quotes."
        )
    return '"' + text.replace('"', '\\"') + '"'


def revise(
    data: bytes, transfer_id: str, key: Key | None, now: float, created: Sequence[str] = ()
) -> tuple[bytes, set[str]]:
    """Replace the line of one transfer (by none, without ``key``) and drop the lines of transfers that are long over.

    ``created`` names what was made for this line (``file``, ``folder``). Gives the new content, and what must be
    removed with it: empty as long as a line remains that will see to it.
    """
    kept: list[bytes] = []
    duty = set(created)
    heir = None
    for line in data.splitlines(keepends=True):
        ours = _OURS.match(line)
        if not ours:
            kept.append(line)
            continue
        if ours.group(1).decode() == transfer_id or int(ours.group(2)) < now:
            duty.update(_created(ours))
            continue
        heir = len(kept) if heir is None else heir
        kept.append(line)
    if key is not None:
        return key.line(sorted(duty)) + b"".join(kept), set()
    if heir is not None and duty:
        ours = _OURS.match(kept[heir])
        duty.update(_created(ours) if ours else ())
        bare = re.sub(rb" created=[a-z,]+\s*$", b"", kept[heir].rstrip())
        kept[heir] = bare + b" created=" + ",".join(sorted(duty)).encode() + b"\n"
        duty = set()
    return b"".join(kept), duty


def _created(ours: re.Match[bytes]) -> set[str]:
    return set(filter(None, (ours.group(3) or b"").decode().split(",")))


def add(path: str, key: Key, uid: int, gid: int) -> None:
    """Put a key's line into the file of the user ``uid``, or renew it; make the file and its folder if need be."""
    with _explained(path):
        for attempt in range(_ATTEMPTS):
            made = _make_folder(os.path.dirname(path), uid, gid)
            try:
                with _locked(path, uid) as (folder, name):
                    data, found = _read(folder, name)
                    made += [] if found else ["file"]
                    data, _duty = revise(data, key.transfer_id, key, time.time(), made)
                    _write(folder, name, data, found, uid, gid)
                return
            except FileNotFoundError:  # the last of other transfers took its folder away, before we had the lock
                if attempt == _ATTEMPTS - 1:
                    raise


def remove(path: str, transfer_id: str, uid: int, gid: int) -> None:
    """Take a transfer's line out again, and with the last line what was made for it. Nothing there is no error."""
    with _explained(path):
        with suppress(FileNotFoundError), _locked(path, uid) as (folder, name):
            data, found = _read(folder, name)
            new, duty = revise(data, transfer_id, None, time.time())
            if found and not new and "file" in duty:
                os.unlink(name, dir_fd=folder)
            elif new != data:
                _write(folder, name, new, found, uid, gid)
            if "folder" in duty and not new:  # under the lock, so that nobody adds to a folder that goes
                _remove_folder(os.path.dirname(path))


def _remove_folder(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError as problem:
        if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            raise


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise TransferFailed(
            f"{path} cannot be changed ({problem.strerror or problem}), so the peer's one-time key cannot be "
            "admitted or taken back. Make the file writable for the user that logs in, or let the transfer start an "
            "sshd of its own at a port that the peer reaches (port_range)."
        ) from problem


def _make_folder(folder: str, uid: int, gid: int) -> list[str]:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        return []
    if uid != os.geteuid():
        os.chown(folder, uid, gid, follow_symlinks=False)
    return ["folder"]


@contextmanager
def _locked(path: str, uid: int) -> Iterator[tuple[int, str]]:
    """Lock the folder in which the file really is; give its descriptor, and the file's name in it.

    The file itself cannot be the lock, because it is replaced; and a lock file would have to be left behind.
    """
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        real = os.fsdecode(real_path(os.fsencode(path)))
        folder = open_folder(os.fsencode(os.path.dirname(real)))
        try:
            _check_owner(folder, os.path.dirname(real), uid)
            _flock(folder, deadline)
            # While we waited, the holder of the lock may have removed the folder, or somebody moved it.
            if _is_still(folder, os.path.dirname(real)):
                yield folder, os.path.basename(real)
                return
        finally:
            os.close(folder)


def _check_owner(folder: int, name: str, uid: int) -> None:
    """Refuse to write as root where another user could have led us: only into a folder of that user."""
    owner = os.fstat(folder).st_uid
    if os.geteuid() == uid or owner == uid:
        return
    parents_of_root = all(os.stat(above).st_uid == 0 for above in _ancestors(name))
    if not (owner == 0 and parents_of_root):
        raise PermissionError(errno.EPERM, f"{name} belongs to the user with the id {owner}, not to {uid}")


def _ancestors(path: str) -> list[str]:
    above = []
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        above.append(path)
    return above


def _flock(fd: int, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _is_still(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _read(folder: int, name: str) -> tuple[bytes, os.stat_result | None]:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        return b"", None
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return file.read(), found


def _write(folder: int, name: str, data: bytes, found: os.stat_result | None, uid: int, gid: int) -> None:
    """Replace the file in one step, with its owner, mode and extended attributes (ACL, SELinux context).

    Where these cannot be given to a new file, or the name cannot be replaced (a bind mount), write into the old one.
    """
    temporary = _temporary_name(name)
    fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb", closefd=True) as file:
            file.write(data)
            file.flush()
            if found is None:
                if uid != os.geteuid():
                    os.fchown(fd, uid, gid)
            else:
                _copy_attributes(folder, name, fd, found)
            os.fsync(fd)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as problem:
        os.unlink(temporary, dir_fd=folder)
        if found is None or problem.errno not in (errno.EPERM, errno.EACCES, errno.EBUSY, errno.ENOTSUP):
            raise
        _write_in_place(folder, name, data)


def _temporary_name(name: str) -> str:
    return f".{name}.longhaul-{os.urandom(6).hex()}"


def _copy_attributes(folder: int, name: str, fd: int, found: os.stat_result) -> None:
    mine = os.fstat(fd)
    if (mine.st_uid, mine.st_gid) != (found.st_uid, found.st_gid):
        os.fchown(fd, found.st_uid, found.st_gid)
    os.fchmod(fd, stat.S_IMODE(found.st_mode))
    if not hasattr(os, "listxattr"):
        return
    old = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        for attribute in os.listxattr(old):
            value = os.getxattr(old, attribute)
            if attribute not in os.listxattr(fd) or os.getxattr(fd, attribute) != value:
                os.setxattr(fd, attribute, value)
    finally:
        os.close(old)


def _write_in_place(folder: int, name: str, data: bytes) -> None:
    fd = os.open(name, os.O_WRONLY | os.O_NOFOLLOW, dir_fd=folder)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.truncate()
        file.flush()
        os.fsync(fd)
