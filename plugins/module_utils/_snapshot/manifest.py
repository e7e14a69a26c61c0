# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The manifest of a snapshot: a file that tells every entry with the hash of its contents. Private to the collection.

It is written and read as a stream: what is in memory is one frame, whatever the size of the tree. The file is the magic
``LHSNAP1\\n`` and frames. A frame is a head (type, length, stored length, check) and its payload, compressed by zlib.
The check is BLAKE2b (16 bytes) over the check of the frame before (zeros for the first), the type, the length of the
payload (4 bytes) and what is stored, so a flipped bit, a frame that is missing, doubled or moved, and a file that is
cut short are all found.

``H``, the first frame, is JSON: ``algorithm`` of the content hashes, ``host``, ``job``. ``R`` frames carry records: the
length of the hashes (4 bytes), for each record the length of its hash (1 byte) and the hash, and then the entries as
``_model/entry_codec.py`` packs them. ``E``, the last frame, is JSON: the totals. Numbers are little endian.

Records come in the order of a walk, which is that of ``paths.order``; the first is the root.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from typing import Any, BinaryIO, Callable, Iterable, Iterator, Mapping, NamedTuple

from .._core.files import ALGORITHMS
from .._core.json_shape import WrongShape, as_object, member
from .._model.entry import Entry
from .._model.entry_codec import (
    RECORD_LIMIT,
    Decoder,
    ManifestError,
    decode_at,
    encode,
    scan,
    select,
    select_files,
)
from .._model.paths import order
from .._tree.record import EntryRecord

MAGIC = b"LHSNAP1\n"
_ANY_MAGIC = b"LHSNAP"  # of every format
HASH_BYTES = 32

_HEADER, _RECORDS, _END = b"H", b"R", b"E"
_CHECK_BYTES = 16
_FRAME = struct.Struct(f"<cII{_CHECK_BYTES}s")
_LENGTH = struct.Struct("<I")
_FULL = 1 << 20  # bytes of records after which a frame is written
_LIMIT = 2 * RECORD_LIMIT  # bytes of a payload
_COMPRESSION = 1  # the fastest: names compress well enough


class About(NamedTuple):
    """What the first frame says."""

    algorithm: str  # of the content hashes
    host: str
    job: str


class BlockPlace(NamedTuple):
    """The position of a block of records in a manifest, for reading the block again."""

    offset: int
    check: bytes  # of the frame before


class ManifestWriter:
    """Writes a manifest; without ``finish`` it is none."""

    def __init__(self, file: BinaryIO, about: About) -> None:
        self._file = file
        self._check = bytes(_CHECK_BYTES)
        self._hashes = bytearray()
        self._entries = bytearray()
        file.write(MAGIC)
        self._frame(_HEADER, _json(about._asdict()))

    def add(self, entry: Entry, content: bytes) -> None:
        """Add the next entry of a walk with the hash of its contents (empty: there is none)."""
        self._hashes += bytes([len(content)]) + content
        self._entries += encode(entry)
        if len(self._entries) >= _FULL:
            self._flush()

    def finish(self, totals: Mapping[str, int]) -> None:
        """Write the end. The file itself is the caller's to sync and close."""
        self._flush()
        self._frame(_END, _json(totals))

    def _flush(self) -> None:
        if self._entries:
            self._frame(_RECORDS, _LENGTH.pack(len(self._hashes)) + self._hashes + self._entries)
            self._hashes.clear()
            self._entries.clear()

    def _frame(self, kind: bytes, payload: bytes) -> None:
        stored = zlib.compress(payload, _COMPRESSION)
        self._check = _chained(self._check, kind, len(payload), stored)
        self._file.write(_FRAME.pack(kind, len(payload), len(stored), self._check) + stored)


class ManifestReader:
    """Reads a manifest. Everything raise ManifestError if it is damaged."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._check = bytes(_CHECK_BYTES)
        self._ending = b""  # payload of the last frame
        self.totals: dict[str, int] | None = None  # known when all records were read
        magic = file.read(len(MAGIC))
        if magic != MAGIC:
            if magic.startswith(_ANY_MAGIC):
                raise ManifestError("it has another format than this version of the collection reads")
            raise ManifestError("it does not begin as a manifest of a snapshot does")
        kind, payload = self._frame()
        self.about = _about(payload)
        if kind != _HEADER or self.about.algorithm not in ALGORITHMS:
            raise ManifestError("its head is missing, or names a hash algorithm that is not known here")

    @property
    def algorithm(self) -> str:
        """The algorithm of the content hashes."""
        return self.about.algorithm

    def records(self) -> Iterator[EntryRecord]:
        """Yield every record, and at the end make sure that this was the whole manifest."""
        last: bytes | None = None
        for payload in iter(self._next_records, None):
            for record in _records(payload):
                key = order(record.entry.path)
                if (last is None) != (key == b"") or (last is not None and key <= last):
                    raise ManifestError("its records are not in order")
                last = key
                yield record
        self._finish(last is not None)

    def blocks(self) -> Iterator[RecordBlock]:
        """Yield the records block by block, without decoding them, which takes a fraction of the time."""
        last: bytes | None = None
        for payload in iter(self._next_records, None):
            block = RecordBlock(payload)
            if (
                not block.paths
                or (last is None) != (block.paths[0] == b"")
                or (last is not None and order(block.paths[0]) <= last)
            ):
                raise ManifestError("its records are not in order")
            last = order(block.paths[-1])
            yield block
        self._finish(last is not None)

    @property
    def place(self) -> BlockPlace:
        """The position of the next block."""
        return BlockPlace(self._file.tell(), self._check)

    def block_at(self, place: BlockPlace) -> RecordBlock:
        """Return a block again, once ``blocks`` has been at its place."""
        self._file.seek(place.offset)
        self._check = place.check
        payload = self._next_records()
        if payload is None:
            raise ManifestError("it has changed since it was read")
        return RecordBlock(payload)

    def _next_records(self) -> bytes | None:
        """Return the next payload of records, None at the end of the manifest, whose payload is kept."""
        kind, payload = self._frame()
        if kind == _END:
            self._ending = payload
            return None
        if kind != _RECORDS:
            raise ManifestError("it has a frame where none can be")
        return payload

    def _finish(self, has_records: bool) -> None:
        """Take the totals, and make sure that nothing follows them."""
        totals = _totals(self._ending)
        if not has_records or self._file.read(1):
            raise ManifestError("it has no records, or something behind its end")
        self.totals = totals

    def verify(self) -> dict[str, int]:
        """Read the whole manifest without looking into its records, which takes a fraction of the time.

        Return its totals.
        """
        kind = _RECORDS
        while kind == _RECORDS:
            kind, payload = self._frame()
        if kind != _END or self._file.read(1):
            raise ManifestError("it has a frame where none can be, or something behind its end")
        self.totals = _totals(payload)
        return self.totals

    def _frame(self) -> tuple[bytes, bytes]:
        head = self._file.read(_FRAME.size)
        if len(head) < _FRAME.size:
            raise ManifestError("it is cut short")
        kind, length, stored_length, check = _FRAME.unpack(head)
        if max(length, stored_length) > _LIMIT:
            raise ManifestError("a frame has an impossible length")
        stored = self._file.read(stored_length)
        if len(stored) < stored_length:
            raise ManifestError("it is cut short")
        self._check = _chained(self._check, kind, length, stored)
        if check != self._check:
            raise ManifestError("the check of a frame is wrong")
        inflater = zlib.decompressobj()
        try:
            payload = inflater.decompress(stored, length + 1)
        except zlib.error as error:
            raise ManifestError(f"a frame cannot be unpacked: {error}") from None
        if len(payload) != length or not inflater.eof or inflater.unused_data:
            raise ManifestError("a frame has another length than its head says")
        return kind, payload


class RecordBlock:
    """The records of one frame: their paths, and the others of their values when these are asked for."""

    def __init__(self, payload: bytes) -> None:
        if len(payload) < _LENGTH.size:
            raise ManifestError("a frame is too short")
        end = _LENGTH.size + _LENGTH.unpack_from(payload)[0]
        self._hashes, self._entries = payload[_LENGTH.size : end], payload[end:]
        self.paths, self._begins = scan(self._entries)

    def select(self, numbers: Iterable[int], holds: Callable[[str, int, int, int, int], bool]) -> list[int]:
        """Return the numbers of the records for which ``holds`` is true of type, size, uid, gid and mtime_ns."""
        return select(self._entries, self._begins, numbers, holds)

    def files(self, least: int) -> Iterator[tuple[int, int, int]]:
        """Yield the number, size and mtime_ns of each regular file that has at least so many bytes."""
        return select_files(self._entries, self._begins, least)

    def records(self, numbers: Iterable[int]) -> Iterator[EntryRecord]:
        """Yield the records of these numbers, which ascend."""
        hashes, at, passed = self._hashes, 0, 0
        for number in numbers:
            try:
                while passed < number:
                    at += 1 + hashes[at]
                    passed += 1
                length = hashes[at]
            except IndexError:
                raise ManifestError("a frame has fewer hashes than entries") from None
            content = hashes[at + 1 : at + 1 + length]
            if length not in (0, HASH_BYTES) or len(content) != length:
                raise ManifestError("a frame has impossible hashes")
            entry = decode_at(self._entries, self._begins[number])
            yield EntryRecord(entry, content, entry.path)


def _records(payload: bytes) -> Iterator[EntryRecord]:
    if len(payload) < _LENGTH.size:
        raise ManifestError("a frame is too short")
    end = _LENGTH.size + _LENGTH.unpack_from(payload)[0]
    at = _LENGTH.size
    decoder = Decoder()
    for entry in decoder.feed(payload[end:]):
        if at >= end or payload[at] not in (0, HASH_BYTES):
            raise ManifestError("a frame has fewer hashes than entries, or impossible ones")
        behind = at + 1 + payload[at]
        yield EntryRecord(entry, payload[at + 1 : behind], entry.path)
        at = behind
    decoder.finish()
    if at != end:
        raise ManifestError("a frame has more hashes than entries")


def _chained(before: bytes, kind: bytes, length: int, stored: bytes) -> bytes:
    digest = hashlib.blake2b(before, digest_size=_CHECK_BYTES)
    digest.update(kind + _LENGTH.pack(length))
    digest.update(stored)
    return digest.digest()


def _json(data: Mapping[str, str | int]) -> bytes:
    return json.dumps(data, sort_keys=True).encode("ascii")


def _about(payload: bytes) -> About:
    values = _table(payload)
    return About(*(str(values.get(name, "")) for name in About._fields))


def _totals(payload: bytes) -> dict[str, int]:
    values = _table(payload)
    try:
        return {name: member(values, name, int) for name in values}
    except WrongShape as error:
        raise ManifestError(f"its end is damaged: {error}") from None


def _table(payload: bytes) -> Mapping[str, Any]:
    try:
        return as_object(json.loads(payload), "a frame")
    except ValueError:
        raise ManifestError("a frame that must be a table is none") from None
