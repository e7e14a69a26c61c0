# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of entries for a comparison of trees: plain values, and their hash. Private to the collection.

Pure. An entry is described by one plain value for each field that is compared. The hash of a record is that of its
description, and a difference is a field whose values are not the same, so the two can never disagree.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from .._model.entry import BLOCK, CHARACTER, REGULAR, SYMLINK, Entry
from .._model.ids import ACL_GROUP, ACL_USER, NUMERIC, IdMap, acl_entries
from .._model.paths import escape
from .._model.time_units import TimeUnits
from . import xattr
from .content_hash import Content

# Besides the type (and a device's number), which always counts. "links" is which names share a file.
FIELDS = frozenset(["size", "mtime", "mode", "owner", "target", "xattrs", "acls", "links", "content"])
# Not a field: owners differ on purpose, so setuid, setgid and capabilities, which follow the owner, are not compared.
UNOWNED = "unowned"
# Nor is this: where the source is not trusted, its trusted.* attributes are not set, and so not compared.
UNTRUSTED = "untrusted"
HASH_BYTES = 16

_COMPARED_XATTRS = (b"user.", b"trusted.", xattr.CAPABILITY)  # others in security.* are the host's own affair


if TYPE_CHECKING:
    from typing import TypedDict

    class Description(TypedDict, total=False):
        """What an entry is: a value for each field that is compared and that it has, ready for JSON."""

        type: str
        size: int
        content: str  # hexadecimal
        target: str  # escaped
        device: int
        mtime: int  # nanoseconds
        mode: str  # octal
        owner: str  # user:group, in numbers
        links: str  # the first path that shares the file, escaped, where that is another
        xattrs: dict[str, str]
        acls: dict[str, str]

else:  # making such a class takes time at each job's start
    Description = dict


class EntryRecord(NamedTuple):
    """An entry with what else the comparison knows about it."""

    entry: Entry
    content: bytes  # hash of the contents; empty if there are none, or they could not be read
    first: bytes  # the first path of the walk that shares the file; mostly the entry's own


def without_attributes(record: EntryRecord) -> EntryRecord:
    """Return a record that is cheap to keep: without extended attributes, which may be of 64 KiB each."""
    return record._replace(entry=record.entry._replace(xattrs=())) if record.entry.xattrs else record


def path_hash(path: bytes) -> bytes:
    """Return the 16 bytes that identify a path on both sides."""
    return hashlib.blake2b(path, digest_size=HASH_BYTES).digest()


class Describer:
    """Describes records by the fields that are compared.

    Owners are numbers, and ``ids`` says what the numbers of this side are called at the destination; ``times``, how
    coarsely times are kept there.
    """

    def __init__(self, fields: frozenset[str], ids: IdMap = NUMERIC, times: TimeUnits | None = None) -> None:
        unknown = fields - FIELDS - {UNOWNED, UNTRUSTED}
        if unknown:
            raise ValueError(f"unknown fields {', '.join(sorted(unknown))}; known are {', '.join(sorted(FIELDS))}")
        self._fields = fields
        self._mode = 0o1777 if UNOWNED in fields else 0o7777
        not_compared = ((UNOWNED, xattr.CAPABILITY), (UNTRUSTED, b"trusted."))
        left_out = [key for mark, key in not_compared if mark in fields]
        self._xattrs = tuple(key for key in _COMPARED_XATTRS if key not in left_out)
        self._ids = ids
        self._times = times or None  # nanoseconds are kept as they are

    @property
    def compares_links(self) -> bool:
        """Whether it counts which names share a file."""
        return "links" in self._fields

    def describe(self, record: EntryRecord) -> Description:
        """Return the values of a record, ready for JSON."""
        entry, fields = record.entry, self._fields
        values: Description = {"type": entry.type}
        if entry.type == REGULAR:
            if "size" in fields:
                values["size"] = entry.size
            if "content" in fields:
                values["content"] = record.content.hex()
        elif entry.type == SYMLINK:
            if "target" in fields:
                values["target"] = escape(entry.target)
        elif entry.type in (BLOCK, CHARACTER):
            values["device"] = entry.rdev
        if "mtime" in fields:
            values["mtime"] = entry.mtime_ns if self._times is None else self._times.stored(entry.path, entry.mtime_ns)
        if "mode" in fields and entry.type != SYMLINK:
            values["mode"] = f"{entry.mode & self._mode:04o}"
        if "owner" in fields:
            values["owner"] = f"{self._ids.uid(entry.uid)}:{self._ids.gid(entry.gid)}"
        if "links" in fields and record.first != entry.path:
            values["links"] = escape(record.first)
        if entry.xattrs:
            self._describe_xattrs(entry, values)
        return values

    def record_hash(self, record: EntryRecord) -> bytes:
        """Return the 16 bytes that are equal where path and description are."""
        # The literals of numbers and texts are the same in every Python 3, and unambiguous.
        text = repr((record.entry.path, self.describe(record)))
        return hashlib.blake2b(text.encode(), digest_size=HASH_BYTES).digest()

    def _describe_xattrs(self, entry: Entry, values: Description) -> None:
        if "xattrs" in self._fields:
            found = {escape(key): _short(value) for key, value in entry.xattrs if key.startswith(self._xattrs)}
            if found:
                values["xattrs"] = found
        if "acls" in self._fields:
            acls = {escape(key): self._acl(value) for key, value in entry.xattrs if key.startswith(xattr.ACL_PREFIX)}
            if acls:
                values["acls"] = acls

    def _acl(self, value: bytes) -> str:
        """Spell an ACL as sorted texts of tag, permissions and whom it names."""
        parts = []
        for tag, permissions, ident in acl_entries(self._ids.acl(value)):
            who = str(ident) if tag in (ACL_USER, ACL_GROUP) else ""
            parts.append(f"{tag:02x}:{who}:{permissions:o}")
        return ",".join(sorted(parts))


class LinkTable:
    """Remembers the first path of every file that has several names."""

    def __init__(self) -> None:
        self._first: dict[tuple[int, int], bytes] = {}

    def record(self, entry: Entry, content: Content) -> EntryRecord:
        """Make a record of the next entry of a walk."""
        shared = entry.link_id
        first = entry.path if shared is None else self._first.setdefault(shared, entry.path)
        return EntryRecord(entry, b"" if isinstance(content, OSError) else content, first)


def _short(value: bytes) -> str:
    return hashlib.blake2b(value, digest_size=HASH_BYTES).hexdigest()
