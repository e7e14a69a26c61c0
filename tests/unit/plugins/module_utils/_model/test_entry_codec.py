# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entries as bytes: what goes in comes out, and nothing hostile does."""

from __future__ import annotations

import os
import struct

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry_codec import (
    Decoder,
    ManifestError,
    decode_at,
    encode,
    scan,
    select,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.walk import walk
from hypothesis import given
from hypothesis import strategies as st

names = st.binary(min_size=1, max_size=255).filter(
    lambda n: b"/" not in n and b"\0" not in n and n not in (b".", b"..")
)
paths = st.lists(names, min_size=1, max_size=5).map(b"/".join)
words = st.one_of(st.integers(0, 2**16), st.integers(0, 2**63 - 1))
ids = st.integers(0, 2**32 - 1)
times = st.one_of(
    st.integers(-(10**9), 10**9), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63) * 10**9, (2**63 - 1) * 10**9)
)
attributes = st.dictionaries(names, st.binary(max_size=300), max_size=4).map(lambda found: tuple(sorted(found.items())))
targets = st.binary(min_size=1, max_size=500).filter(lambda target: b"\0" not in target)


@st.composite
def entries(draw):
    kind = draw(st.sampled_from("fdlpsbc"))
    target = draw(targets) if kind == "l" else b""
    return Entry(
        path=draw(paths),
        type=kind,
        mode=draw(st.integers(0, 0o7777)),
        uid=draw(ids),
        gid=draw(ids),
        size=draw(words) if kind == "f" else len(target),
        mtime_ns=draw(times),
        ctime_ns=draw(times),
        dev=draw(words),
        ino=draw(words),
        nlink=draw(words),
        rdev=draw(words) if kind in "bc" else 0,
        blocks=draw(words),
        target=target,
        xattrs=draw(attributes),
    )


def decode(data, step=0):
    decoder = Decoder()
    found = []
    for at in range(0, len(data), step or len(data) or 1):
        found += decoder.feed(data[at : at + (step or len(data))])
    decoder.finish()
    return found


@given(st.lists(entries(), max_size=4), st.integers(1, 200))
def test_what_goes_in_comes_out_in_pieces_of_any_size(wanted, step):
    data = b"".join(map(encode, wanted))
    assert decode(data) == wanted
    assert decode(data, step) == wanted


def test_a_real_tree(tmp_path):
    os.mkdir(tmp_path / "d")
    os.symlink("x", tmp_path / "d" / "l")
    os.mkfifo(tmp_path / "p")
    os.setxattr(tmp_path / "d", "user.x", b"1")
    wanted = list(walk(os.fsencode(tmp_path), xattrs=True, on_error=lambda *what: pytest.fail(str(what))))
    assert decode(b"".join(map(encode, wanted)), 7) == wanted


@given(st.binary(max_size=300))
def test_noise_gives_entries_or_an_error_and_nothing_else(noise):
    try:
        for entry in Decoder().feed(noise):
            assert encode(entry)
    except ManifestError:
        pass


@given(entries(), st.data())
def test_a_damaged_byte_never_gives_a_path_outside(entry, data):
    record = bytearray(encode(entry))
    record[data.draw(st.integers(0, len(record) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        for found in Decoder().feed(bytes(record)):
            assert not found.path.startswith(b"/")
            assert b".." not in found.path.split(b"/")
            assert b"\0" not in found.path
    except ManifestError:
        pass


FILE = Entry(b"dir/x", "f", 0o644, 0, 0, 4, 10**18, 0, 1, 2, 1, 0, 8)


@pytest.mark.parametrize(
    "change",
    [
        {"path": b"/etc/passwd"},
        {"path": b"../x"},
        {"path": b"a/../x"},
        {"path": b"a//x"},
        {"path": b"x/"},
        {"path": b"a\0b"},
        {"path": b"n" * 256},
        {"path": b""},  # the root, but no directory
        {"target": b"x"},
        {"rdev": 5},
        {"size": 1 << 63},
        {"type": "l", "target": b"12345"},  # a size that is another than the target's
        {"type": "l", "target": b"", "size": 0},
        {"type": "l", "target": b"12\x004"},
        {"type": "d", "size": 4},
        {"xattrs": ((b"user.b", b""), (b"user.a", b""))},
        {"xattrs": ((b"user.a", b""), (b"user.a", b""))},
        {"xattrs": ((b"", b""),)},
        {"xattrs": ((b"user.a", b"x" * 65537),)},
    ],
    ids=str,
)
def test_entries_that_no_walk_makes_are_refused(change):
    with pytest.raises(ManifestError):
        decode(encode(FILE._replace(**change)))
    assert decode(encode(FILE)) == [FILE]


@pytest.mark.parametrize(
    "change", [{"path": b"n/" * (1 << 20) + b"n"}, {"uid": 1 << 40}, {"dev": -1}, {"mtime_ns": 1 << 100}]
)
def test_impossible_values_are_not_encoded(change):
    with pytest.raises(ManifestError):
        encode(FILE._replace(**change))


@pytest.mark.parametrize("mtime_ns", [2**63, -(2**63) - 1, (2**63 - 1) * 10**9 + 999_999_999, -(2**63) * 10**9])
def test_times_that_64_bits_of_nanoseconds_cannot_hold(mtime_ns):
    late = FILE._replace(ctime_ns=mtime_ns, xattrs=((b"user.a", b"x"),))
    wanted = [FILE._replace(mtime_ns=mtime_ns, path=b"far"), FILE, late]
    assert decode(b"".join(map(encode, wanted)), 7) == wanted


def test_nanoseconds_of_more_than_a_second_are_refused():
    record = bytearray(encode(FILE._replace(mtime_ns=2**63)))
    at = record.index(struct.pack("<I", 2**63 % 10**9))
    record[at : at + 4] = struct.pack("<I", 10**9)
    with pytest.raises(ManifestError, match="nanoseconds"):
        decode(bytes(record))


def test_records_of_an_earlier_version_are_read():
    """Manifests of snapshots stay on disk: version 0.1.0 packed these two, the second with wide numbers."""
    short = (
        "00a4013300000005000000000000000000000000000000000064a7b3b6e00d00000000000000000400000001000000020000000100000000"
        "00080000006469722f78"
    )
    wide = (
        "80a4015900000005000000000001000000000000000000fbffffffffffffff00000000000000000000000000010000010000000000000002"
        "000000000000000100000000000000000000000000000008000000000000006469722f780601000000757365722e6178"
    )
    odd = FILE._replace(size=1 << 40, mtime_ns=-5, xattrs=((b"user.a", b"x"),))
    assert decode(bytes.fromhex(short + wide)) == [FILE, odd]
    assert (encode(FILE) + encode(odd)).hex() == short + wide


def test_a_huge_length_is_refused_before_its_bytes_are_waited_for():
    head = struct.pack("<BHIIHH", 0, 0o644, 0xFFFFFFFF, 5, 0, 0)
    with pytest.raises(ManifestError, match="impossible"):
        list(Decoder().feed(head))


def test_a_record_that_is_cut_short_is_told():
    decoder = Decoder()
    assert list(decoder.feed(encode(FILE)[:-1])) == []
    with pytest.raises(ManifestError, match="ends inside a record"):
        decoder.finish()


@given(st.lists(entries(), max_size=8))
def test_a_scan_finds_what_the_decoder_finds(found):
    data = b"".join(map(encode, found))
    paths_found, begins = scan(data)
    assert paths_found == [entry.path for entry in found]
    assert [decode_at(data, at) for at in begins] == found
    numbers = range(len(found))
    assert select(data, begins, numbers, lambda *_values: True) == [*numbers]
    told = []
    select(data, begins, numbers, lambda *values: told.append(values) or False)
    assert told == [(entry.type, entry.size, entry.uid, entry.gid, entry.mtime_ns) for entry in found]


def test_a_scan_refuses_what_is_cut_short():
    data = encode(Entry(b"a", "f", 0o644, 0, 0, 1, 0, 0, 1, 1, 1, 0, 8))
    for end in range(1, len(data)):
        with pytest.raises(ManifestError):
            scan(data[:end])
    assert scan(b"") == ([], [])
