# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entries as bytes, for wires and files.

Pure: bytes go in, entries come out. What is read may come from a hostile peer, so every length has a limit, a
record takes no more memory than it has bytes, and an entry that comes out is one that a walk could have made.

A record is a head (the lengths of what follows), the numbers of ``lstat`` (in the shortest of three forms that holds
them), the path, the target, and for each extended attribute two lengths, the name and the value.
"""

from __future__ import annotations

import struct
from typing import Callable, Iterable, Iterator

from .entry import BLOCK, CHARACTER, DIRECTORY, REGULAR, SYMLINK, Entry
from .paths import PATH_LIMIT, check_path

RECORD_LIMIT = 16 << 20  # bytes of one record
XATTR_SIZE_LIMIT = 1 << 16  # XATTR_SIZE_MAX

_TYPES = "fdlpsbc"
_WIDE = 0x80  # in the type byte: the numbers are in the wide form
_FAR = 0x40  # or in the far form: a time is before 1677 or after 2262, which 64 bits of nanoseconds cannot hold

_HEAD = struct.Struct("<BHIIHH")
# uid, gid, mtime_ns, ctime_ns, size, dev, ino, nlink, rdev, blocks
_SHORT = struct.Struct("<IIqqIIIHII")
_LONG = struct.Struct("<IIqqQQQQQQ")
_DISTANT = struct.Struct("<IIqIqIQQQQQQ")  # each of the times as whole seconds, rounded down, and nanoseconds
_SECOND = 10**9
_XATTR = struct.Struct("<BI")

# Head and numbers of nearly every record: in the short form, without extended attributes. Both ends make or read one
# for every name of a tree, so these are packed and read with one call.
_PLAIN = struct.Struct(_HEAD.format + _SHORT.format[1:])
# Of a head only what tells where the path of a record is, and where the next record begins.
_LENGTHS = struct.Struct("<B2xII")
# Of a record in the short form, what searches ask for: type byte, uid, gid, mtime_ns, size.
_ASKED = struct.Struct(f"<B{_HEAD.size - 1}xIIq8xI")
_NUMBER_BYTES = (_SHORT.size, _DISTANT.size, _LONG.size, _LONG.size)  # by the upper two bits of the type byte
_KINDS = {letter: number for number, letter in enumerate(_TYPES)}
_new_tuple = tuple.__new__


class ManifestError(ValueError):
    """Bytes that are no manifest, or an entry that cannot be put into one."""


def encode(entry: Entry) -> bytes:
    """Return the record of an entry. Raises ManifestError for one that the Decoder would refuse."""
    path, letter, mode, uid, gid, size, mtime_ns, ctime_ns, dev, ino, nlink, rdev, blocks, target, xattrs = entry
    kind = _KINDS[letter]
    numbers = (uid, gid, mtime_ns, ctime_ns, size, dev, ino, nlink, rdev, blocks)
    if not xattrs and len(path) <= PATH_LIMIT:
        length = _SHORT.size + len(path) + len(target)
        try:
            return _PLAIN.pack(kind, mode, length, len(path), len(target), 0, *numbers) + path + target
        except struct.error:
            pass  # it has a number that is not short
    try:
        try:
            packed = _SHORT.pack(*numbers)
        except struct.error:
            form, packed = _pack_long(numbers)
            kind |= form
        tail = [packed, path, target]
        for name, value in xattrs:
            tail += (_XATTR.pack(len(name), len(value)), name, value)
        body = b"".join(tail)
        head = _HEAD.pack(kind, mode, len(body), len(path), len(target), len(xattrs))
    except struct.error as error:
        raise ManifestError(f"an entry with impossible values: {error}") from None
    if len(body) > RECORD_LIMIT or len(path) > PATH_LIMIT:
        raise ManifestError(f"an entry of {len(body)} bytes is larger than the limit of {RECORD_LIMIT}")
    return head + body


def _pack_long(numbers: tuple[int, ...]) -> tuple[int, bytes]:
    """Pack numbers that are not short; return the form's bit of the type byte, too. Raises struct.error."""
    try:
        return _WIDE, _LONG.pack(*numbers)
    except struct.error:
        uid, gid, mtime_ns, ctime_ns, *others = numbers
        times = (*divmod(mtime_ns, _SECOND), *divmod(ctime_ns, _SECOND))
        return _FAR, _DISTANT.pack(uid, gid, *times, *others)


class Decoder:
    """Turns bytes, in pieces of any size, into entries."""

    def __init__(self) -> None:
        self._waiting = b""

    def feed(self, data: bytes) -> Iterator[Entry]:
        """Yield the entries that are complete with these bytes; use it up before the next call.

        Raises ManifestError for what is no manifest.
        """
        waiting, at = self._waiting + data, 0
        end = len(waiting)
        last, last_plain = end - _HEAD.size, end - _PLAIN.size
        while at <= last:
            if at <= last_plain:
                entry, behind = _plain(waiting, at, end)
                if entry is not None:
                    at = behind
                    yield entry
                    continue
            head = _HEAD.unpack_from(waiting, at)
            _refuse(*head)
            start = at + _HEAD.size
            if start + head[2] > end:
                break
            at = start + head[2]
            yield _entry(waiting, start, *head)
        self._waiting = waiting[at:]

    def finish(self) -> None:
        """Signal the end of the data. Raise ManifestError if a record is truncated."""
        if self._waiting:
            raise ManifestError(f"the manifest ends inside a record, {len(self._waiting)} bytes behind its start")


def scan(data: bytes) -> tuple[list[bytes], list[int]]:
    """Return the path of each record and where the record begins. Nothing else of a record is read or checked.

    ``data`` are whole records. Raises ManifestError if they are not.
    """
    paths: list[bytes] = []
    begins: list[int] = []
    unpack, head, numbers = _LENGTHS.unpack_from, _HEAD.size, _NUMBER_BYTES
    at, last = 0, len(data) - head
    while at <= last:
        kind, length, path = unpack(data, at)
        start = at + head + numbers[kind >> 6]
        paths.append(data[start : start + path])
        begins.append(at)
        at += head + length
    if at != len(data):
        raise ManifestError("the manifest ends inside a record")
    return paths, begins


def select(
    data: bytes, begins: list[int], numbers: Iterable[int], holds: Callable[[str, int, int, int, int], bool]
) -> list[int]:
    """Return the numbers of those records for which ``holds`` is true of type, size, uid, gid and mtime_ns.

    ``begins`` is what :func:`scan` gave. Of nearly all records nothing else is read.
    """
    unpack, types, count, last = _ASKED.unpack_from, _TYPES, len(_TYPES), len(data) - _ASKED.size
    found: list[int] = []
    for number in numbers:
        at = begins[number]
        if data[at] < count and at <= last:  # in the short form
            kind, uid, gid, mtime_ns, size = unpack(data, at)
            if holds(types[kind], size, uid, gid, mtime_ns):
                found.append(number)
        else:
            entry = decode_at(data, at)
            if holds(entry.type, entry.size, entry.uid, entry.gid, entry.mtime_ns):
                found.append(number)
    return found


def select_files(data: bytes, begins: Iterable[int], least: int) -> Iterator[tuple[int, int, int]]:
    """Yield the number, size and mtime_ns of the records of regular files that have at least so many bytes.

    ``begins`` is what :func:`scan` gave. Raises ManifestError.
    """
    unpack, last = _ASKED.unpack_from, len(data) - _ASKED.size
    for number, at in enumerate(begins):
        kind = data[at]
        if not kind and at <= last:  # in the short form
            _kind, _uid, _gid, mtime_ns, size = unpack(data, at)
        elif kind in (_WIDE, _FAR):
            entry = decode_at(data, at)
            size, mtime_ns = entry.size, entry.mtime_ns
        else:
            continue
        if size >= least:
            yield number, size, mtime_ns


def decode_at(data: bytes, at: int) -> Entry:
    """Return the entry whose record begins at a place that :func:`scan` gave. Raises ManifestError."""
    if len(data) - at >= _PLAIN.size:
        entry, _behind = _plain(data, at, len(data))
        if entry is not None:
            return entry
    head = _HEAD.unpack_from(data, at)
    _refuse(*head)
    if at + _HEAD.size + head[2] > len(data):
        raise ManifestError("the manifest ends inside a record")
    return _entry(data, at + _HEAD.size, *head)


def _plain(data: bytes, at: int, end: int) -> tuple[Entry | None, int]:
    """Read a record that is as nearly all are, in one go; None for any other. Gives where the next one begins, too."""
    (
        kind, mode, length, path, target, xattrs,
        uid, gid, mtime_ns, ctime_ns, size, dev, ino, nlink, rdev, blocks,
    ) = _PLAIN.unpack_from(data, at)  # fmt: skip
    start = at + _PLAIN.size
    middle = start + path
    behind = middle + target
    if kind >= len(_TYPES) or xattrs or length != _SHORT.size + path + target or behind > end or mode > 0o7777:
        return None, at
    name = data[start:middle]
    entry = _new_tuple(
        Entry,
        (name, _TYPES[kind], mode, uid, gid, size, mtime_ns, ctime_ns, dev, ino, nlink, rdev, blocks,
         data[middle:behind], ()),
    )  # fmt: skip
    if kind or rdev or target or not path:  # else a regular file, of which only the path can be wrong
        _check(entry)
    else:
        _check_path(name)
    return entry, behind


def _refuse(kind: int, mode: int, length: int, path: int, target: int, xattrs: int) -> None:
    """Refuse at once the head that no record can have (lengths and counts), before its body is waited for."""
    form, letter = _form(kind)
    least = form.size + path + target + xattrs * _XATTR.size
    if letter >= len(_TYPES) or mode > 0o7777 or path > PATH_LIMIT or not least <= length <= RECORD_LIMIT:
        raise ManifestError("these bytes are no manifest, or a damaged one: the head of a record is impossible")


def _entry(data: bytes, start: int, kind: int, mode: int, length: int, path: int, target: int, xattrs: int) -> Entry:
    """Read the record that begins at ``start``, behind its head."""
    form, letter = _form(kind)
    numbers = form.unpack_from(data, start)
    if form is _DISTANT:
        numbers = _near(numbers)
    uid, gid, mtime_ns, ctime_ns, size, dev, ino, nlink, rdev, blocks = numbers
    at = start + form.size
    behind = at + path
    entry = Entry(
        data[at:behind],
        _TYPES[letter],
        mode,
        uid,
        gid,
        size,
        mtime_ns,
        ctime_ns,
        dev,
        ino,
        nlink,
        rdev,
        blocks,
        data[behind : behind + target],
        _xattrs(xattrs, data[behind + target : start + length]) if behind + target != start + length or xattrs else (),
    )
    _check(entry)
    return entry


def _form(kind: int) -> tuple[struct.Struct, int]:
    """Return the form of the numbers and the number of the type that the type byte tells."""
    if kind & _WIDE:
        return _LONG, kind & ~_WIDE
    return (_DISTANT, kind & ~_FAR) if kind & _FAR else (_SHORT, kind)


def _near(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Return numbers of the far form as those of the others are."""
    uid, gid, mtime, mtime_part, ctime, ctime_part, *others = numbers
    if mtime_part >= _SECOND or ctime_part >= _SECOND:
        raise ManifestError("a record with a time of more than a second's nanoseconds")
    return (uid, gid, mtime * _SECOND + mtime_part, ctime * _SECOND + ctime_part, *others)


def _xattrs(count: int, body: bytes) -> tuple[tuple[bytes, bytes], ...]:
    at = 0
    found: list[tuple[bytes, bytes]] = []
    for _number in range(count):
        if len(body) - at < _XATTR.size:
            raise ManifestError("a record is shorter than its extended attributes")
        name_length, value_length = _XATTR.unpack_from(body, at)
        at += _XATTR.size
        name, value = body[at : at + name_length], body[at + name_length : at + name_length + value_length]
        if value_length > XATTR_SIZE_LIMIT or len(value) != value_length or not name or b"\0" in name:
            raise ManifestError("a record with an impossible extended attribute")
        if found and name <= found[-1][0]:
            raise ManifestError("a record whose extended attributes are not sorted")
        found.append((name, value))
        at += name_length + value_length
    if at != len(body):
        raise ManifestError("a record is longer than what is in it")
    return tuple(found)


def _check_path(path: bytes) -> None:
    try:
        check_path(path)
    except ValueError as error:
        raise ManifestError(str(error)) from None


def _check(entry: Entry) -> None:
    """Refuse an entry that no walk could have made."""
    _check_path(entry.path)
    if not entry.path and entry.type != DIRECTORY:
        raise ManifestError("a root that is no directory")
    if entry.type == SYMLINK:
        right = entry.size == len(entry.target) > 0 and b"\0" not in entry.target
    else:
        right = not entry.target and (entry.type == REGULAR or entry.size == 0)
    if not right or (entry.rdev and entry.type not in (BLOCK, CHARACTER)) or entry.size >= 1 << 63:
        raise ManifestError("a record whose type does not go with its size, target or device number")
