# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the messages of the conversation hold, as bytes. Pure.

====== ================ ==========================================================================================
HELLO  both ways        version, transfer id, check: whether the two ends mean the same transfer
SHARD  source to dest   a batch of entries, in the order of the walk, with what belongs to it
HASH   dest to source   of which files of a shard the content's hash is asked for; SUMS is the answer
WANT   dest to source   of which files of a shard the content is asked for, and how much of each is there already
READY  source to dest   the files of a shard can be fetched now (where the destination runs the program)
FETCHED dest to source  they have been
GOT    dest to source   ranges of a shard's files have been written (where contents travel beside the conversation)
FEWER  dest to source   how many of the connections beside the conversation shall stay
SENT   source to dest   all of a shard's content has left; what happened to which file meanwhile
ACK    dest to source   the shard is in place; how many entries that accounts for, and what must come again
TOTAL  source to dest   how much there is in all, as soon as the walk has seen it
SCANNED source to dest  there are no more shards; the totals
SUMMARY both ways       the outcome as this end knows it: dest's first, then the source's, which is the whole
FAILED both ways        this end gives up, and why
BEGIN, DATA, END        the content of a shard's files, where it travels in the conversation's own connections
====== ================ ==========================================================================================
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

from ..._model.entry import Entry
from ..._model.entry_codec import Decoder, encode
from ..._model.paths import STAGING, is_staging
from .frames import MAX_DATA, FrameError, Payload

_LENGTH = struct.Struct("!I")


class Shard:
    """A batch of entries that is decided, sent and accounted for as one."""

    def __init__(self, identity: int, entries: list[Entry], attempt: int = 1) -> None:
        self.id = identity
        self.entries = entries
        self.attempt = attempt  # more than 1: these files changed or were damaged on their way, and come again
        self.opaque: list[int] = []  # directories whose contents the source does not list
        self.users: dict[int, str] = {}  # names of uids that were not seen before
        self.groups: dict[int, str] = {}


def dump_message(values: dict[str, Any]) -> bytes:
    """Give plain data as a payload. Texts that came from paths survive (surrogates are escaped)."""
    return json.dumps(values, separators=(",", ":")).encode("ascii")


def parse_message(payload: Payload) -> dict[str, Any]:
    """Read a payload; raises FrameError where it is not what dump_message made."""
    try:
        values = json.loads(bytes(payload) if isinstance(payload, memoryview) else payload)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a message that cannot be read arrived: {error}") from error
    if not isinstance(values, dict):
        raise FrameError("a message without names arrived")
    return values


def dump_shard(shard: Shard) -> bytes:
    """Give a shard as a payload."""
    head = dump_message(
        {
            "id": shard.id,
            "attempt": shard.attempt,
            "count": len(shard.entries),
            "opaque": shard.opaque,
            "users": shard.users,
            "groups": shard.groups,
        }
    )
    return _LENGTH.pack(len(head)) + head + b"".join(map(encode, shard.entries))


def parse_shard(payload: bytes) -> Shard:
    """Read a shard; raises FrameError, also where an entry is one that no walk can have made."""
    if len(payload) < _LENGTH.size:
        raise FrameError("a shard without a head arrived")
    (length,) = _LENGTH.unpack_from(payload)
    head = parse_message(payload[_LENGTH.size : _LENGTH.size + length])
    decoder = Decoder()
    try:
        entries = list(decoder.feed(payload[_LENGTH.size + length :]))
        decoder.finish()
        shard = Shard(int(head["id"]), entries, int(head["attempt"]))
        shard.opaque = [int(index) for index in head["opaque"]]
        shard.users = {int(uid): str(name) for uid, name in head["users"].items()}
        shard.groups = {int(gid): str(name) for gid, name in head["groups"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FrameError(f"a shard that cannot be read arrived: {error}") from error
    if STAGING in payload and any(is_staging(entry.path) for entry in entries):
        raise FrameError("an entry with the name of a transfer's own folder arrived, which no source offers")
    if head.get("count") != len(entries):
        raise FrameError(f"a shard of {head.get('count')} entries arrived with {len(entries)}")
    return shard


def number(values: dict[str, Any], name: str) -> int:
    """Read a number; raises FrameError where there is none, or none of 64 bits."""
    found = values.get(name)
    if not isinstance(found, int) or not 0 <= found < 1 << 63:
        raise FrameError(f"a message without a number for {name} arrived")
    return found


def indexes(values: dict[str, Any], name: str, count: int) -> list[int]:
    """Read a list of positions in a shard of ``count`` entries; raises FrameError for any outside of it."""
    found = values.get(name, [])
    if not isinstance(found, list) or not set(map(type, found)) <= {int}:
        raise FrameError(f"a message names entries ({name}) in a way that cannot be read")
    if found and not 0 <= min(found) <= max(found) < count:
        raise FrameError(f"a message names entries ({name}) that its shard does not have")
    return found


def by_index(values: dict[str, Any], name: str, count: int) -> dict[int, Any]:
    """Read a table of positions in a shard (JSON knows only texts as keys); raises FrameError as indexes does."""
    found = values.get(name, {})
    if not isinstance(found, dict) or not all(key.isdigit() and int(key) < count for key in found):
        raise FrameError(f"a message names entries ({name}) that its shard does not have")
    return {int(key): value for key, value in found.items()}


def inflate(payload: Payload) -> bytes:
    """Undo zlib on the payload of a DEFLATED frame; raises FrameError where it is damaged or a bomb."""
    engine = zlib.decompressobj()
    try:
        data = engine.decompress(payload, MAX_DATA)
    except zlib.error as error:
        raise FrameError(f"a compressed frame cannot be unpacked: {error}") from error
    if engine.unconsumed_tail or not engine.eof:
        raise FrameError(f"a compressed frame holds more than the {MAX_DATA} bytes that are allowed, or was cut")
    return data
