# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The records of one side of a comparison, in a file, so that its tree is read only once. Private to the collection.

The file belongs to the job that wrote it (mode 0600, in the job's own folder). What another side sends is a
:class:`Listing`, which is data and never trusted with more than being compared.
"""

from __future__ import annotations

import base64
import binascii
import os
import struct
from typing import TYPE_CHECKING, Any, BinaryIO, Collection, Iterator, Mapping, NamedTuple

from .._model.entry_codec import Decoder, ManifestError, encode
from .._model.paths import escape
from .record import HASH_BYTES, Describer, Description, EntryRecord, path_hash

if TYPE_CHECKING:
    from typing import TypedDict

    class PackedListing(TypedDict):
        """A listing in JSON; the texts are base64."""

        buckets: list[int]
        entries: str
        unstable: str

    class Details(TypedDict):
        """What a report shows of an entry."""

        key: str  # the first half of the path's hash, by which both sides know it, hexadecimal
        path: str  # escaped
        values: Description

    class SourceDetails(Details):
        unstable: bool  # it changed after the transfer began

    class Explanation(TypedDict):
        """What the destination says of a portion of the source's listing."""

        differs: int
        missing: int
        extra: int
        unstable: int  # of those that differ or are missing, how many changed at the source meanwhile
        ask: list[str]  # keys of entries to ask the source about
        found: list[Details]  # of these entries here
        extras: list[Details]  # of entries that only the destination has

else:  # making such classes takes time at each job's start
    PackedListing = Details = SourceDetails = Explanation = dict

BUCKETS = 1024
LISTED_BYTES = 16  # of an entry in a listing: 8 of the path's hash, 8 of the record's

_HALF = LISTED_BYTES // 2
# hash of the path, hash of the record, lengths of: content hash, first path, manifest record
_HEAD = struct.Struct(f"<{HASH_BYTES}s{HASH_BYTES}sHII")


class RecordStoreError(ValueError):
    """A record store or a listing that is damaged."""


class Listing(NamedTuple):
    """Some buckets of one side: for each entry in them 8 bytes of its path's hash and 8 of its record's."""

    buckets: list[int]  # which are whole in here
    entries: bytes
    unstable: bytes  # the same for entries that changed after the transfer began

    def as_dict(self) -> PackedListing:
        """Return plain data for JSON."""
        texts = [base64.b64encode(data).decode() for data in (self.entries, self.unstable)]
        return {"buckets": self.buckets, "entries": texts[0], "unstable": texts[1]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Listing:
        """Read what as_dict gave. Raises RecordStoreError for anything else."""
        try:
            entries, unstable = (base64.b64decode(data[key], validate=True) for key in ("entries", "unstable"))
            buckets = [int(number) for number in data["buckets"]]
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            raise RecordStoreError(f"the listing of the other side is damaged: {error}") from None
        if len(entries) % LISTED_BYTES or len(unstable) % LISTED_BYTES:
            raise RecordStoreError("the listing of the other side is cut short")
        return cls(buckets, entries, unstable)


class RecordWriter:
    """Writes records; close it (or use it as a context manager) when the walk is over."""

    def __init__(self, path: str) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._file: BinaryIO = os.fdopen(fd, "wb", buffering=1 << 20)

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def add(self, of_path: bytes, of_record: bytes, record: EntryRecord) -> None:
        """Write one record with its two hashes."""
        first = b"" if record.first == record.entry.path else record.first
        packed = encode(record.entry)
        self._file.write(_HEAD.pack(of_path, of_record, len(record.content), len(first), len(packed)))
        self._file.write(record.content + first + packed)

    def close(self) -> None:
        """Write what is buffered."""
        self._file.close()


class RecordStore:
    """Reads the records of one side. ``describer`` is the one that the records were hashed with."""

    def __init__(self, path: str, describer: Describer) -> None:
        self._path = path
        self._describer = describer

    def listing(self, buckets: Collection[int], limit: int = 1_000_000, changed_after_ns: int | None = None) -> Listing:
        """List the entries of buckets, of as many whole ones, in order, as ``limit`` entries have room for.

        At least one bucket is listed; what is left over (``set(buckets) - set(listing.buckets)``) is for the next
        call. An entry whose ctime is later than ``changed_after_ns`` goes to the unstable ones.
        """
        wanted = self._room_for(sorted(set(buckets)), limit)
        entries, unstable = bytearray(), bytearray()
        for of_path, of_record, rest in self._heads(set(wanted)):
            late = changed_after_ns is not None and rest.record().entry.ctime_ns > changed_after_ns
            (unstable if late else entries).extend(of_path[:_HALF] + of_record[:_HALF])
        return Listing(wanted, bytes(entries), bytes(unstable))

    def explain(
        self, theirs: Listing, limit: int = 1000, extras: bool = False, absent: Collection[str] = ()
    ) -> Explanation:
        """Lay the source's listing beside these records, and return what differs: up to ``limit`` entries in detail.

        With ``extras`` what only this side has is counted and detailed, too.

        Names that the source has not do not count where hard links are compared. ``absent`` are those that the other
        portions of the source's listing gave (see :meth:`absent`).
        """
        not_there = [*absent, *self.absent(theirs)]
        firsts = self._firsts({bytes.fromhex(key) for key in not_there}) if not_there else {}
        listed = _pairs(theirs.entries)
        listed.update(_pairs(theirs.unstable))
        late = set(_pairs(theirs.unstable))
        differs = extra = unstable = 0
        ask: list[str] = []
        found: list[Details] = []
        unlisted: list[Details] = []
        for of_path, of_record, rest in self._heads(set(theirs.buckets)):
            key = of_path[:_HALF]
            their_record = listed.pop(key, None)
            if their_record is None:
                extra += extras
                if extras and len(unlisted) < limit:
                    unlisted.append(self._details(rest.record()))
            elif their_record != of_record[:_HALF]:
                record = _among(rest.record(), firsts)
                if self._describer.record_hash(record)[:_HALF] == their_record:
                    continue
                differs += 1
                unstable += key in late
                if len(ask) < limit:
                    ask.append(key.hex())
                    found.append(self._details(record))
        ask += [key.hex() for key in sorted(listed)[: max(0, limit - len(ask))]]
        return {
            "differs": differs,
            "missing": len(listed),
            "extra": extra,
            "unstable": unstable + len(late & set(listed)),
            "ask": ask,
            "found": found,
            "extras": unlisted,
        }

    def absent(self, theirs: Listing) -> list[str]:
        """Return the path hashes (hexadecimal) of names in a listing's buckets that the source has not.

        Only names of files with several names, and only where hard links are compared.
        """
        if not self._describer.compares_links:
            return []
        listed = {*_pairs(theirs.entries), *_pairs(theirs.unstable)}
        return [
            of_path[:_HALF].hex()
            for of_path, _of_record, rest in self._heads(set(theirs.buckets))
            if of_path[:_HALF] not in listed and rest.record().entry.link_id is not None
        ]

    def _firsts(self, absent: set[bytes]) -> dict[tuple[int, int], bytes]:
        """Return, for each file of which some names are absent, the first of its others in the order of the walk."""
        files: set[tuple[int, int]] = set()
        firsts: dict[tuple[int, int], bytes] = {}
        for of_path, _of_record, rest in self._heads(set(range(BUCKETS))):
            entry = rest.record().entry
            if entry.link_id is None:
                continue
            if of_path[:_HALF] in absent:
                files.add(entry.link_id)
            else:
                firsts.setdefault(entry.link_id, entry.path)
        return {file: path for file, path in firsts.items() if file in files}

    def details(self, asked: Collection[str], changed_after_ns: int | None = None) -> list[SourceDetails]:
        """Return the details of the entries with these path hashes (hexadecimal), ready for JSON."""
        try:
            wanted = {bytes.fromhex(text) for text in asked}
        except ValueError as error:
            raise RecordStoreError(f"the question of the other side is damaged: {error}") from None
        found: list[SourceDetails] = []
        for of_path, _of_record, rest in self._heads({bucket_of(key) for key in wanted if len(key) == _HALF}):
            if of_path[:_HALF] in wanted:
                record = rest.record()
                late = changed_after_ns is not None and record.entry.ctime_ns > changed_after_ns
                found.append({**self._details(record), "unstable": late})
        return found

    def _details(self, record: EntryRecord) -> Details:
        path = record.entry.path
        return {
            "key": path_hash(path)[:_HALF].hex(),
            "path": escape(path),
            "values": self._describer.describe(record),
        }

    def _room_for(self, buckets: list[int], limit: int) -> list[int]:
        """Return the first of the buckets, as many as have together no more entries than the limit."""
        counts = dict.fromkeys(buckets, 0)
        for of_path, _of_record, _rest in self._heads(set(buckets)):
            counts[bucket_of(of_path)] += 1
        chosen: list[int] = []
        room = limit
        for bucket in buckets:
            room -= counts[bucket]
            if room < 0 and chosen:
                break
            chosen.append(bucket)
        return chosen

    def _heads(self, buckets: set[int]) -> Iterator[tuple[bytes, bytes, _Rest]]:
        """Yield the two hashes of every record in the buckets, and what is behind them, not decoded yet."""
        with open(self._path, "rb", buffering=1 << 20) as file:
            while True:
                head = file.read(_HEAD.size)
                if not head:
                    return
                if len(head) < _HEAD.size:
                    raise RecordStoreError("the record store is cut short")
                of_path, of_record, *lengths = _HEAD.unpack(head)
                data = file.read(sum(lengths))
                if len(data) < sum(lengths):
                    raise RecordStoreError("the record store is cut short")
                if bucket_of(of_path) in buckets:
                    yield of_path, of_record, _Rest(data, lengths[0], lengths[1])


class _Rest(NamedTuple):
    """A record as it stands in the record store."""

    data: bytes
    content: int  # length
    first: int  # length

    def record(self) -> EntryRecord:
        start = self.content + self.first
        try:
            entry = next(Decoder().feed(self.data[start:]))
        except (ManifestError, StopIteration):
            raise RecordStoreError("the record store is damaged") from None
        return EntryRecord(entry, self.data[: self.content], self.data[self.content : start] or entry.path)


def _among(record: EntryRecord, firsts: dict[tuple[int, int], bytes]) -> EntryRecord:
    """Return a record as it is among the names that both sides have."""
    file = record.entry.link_id
    return record if file is None else record._replace(first=firsts.get(file, record.first))


def bucket_of(of_path: bytes) -> int:
    """Return the bucket of a path, by its hash."""
    return int.from_bytes(of_path[:2], "big") % BUCKETS


def _pairs(data: bytes) -> dict[bytes, bytes]:
    """Split a listing into path hash and record hash."""
    return {data[at : at + _HALF]: data[at + _HALF : at + LISTED_BYTES] for at in range(0, len(data), LISTED_BYTES)}
