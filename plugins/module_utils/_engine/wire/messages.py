# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages and their bytes. Pure. docs/stream-protocol.md says who sends which, ``conversation`` when."""

from __future__ import annotations

import json
import re
import struct
import zlib
from typing import Any, Callable, Collection, Mapping, TypeVar

from ..._core.json_shape import WrongShape
from ..._model.entry import Entry
from ..._model.entry_codec import Decoder, encode
from ..._model.paths import STAGING, is_staging
from ..._model.ticket import Ticket, parse_ticket
from .frames import MAX_DATA, FrameError, FrameKind, Payload

ATTEMPTS = 4  # to bring one file in one conversation
SHARD_ENTRIES = 2000
_LENGTH = struct.Struct("!I")
_DIGITS = 12  # of a position in a shard or an id, and more than any has
_REASON = 4000  # characters, of why an end gives up
_SHORT = 64 << 10  # bytes of a message that cannot become large in memory
_MAX_VALUES = 1 << 18  # in a longer one; each may take a hundred bytes of memory
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')

Value = TypeVar("Value")

_WORKS = b"w"  # all that a PING may hold


class Message:
    """What a frame of ``kind`` holds. ``parse`` reads a payload, and raises FrameError."""

    __slots__ = ()
    kind: FrameKind
    _KEYS: tuple[tuple[str, str], ...] = ()  # attribute, and its name in the payload; left out where it is None

    def dump(self) -> bytes:
        """Return the payload."""
        values = ((key, getattr(self, name)) for name, key in self._KEYS)
        return dump_message({key: value for key, value in values if value is not None})


class OfShard(Message):
    """A message about one shard; it may name files by their positions in it."""

    __slots__ = ("id",)
    _POSITIONS: tuple[str, ...] = ()
    id: int

    def check(self, count: int) -> None:
        """Raise FrameError if it names entries that a shard of ``count`` does not have."""
        for name in self._POSITIONS:
            positions = getattr(self, name)
            if positions and not 0 <= min(positions) <= max(positions) < count:
                raise FrameError("a message names entries that its shard does not have")


class Hello(Message):
    """HELLO: what both ends must agree on."""

    __slots__ = ("check", "id", "version")
    kind = FrameKind.HELLO
    _KEYS = (("version", "version"), ("id", "id"), ("check", "check"))

    def __init__(self, version: object, transfer: object, check: object) -> None:
        self.version, self.id, self.check = version, transfer, check

    @classmethod
    def parse(cls, payload: Payload) -> Hello:
        values = parse_message(payload)
        return cls(values.get("version"), values.get("id"), values.get("check"))


class Shard(OfShard):
    """SHARD: a batch of entries that is decided, sent and accounted for as one."""

    __slots__ = ("attempt", "entries", "groups", "hashes", "opaque", "size", "tagged", "users")
    kind = FrameKind.SHARD
    _POSITIONS = ("opaque", "tagged")

    def __init__(self, identity: int, entries: list[Entry], attempt: int = 1) -> None:
        self.id = identity
        self.entries = entries
        self.attempt = attempt  # more than 1: these files changed or were damaged on their way, and come again
        self.opaque: list[int] = []  # directories whose contents the source does not list
        self.tagged: list[int] = []  # directories of which it lists only the files that leave out the rest
        self.users: dict[int, str] = {}  # names of uids that were not seen before
        self.groups: dict[int, str] = {}
        self.hashes: list[str] = []  # how the source can hash blocks of large files, beside what every host can
        self.size = 0  # bytes of its message, once that is made

    def dump(self) -> bytes:
        head = {
            "id": self.id,
            "attempt": self.attempt,
            "count": len(self.entries),
            "opaque": self.opaque,
            "tagged": self.tagged,
            "users": self.users,
            "groups": self.groups,
            "hashes": self.hashes,
        }
        payload = _with_head(head, b"".join(map(encode, self.entries)))
        self.size = len(payload)
        return payload

    @classmethod
    def parse(cls, payload: Payload) -> Shard:
        """Read a shard; raises FrameError, also where an entry is one that no walk can have made."""
        payload = bytes(payload)
        head, rest = _head_and_rest(payload)
        decoder = Decoder()
        try:
            entries = list(decoder.feed(rest))
            decoder.finish()
        except ValueError as error:
            raise FrameError(f"a shard that cannot be read arrived: {error}") from error
        shard = cls(number(head, "id"), entries, number(head, "attempt"))
        shard.size = len(payload)
        shard.opaque, shard.tagged = _positions(head, "opaque"), _positions(head, "tagged")
        shard.hashes = _texts(head, "hashes")
        shard.users, shard.groups = _by_index(head, "users", str), _by_index(head, "groups", str)
        if len(entries) > SHARD_ENTRIES:
            raise FrameError(f"a shard of {len(entries)} entries arrived; {SHARD_ENTRIES} are allowed")
        if not 1 <= shard.attempt <= ATTEMPTS:
            raise FrameError(f"attempt {shard.attempt} of a shard arrived; there are {ATTEMPTS}")
        if STAGING in payload and any(is_staging(entry.path) for entry in entries):
            raise FrameError("an entry with the name of a transfer's own folder arrived, which no source offers")
        if head.get("count") != len(entries):
            raise FrameError(f"a shard of {head.get('count')} entries arrived with {len(entries)}")
        return shard


class Total(Message):
    """TOTAL: what the source has found in all."""

    __slots__ = ("apparent", "files", "size")
    kind = FrameKind.TOTAL
    _KEYS = (("files", "files"), ("size", "bytes"), ("apparent", "apparent"))

    def __init__(self, files: int, size: int, apparent: int) -> None:
        self.files = files
        self.size, self.apparent = size, apparent  # bytes of contents without holes, and with them

    @classmethod
    def parse(cls, payload: Payload) -> Total:
        values = parse_message(payload)
        return cls(number(values, "files"), number(values, "bytes"), number(values, "apparent"))


class Scanned(Message):
    """SCANNED: there are no more shards."""

    __slots__ = ("clean", "files", "size")
    kind = FrameKind.SCANNED
    _KEYS = (("clean", "clean"), ("files", "files"), ("size", "bytes"))

    def __init__(self, files: int, size: int, clean: bool) -> None:
        self.files, self.size = files, size
        self.clean = clean  # whether nothing failed, so that what the source lacks may be deleted

    @classmethod
    def parse(cls, payload: Payload) -> Scanned:
        values = parse_message(payload)
        return cls(number(values, "files"), number(values, "bytes"), bool(values.get("clean")))


class Want(OfShard):
    """WANT: the files of a shard whose contents the destination asks for.

    ``ranges.parse`` reads ``ranges``, once the size of the file is known, and ``content.delta`` the hashes in ``sums``.
    """

    __slots__ = ("have", "indexes", "ranges", "sums")
    kind = FrameKind.WANT
    _KEYS = (("id", "id"), ("indexes", "index"), ("have", "have"), ("ranges", "ranges"), ("sums", "sums"))
    _POSITIONS = ("indexes", "have", "ranges", "sums")

    def __init__(
        self,
        shard: int,
        indexes: list[int],
        have: dict[int, int],
        ranges: Mapping[int, object],
        sums: Mapping[int, object] | None = None,
    ) -> None:
        self.id, self.indexes, self.have, self.ranges, self.sums = shard, indexes, have, ranges, sums

    @classmethod
    def parse(cls, payload: Payload) -> Want:
        values = parse_message(payload)
        have, ranges = _by_index(values, "have", _an_int), _by_index(values, "ranges", _as_it_is)
        sums = _by_index(values, "sums", _as_it_is)
        return cls(number(values, "id"), _positions(values, "index"), have, ranges, sums)


class Hash(OfShard):
    """HASH: the files of a shard whose contents must be hashed by the source."""

    __slots__ = ("indexes",)
    kind = FrameKind.HASH
    _KEYS = (("id", "id"), ("indexes", "index"))
    _POSITIONS = ("indexes",)

    def __init__(self, shard: int, indexes: list[int]) -> None:
        self.id, self.indexes = shard, indexes

    @classmethod
    def parse(cls, payload: Payload) -> Hash:
        values = parse_message(payload)
        return cls(number(values, "id"), _positions(values, "index"))


class Sums(OfShard):
    """SUMS: the hashes that HASH asked for, by position; empty if a file could not be read."""

    __slots__ = ("sums",)
    kind = FrameKind.SUMS
    _KEYS = (("id", "id"), ("sums", "sums"))
    _POSITIONS = ("sums",)

    def __init__(self, shard: int, sums: dict[int, str]) -> None:
        self.id, self.sums = shard, sums

    @classmethod
    def parse(cls, payload: Payload) -> Sums:
        values = parse_message(payload)
        return cls(number(values, "id"), _by_index(values, "sums", str))


class Sent(OfShard):
    """SENT: all contents of a shard have left the source; ``problems`` and ``sums`` (hashes) by position."""

    __slots__ = ("problems", "size", "sums")
    kind = FrameKind.SENT
    _KEYS = (("id", "id"), ("problems", "problems"), ("sums", "sums"), ("size", "bytes"))
    _POSITIONS = ("problems", "sums")

    def __init__(self, shard: int, problems: dict[int, str], sums: dict[int, str], size: int) -> None:
        self.id, self.problems, self.sums, self.size = shard, problems, sums, size

    @classmethod
    def parse(cls, payload: Payload) -> Sent:
        values = parse_message(payload)
        problems, sums = _by_index(values, "problems", str), _by_index(values, "sums", str)
        return cls(number(values, "id"), problems, sums, number(values, "bytes"))


class Ack(OfShard):
    """ACK: a shard is done with at the destination, but for the files that must come again, each with its reason."""

    __slots__ = ("accounted", "again", "matched")
    kind = FrameKind.ACK
    _KEYS = (("id", "id"), ("accounted", "accounted"), ("again", "again"), ("matched", "matched"))
    _POSITIONS = ("again",)

    def __init__(self, shard: int, accounted: int, again: dict[int, str], matched: int) -> None:
        self.id, self.accounted, self.again = shard, accounted, again
        self.matched = matched  # bytes that were there already

    @classmethod
    def parse(cls, payload: Payload) -> Ack:
        values = parse_message(payload)
        again = _by_index(values, "again", str)
        return cls(number(values, "id"), number(values, "accounted"), again, number(values, "matched"))


class Got(OfShard):
    """GOT: ranges of a large file that the destination has written (read by ``ranges.parse``)."""

    __slots__ = ("index", "ranges")
    kind = FrameKind.GOT
    _KEYS = (("id", "id"), ("index", "index"), ("ranges", "ranges"))

    def __init__(self, shard: int, index: int, ranges: object) -> None:
        self.id, self.index, self.ranges = shard, index, ranges

    @classmethod
    def parse(cls, payload: Payload) -> Got:
        values = parse_message(payload)
        return cls(number(values, "id"), number(values, "index"), values.get("ranges"))


class BlockSums(OfShard):
    """BLOCKS: hashes of blocks of a large file's old version, from the block ``first`` on."""

    __slots__ = ("first", "index", "is_last", "sums")
    kind = FrameKind.BLOCKS

    def __init__(self, shard: int, index: int, first: int, sums: bytes, is_last: bool) -> None:
        self.id, self.index, self.first, self.sums = shard, index, first, sums
        self.is_last = is_last  # of this file

    def dump(self) -> bytes:
        head = {"id": self.id, "index": self.index, "first": self.first, "last": self.is_last}
        return _with_head(head, self.sums)

    @classmethod
    def parse(cls, payload: Payload) -> BlockSums:
        head, sums = _head_and_rest(payload)
        return cls(number(head, "id"), number(head, "index"), number(head, "first"), sums, bool(head.get("last")))


class Begin(OfShard):
    """BEGIN: a shard's contents follow; ``tar``: as an archive (None if the method knows none)."""

    __slots__ = ("tar",)
    kind = FrameKind.BEGIN
    _KEYS = (("id", "id"), ("tar", "tar"))

    def __init__(self, shard: int, tar: bool | None = None) -> None:
        self.id, self.tar = shard, tar

    @classmethod
    def parse(cls, payload: Payload) -> Begin:
        values = parse_message(payload)
        return cls(number(values, "id"), bool(values.get("tar")))


class Raw(Message):
    """RAW: a file that no archive can hold follows as it is."""

    __slots__ = ("index",)
    kind = FrameKind.RAW
    _KEYS = (("index", "index"),)

    def __init__(self, index: int) -> None:
        self.index = index

    @classmethod
    def parse(cls, payload: Payload) -> Raw:
        return cls(number(parse_message(payload), "index"))


class End(OfShard):
    """END: a shard's archive is complete, with its length and its CRC-32."""

    __slots__ = ("crc", "size")
    kind = FrameKind.END
    _KEYS = (("id", "id"), ("size", "bytes"), ("crc", "crc"))

    def __init__(self, shard: int, size: int, crc: int) -> None:
        self.id, self.size, self.crc = shard, size, crc

    @classmethod
    def parse(cls, payload: Payload) -> End:
        values = parse_message(payload)
        return cls(number(values, "id"), number(values, "bytes"), number(values, "crc"))


class Ready(OfShard):
    """READY: a shard's files can be fetched."""

    __slots__ = ()
    kind = FrameKind.READY
    _KEYS = (("id", "id"),)

    def __init__(self, shard: int) -> None:
        self.id = shard

    @classmethod
    def parse(cls, payload: Payload) -> Ready:
        return cls(number(parse_message(payload), "id"))


class Fetched(Ready):
    """FETCHED: they were."""

    __slots__ = ()
    kind = FrameKind.FETCHED


class Fewer(Message):
    """FEWER: the data connections that end, by their numbers."""

    __slots__ = ("streams",)
    kind = FrameKind.FEWER
    _KEYS = (("streams", "streams"),)

    def __init__(self, streams: Collection[int]) -> None:
        self.streams = streams

    @classmethod
    def parse(cls, payload: Payload) -> Fewer:
        return cls(_numbers(parse_message(payload), "streams", "data connections"))


class PaceMessage(Message):
    """PACE: the ticket of an end, where it has changed, so that both ends know what is in force."""

    __slots__ = ("ticket",)
    kind = FrameKind.PACE

    def __init__(self, ticket: Ticket) -> None:
        self.ticket = ticket

    def dump(self) -> bytes:
        return dump_message(self.ticket.dump())

    @classmethod
    def parse(cls, payload: Payload) -> PaceMessage:
        try:
            return cls(parse_ticket(parse_message(payload)))
        except WrongShape as error:
            raise FrameError(f"a ticket that cannot be read arrived: {error}") from error


class FailedMessage(Message):
    """FAILED: why an end gives up."""

    __slots__ = ("reason",)
    kind = FrameKind.FAILED
    _KEYS = (("reason", "reason"),)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    @classmethod
    def parse(cls, payload: Payload) -> FailedMessage:
        return cls(shorten(str(parse_message(payload).get("reason", "the peer failed"))))


class Ping(Message):
    """PING: an end lives. ``works``: it is at work itself, and does not just wait for its peer."""

    __slots__ = ("works",)
    kind = FrameKind.PING

    def __init__(self, works: bool = False) -> None:
        self.works = works

    def dump(self) -> bytes:
        return _WORKS if self.works else b""

    @classmethod
    def parse(cls, payload: Payload) -> Ping:
        return cls(bytes(payload[:1]) == _WORKS)


class Bye(Message):
    """BYE: an end has nothing more to say on a connection."""

    __slots__ = ()
    kind = FrameKind.BYE

    def dump(self) -> bytes:
        return b""

    @classmethod
    def parse(cls, _payload: Payload) -> Bye:
        return cls()


def _with_head(head: Mapping[str, object], rest: bytes) -> bytes:
    """Return a payload of plain data and bytes."""
    data = dump_message(head)
    return _LENGTH.pack(len(data)) + data + rest


def _head_and_rest(payload: Payload) -> tuple[dict[str, Any], bytes]:
    """Read what ``_with_head`` made; raises FrameError."""
    payload = bytes(payload)
    if len(payload) < _LENGTH.size:
        raise FrameError("a message without a head arrived")
    (length,) = _LENGTH.unpack_from(payload)
    behind = _LENGTH.size + length
    return parse_message(payload[_LENGTH.size : behind]), payload[behind:]


def dump_message(values: Mapping[str, object]) -> bytes:
    """Return plain data as a payload. Texts that came from paths survive (surrogates are escaped)."""
    return json.dumps(values, separators=(",", ":")).encode("ascii")


def parse_message(payload: Payload) -> dict[str, Any]:
    """Read a payload; raise FrameError if it is not what dump_message made, or would take much memory."""
    data = bytes(payload) if isinstance(payload, memoryview) else payload
    if len(data) > _SHORT and _TEXT.sub(b"", data).count(b",") > _MAX_VALUES:
        raise FrameError(f"a message of more than {_MAX_VALUES} values arrived")
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a message that cannot be read arrived: {error}") from error
    if not isinstance(values, dict):
        raise FrameError("a message without names arrived")
    return values


def shorten(text: str) -> str:
    """Return a reason without most of what is too long to be read: a peer decides how long a path in it is."""
    return text if len(text) <= _REASON else f"{text[: _REASON // 2]} ... {text[-_REASON // 2 :]}"


def number(values: Mapping[str, object], name: str) -> int:
    """Read a number; raise FrameError if there is none, or none of 64 bits."""
    found = values.get(name)
    if not isinstance(found, int) or not 0 <= found < 1 << 63:
        raise FrameError(f"a message without a number for {name} arrived")
    return found


def _positions(values: Mapping[str, object], name: str) -> list[int]:
    return _numbers(values, name, "entries")


def _numbers(values: Mapping[str, object], name: str, what: str) -> list[int]:
    found = values.get(name, [])
    if not isinstance(found, list) or not set(map(type, found)) <= {int}:
        raise FrameError(f"a message names {what} in a way that cannot be read")
    return found


def _texts(values: Mapping[str, object], name: str) -> list[str]:
    found = values.get(name, [])
    if not isinstance(found, list) or not set(map(type, found)) <= {str}:
        raise FrameError("a message names what it does not name in words")
    return found


def _by_index(values: Mapping[str, object], name: str, read: Callable[[object], Value]) -> dict[int, Value]:
    """Read a table of positions in a shard (JSON knows only texts as keys)."""
    found = values.get(name, {})
    if not isinstance(found, dict) or not all(key.isdecimal() and len(key) < _DIGITS for key in found):
        raise FrameError("a message names entries in a way that cannot be read")
    return {int(key): read(value) for key, value in found.items()}


def _an_int(value: object) -> int:
    if not isinstance(value, int):
        raise FrameError("a message names entries in a way that cannot be read")
    return value


def _as_it_is(value: object) -> object:
    return value


def inflate(payload: Payload) -> bytes:
    """Undo zlib on the payload of a DEFLATED frame; raise FrameError if it is damaged or a bomb."""
    engine = zlib.decompressobj()
    try:
        data = engine.decompress(payload, MAX_DATA)
    except zlib.error as error:
        raise FrameError(f"a compressed frame cannot be unpacked: {error}") from error
    if engine.unconsumed_tail or not engine.eof:
        raise FrameError(f"a compressed frame holds more than the {MAX_DATA} bytes that are allowed, or was cut")
    return data
