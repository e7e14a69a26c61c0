# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""zstd, as this machine has it; and what is done without."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
import threading
import zlib

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.content import bundles, compression, zstd
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.frames import Frame, FrameError, FrameKind
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.records import RecordKind
from ansible_collections.longhaul.fleet.plugins.module_utils._job import probe
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from hypothesis import given
from hypothesis import strategies as st

MIB = 1 << 20
MAGIC = b"\x28\xb5\x2f\xfd"
TEXT = b"".join(b"line %d of a log, as there are many\n" % number for number in range(40_000))
ZSTD = {"algorithm": "zstd", "level": None}


def noise(seed, size):
    """Return bytes that cannot be packed, the same for the same seed. (Python 3.8 has no randbytes.)"""
    return random.Random(seed).getrandbits(8 * size + 1).to_bytes(size + 1, "big")[1:]


@pytest.fixture(name="load")
def loading_anew(monkeypatch):
    """Forget what was loaded, before and after; gives what sets how it is loaded."""

    def set_loaders(**loaders):
        for name, value in loaders.items():
            monkeypatch.setattr(zstd, name, value)
        zstd._engine.cache_clear()

    yield set_loaders
    monkeypatch.undo()
    zstd._engine.cache_clear()


def lying(frame, size):
    """Return the frame with another size of its contents in its head, in the 4 bytes that text of some 100 KB has."""
    assert frame[4] & 0xC0 == 0x80 and frame[4] & 0x20, "not a frame with one segment and 4 bytes for its size"
    return frame[:5] + struct.pack("<I", size) + frame[9:]


def test_a_system_that_runs_these_tests_has_it():
    assert zstd.available()


@pytest.mark.parametrize("size", [0, 1, 2, 100, 255, 256, 65535, 65536, 131073, MIB - 1, MIB, MIB + 1, 8 * MIB])
@pytest.mark.parametrize("made", ["text", "noise", "zeros"])
def test_every_size_comes_back(size, made):
    data = {"text": (TEXT * 8)[:size], "noise": noise(1, size), "zeros": bytes(size)}[made]
    packed = zstd.compress(data, 1)
    assert zstd.decompress(packed, size) == data
    assert len(packed) <= size + 64 + size // 256
    if made != "noise" and size > 1000:
        assert len(packed) < size / 3


@given(st.binary(max_size=300), st.integers(0, 3000), st.integers(-300_000, 100))
def test_what_was_packed_comes_back(data, times, level):
    data *= min(times, 3000 // (len(data) + 1))
    assert zstd.decompress(zstd.compress(data, level), len(data)) == data


@pytest.mark.parametrize(
    "kind",
    [bytes, bytearray, memoryview, lambda data: memoryview(bytearray(data)), lambda d: memoryview(b"xy" + d)[2:]],
)
def test_every_kind_of_memory_is_taken(kind):
    packed = zstd.compress(kind(TEXT), 1)
    assert packed == zstd.compress(TEXT, 1)
    assert zstd.decompress(kind(packed), len(TEXT)) == TEXT


def test_memory_that_was_read_from_can_be_used_again():
    data = bytearray(TEXT)
    packed = bytearray(zstd.compress(data, 1))
    data.clear()  # raises BufferError if something holds on to it
    found = zstd.decompress(packed, len(TEXT))
    packed.clear()
    assert found == TEXT


@pytest.mark.parametrize("data", [TEXT[:200_000], noise(2, 200_000)])
def test_a_frame_that_is_not_whole_or_not_alone_is_refused(data):
    packed = zstd.compress(data, 1)
    for cut in (0, 1, 3, 4, 5, 12, len(packed) // 2, len(packed) - 1):
        with pytest.raises(ValueError, match="zstd"):
            zstd.decompress(packed[:cut], len(data))
    skipped = struct.pack("<II", 0x184D2A50, 4) + b"skip"
    for more in (b"\0", b"garbage", skipped, zstd.compress(b"", 1), packed):
        with pytest.raises(ValueError, match="zstd"):
            zstd.decompress(packed + more, len(data))
        with pytest.raises(ValueError, match="zstd"):
            zstd.decompress(more + packed, len(data))
        with pytest.raises(ValueError, match="zstd"):
            zstd.decompress(packed + more, 2 * len(data))
    for wrong in (0, 1, len(data) - 1, len(data) + 1, 2 * len(data)):
        with pytest.raises(ValueError, match="zstd"):
            zstd.decompress(packed, wrong)


def test_a_frame_that_lies_about_its_size_is_refused():
    data = TEXT[:200_000]
    packed = zstd.compress(data, 1)
    assert lying(packed, len(data)) == packed
    for size in (1, len(data) - 1, len(data) + 1, 0xFFFFFFFF):
        for announced in (size, len(data)):
            with pytest.raises(ValueError, match="zstd"):
                zstd.decompress(lying(packed, size), announced)


def test_a_bomb_gets_no_memory():
    bomb = zstd.compress(bytes(8 * MIB), 1)
    assert len(bomb) < 2000
    with pytest.raises(ValueError, match="zstd"):
        zstd.decompress(bomb, 1000)
    with pytest.raises(ValueError, match="more than"):
        zstd.decompress(bomb, 1 << 40)
    with pytest.raises(ValueError, match="more than"):
        zstd.decompress(bomb, -1)


@given(st.binary(max_size=100), st.integers(0, 1000), st.booleans())
def test_no_bytes_do_harm(data, length, has_magic):
    try:
        found = zstd.decompress(MAGIC + data if has_magic else data, length)
    except ValueError:
        return
    assert len(found) == length


@given(st.data())
def test_a_flipped_bit_gives_an_error_or_as_many_bytes(data):
    packed = bytearray(zstd.compress(TEXT[:5000], 1))
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = zstd.decompress(packed, 5000)
    except ValueError:
        return
    assert len(found) == 5000


def test_threads_have_each_their_own():
    wrong = []

    def work(number):
        source = random.Random(number)
        for _round in range(30):
            data = noise(source.random(), source.randrange(3000)) * source.randrange(30)
            if zstd.decompress(zstd.compress(data, 1), len(data)) != data:
                wrong.append(number)

    for _generation in range(5):  # what ended threads had is given back
        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_nothing_is_loaded_before_it_is_needed():
    name = zstd.__name__
    heavy = {"ctypes", "compression.zstd"}
    code = f"import sys, importlib; importlib.import_module({name!r}); print({heavy} & {{*sys.modules}})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


@pytest.mark.parametrize(
    "name",
    ["no-such-library.so.1", "libc.so.6", os.__file__],
    ids=["missing", "another", "none"],
)
def test_a_library_that_is_not_there_or_another_means_that_there_is_none(load, name):
    load(_LIBRARY=name, _from_python=lambda: None)
    assert not zstd.available()
    with pytest.raises(ValueError, match="neither"):
        zstd.decompress(MAGIC, 0)


@pytest.mark.parametrize("name", ["_OLDEST", "_MAGIC"])
def test_a_library_that_is_too_old_or_does_something_else_is_not_used(load, monkeypatch, name):
    if name == "_OLDEST":
        load(_OLDEST=99_00_00, _from_python=lambda: None)
    else:
        monkeypatch.setattr(zstd._Library, "compress", lambda _self, data, _level: bytes(data))
        load(_from_python=lambda: None)
    assert not zstd.available()


@pytest.fixture(name="without")
def no_zstd(load):
    """A host that has neither."""
    load(_from_python=lambda: None, _from_system=lambda: None)


@pytest.mark.usefixtures("without")
def test_without_it_zlib_is_taken(tmp_path):
    (tmp_path / "text").write_bytes(TEXT)
    with open(tmp_path / "text", "rb") as file:
        kind, length, data = compression.Compressor(ZSTD).pack(file.fileno(), 0, len(TEXT))
    assert kind == RecordKind.ZLIB and zlib.decompress(data) == TEXT[:length]
    assert bundles.Packer(ZSTD).pack(TEXT[:MIB])[0] == FrameKind.DEFLATED
    with pytest.raises(FrameError, match="neither"):
        compression.decompress(RecordKind.ZSTD, MAGIC + b"abcd", 10)
    assert not probe._has_zstd(("stream",))


def test_the_probe_says_that_it_is_there_where_a_stream_may_use_it():
    assert probe._has_zstd(("rsync", "stream"))
    assert not probe._has_zstd(("rsync", "tar_nc"))


def test_pieces_are_packed_with_it(tmp_path):
    (tmp_path / "text").write_bytes(TEXT)
    (tmp_path / "noise").write_bytes(noise(3, 2 * MIB))
    pieces = compression.Compressor(ZSTD)
    with open(tmp_path / "text", "rb") as text, open(tmp_path / "noise", "rb") as other:
        for start, count in ((0, 8 * MIB), (12345, 100_000), (0, 1)):
            data = TEXT[start : start + min(count, compression.PIECE_BYTES)]
            packed = pieces.pack(text.fileno(), start, len(data))
            if packed is None:
                assert count == 1  # which is no smaller when it is packed
                continue
            kind, length, content = packed
            assert (kind, length) == (RecordKind.ZSTD, len(data)) and len(content) < length / 3
            assert compression.decompress(kind, content, length) == data
            with pytest.raises(FrameError):
                compression.decompress(kind, content + b"x", length)
        assert compression.Compressor(ZSTD).pack(other.fileno(), 0, 2 * MIB) is None


def test_bundles_are_packed_with_it():
    entries = [(number, Entry(b"f%d" % number, "f", 0o644, 0, 0, 1000, 1, 2, 3, 4, 1, 0, 0)) for number in range(50)]
    kind, payload = bundles.Packer(ZSTD).pack(memoryview(bytearray(TEXT[:50_000])))
    assert kind == FrameKind.ZSTD and len(payload) < 15_000
    found = dict(bundles.contents([Frame(kind, payload)], entries))
    assert b"".join(found[number] for number in range(50)) == TEXT[:50_000]
    for wrong in (b"", payload[:3], payload[:-1], payload + b"x", struct.pack("!I", 49_999) + payload[4:]):
        with pytest.raises(FrameError):
            list(bundles.contents([Frame(kind, wrong)], entries))
    with pytest.raises(FrameError, match="allowed"):
        list(bundles.contents([Frame(kind, struct.pack("!I", MIB + 1) + zstd.compress(bytes(MIB + 1), 1))], entries))


def test_a_bundle_that_does_not_shrink_travels_as_it_is():
    data = noise(4, 100_000)
    assert bundles.Packer(ZSTD).pack(data) == (FrameKind.DATA, data)
    assert bundles.Packer(ZSTD).pack(b"a") == (FrameKind.DATA, b"a")
