# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""SFTP as bytes: what a server understands, and what it refuses."""

from __future__ import annotations

import struct

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy import sftp_protocol as sftp
from ansible_collections.longhaul.fleet.tests.support import sftp_client as client
from hypothesis import given
from hypothesis import strategies as st

uint32, uint64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
text = st.binary(max_size=60)
handles = st.binary(max_size=sftp.MAX_HANDLE)
ATTRIBUTES = struct.pack(">IQIIIIIII", 0x8000000F, 77, 1, 2, 0o644, 3, 4, 1, 1) + b"x" + client.string(b"y")


def feed(data, sizes=(1 << 20,)):
    """Return the packets in some bytes that arrive in pieces of these sizes, in turn."""
    buffer, found, turn = sftp.PacketBuffer(), [], 0
    while data:
        room = buffer.get_buffer()
        piece = data[: min(sizes[turn % len(sizes)], len(room))]
        room[: len(piece)] = piece
        buffer.buffer_updated(len(piece))
        found += [bytes(packet) for packet in buffer.packets()]
        data, turn = data[len(piece) :], turn + 1
    return found, buffer.is_empty


def parse(data):
    """Return the request in the bytes of one packet."""
    return sftp.parse_request(memoryview(data)[4:])


@given(
    bodies=st.lists(st.binary(min_size=5, max_size=300) | st.just(b"w" * sftp.MAX_PACKET), max_size=12),
    sizes=st.lists(st.integers(1, 400_000), min_size=1, max_size=5),
    rest=st.binary(max_size=3),
)
def test_packets_are_found_however_they_arrive(bodies, sizes, rest):
    sizes = [max(size, 1000) for size in sizes] if sum(map(len, bodies)) > 10_000 else sizes
    data = b"".join(client.string(body) for body in bodies) + rest
    assert feed(data, sizes) == (bodies, not rest)


@pytest.mark.parametrize("length", [0, 4, sftp.MAX_PACKET + 1, 2**31, 2**32 - 1])
def test_lengths_that_no_packet_has_are_refused_at_once(length):
    with pytest.raises(sftp.ProtocolError, match=f"a packet of {length} bytes"):
        feed(struct.pack(">I", length))


@given(number=uint32, path=text, access=uint32, handle=handles, offset=uint64, length=uint32, data=text)
def test_requests_are_read_as_a_client_writes_them(number, path, access, handle, offset, length, data):
    reading = client.string(handle) + struct.pack(">QI", offset, length)
    for expected, kind, fields in (
        (sftp.Open(number, path, access), client.OPEN, client.opening(path, access)),
        (sftp.Close(number, handle), client.CLOSE, client.string(handle)),
        (sftp.Read(number, handle, offset, length), client.READ, reading),
        (sftp.Stat(number, path), client.LSTAT, client.string(path)),
        (sftp.Stat(number, path), client.STAT, client.string(path)),
        (sftp.FileStat(number, handle), client.FSTAT, client.string(handle)),
        (sftp.SetStat(number, path, 77), client.SETSTAT, client.string(path) + ATTRIBUTES),
        (sftp.SetFileStat(number, handle, None), client.FSETSTAT, client.string(handle) + client.NO_ATTRIBUTES),
        (sftp.OpenFolder(number, path), client.OPENDIR, client.string(path)),
        (sftp.ReadFolder(number, handle), client.READDIR, client.string(handle)),
        (sftp.RealPath(number, path), client.REALPATH, client.string(path)),
        (sftp.ExtendedRequest(number, path), client.EXTENDED, client.string(path) + data),
        (sftp.Other(number, client.RENAME), client.RENAME, client.string(path) + data),
    ):
        found = parse(client.request(kind, number, fields))
        assert (type(found), found) == (type(expected), expected)
    found = parse(client.request(client.WRITE, number, client.writing(handle, offset, data)))
    assert isinstance(found, sftp.Write)
    assert (found.id, found.handle, found.offset, bytes(found.data)) == (number, handle, offset, data)


WHOLE = {
    "open": (client.OPEN, client.string(b"name") + struct.pack(">I", 2) + ATTRIBUTES),
    "close": (client.CLOSE, client.string(b"1234")),
    "read": (client.READ, client.string(b"1234") + bytes(12)),
    "read by a long handle": (client.READ, client.string(b"12345") + bytes(12)),
    "write": (client.WRITE, client.writing(b"1234", 5, b"data")),
    "write by a long handle": (client.WRITE, client.writing(b"12345", 5, b"data")),
    "stat": (client.STAT, client.string(b"name")),
    "fstat": (client.FSTAT, client.string(b"1234")),
    "setstat": (client.SETSTAT, client.string(b"name") + ATTRIBUTES),
    "fsetstat": (client.FSETSTAT, client.string(b"1234") + ATTRIBUTES),
    "opendir": (client.OPENDIR, client.string(b"name")),
    "readdir": (client.READDIR, client.string(b"1234")),
    "realpath": (client.REALPATH, client.string(b"name")),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_request_that_is_cut_or_too_long_is_refused(name):
    kind, fields = WHOLE[name]
    parse(client.request(kind, 1, fields))
    for end in range(len(fields)):
        with pytest.raises(sftp.ProtocolError, match=f"kind {kind} that ends too early"):
            parse(client.request(kind, 1, fields[:end]))
    with pytest.raises(sftp.ProtocolError, match=f"kind {kind} with 2 bytes too many"):
        parse(client.request(kind, 1, fields + b"xx"))


@pytest.mark.parametrize("kind", [2, 101, 102, 103, 104, 105, 201])
def test_answers_are_no_requests(kind):
    with pytest.raises(sftp.ProtocolError, match="which is an answer"):
        parse(client.request(kind, 1))


@pytest.mark.parametrize("kind", [client.CLOSE, client.FSTAT, client.READDIR])
def test_a_handle_that_is_too_long_is_refused(kind):
    with pytest.raises(sftp.ProtocolError, match="a handle of 257 bytes"):
        parse(client.request(kind, 1, client.string(b"h" * 257)))


@given(st.binary(min_size=5, max_size=400))
def test_whatever_arrives_is_a_request_or_refused(data):
    try:
        found = sftp.parse_request(memoryview(data))
    except sftp.ProtocolError as error:
        assert str(error)
    else:
        assert found[0] == struct.unpack_from(">I", data, 1)[0]


def read(answer):
    """Return an answer as a client reads it, which must be all of it."""
    (length,) = struct.unpack_from(">I", answer)
    assert len(answer) == 4 + length
    return client.Answer(answer[4], struct.unpack_from(">I", answer, 5)[0], answer[9:])


@given(number=uint32, handle=text, mode=uint32, size=uint64, names=st.lists(text, max_size=5))
def test_answers_are_written_as_a_client_reads_them(number, handle, mode, size, names):
    status = read(sftp.status(number, sftp.Code.FAILURE, "why \udc80"))
    assert (status.kind, status.number, status.code) == (client.STATUS, number, 4)
    assert status.rest[4:] == client.string(b"why ?") + client.string(b"")
    assert read(sftp.handle_answer(number, handle)) == (client.HANDLE, number, client.string(handle))
    attributes = struct.pack(">IQI", 5, size, mode)
    found = sftp.Attributes(mode, size)
    assert read(sftp.attributes_answer(number, found)) == (client.ATTRS, number, attributes)
    listed = b"".join(2 * client.string(name) + attributes for name in names)
    answer = read(sftp.names_answer(number, [(name, found) for name in names]))
    assert answer == (client.NAME, number, struct.pack(">I", len(names)) + listed)
    assert read(sftp.data_head(number, 4) + b"data") == (client.DATA, number, client.string(b"data"))
    limits = struct.pack(">QQQQ", sftp.MAX_PACKET, sftp.MAX_DATA, sftp.MAX_DATA, 9)
    assert read(sftp.limits_answer(number, 9)) == (client.EXTENDED_REPLY, number, limits)


def test_the_beginning_names_one_extension():
    said = client.string(b"limits@openssh.com") + client.string(b"1")
    assert read(sftp.version()) == (2, 3, said)


def test_the_short_way_says_the_same():
    assert sftp.done(7) == sftp.status(7, sftp.Code.OK)
