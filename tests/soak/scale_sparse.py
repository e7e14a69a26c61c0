# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A huge file of holes with a little data: the holes must neither be sent nor be written."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

from ..support.relay import Relay
from .scale import Say, Trees, expect, expect_good, trees

SIZE = 1 << 40
_DATA = 256 << 10  # bytes of each stretch of data, at most
_TALK = 1 << 20  # bytes that both ends say besides, whatever the size,
_RANGE, _EACH = 64 << 20, 256  # and of each range, be it nothing but a hole
_SLACK = 64 << 10  # bytes that a file system may need to note where the data is


def run(size: int, say: Say, folder: str | None = None) -> int:
    """Transfer a sparse file of so many bytes, and once more; returns the bytes that travelled."""
    with trees(folder) as made:
        file = made.source / "image"
        held = _make(file, size)
        say(f"sparse: made a file of {size} bytes with {held} bytes of data")
        began = time.monotonic()
        travelled = _transfer(made)
        say(f"sparse: transferred in {time.monotonic() - began:.1f} s, {travelled} bytes travelled")
        most = held + _TALK + size // _RANGE * _EACH
        expect(travelled <= most, f"{travelled} bytes travelled, and {most} are enough for {held} bytes of data")
        copy = made.dest / "image"
        stretches = data(file)
        expect(data(copy) == stretches, f"data lies at {data(copy)}, and at the source at {stretches}")
        _compare(file, copy)
        blocks = [os.stat(path).st_blocks * 512 for path in (file, copy)]
        say(f"sparse: {blocks[0]} bytes are allocated at the source, {blocks[1]} at the destination")
        expect(abs(blocks[0] - blocks[1]) <= _SLACK, f"{blocks[1]} bytes are allocated, and {blocks[0]} at the source")
        began = time.monotonic()
        again = expect_good(made.pair(streams=2).run())
        say(f"sparse: run again in {time.monotonic() - began:.1f} s")
        expect(not again["changed"], "the second run changed something")
        return travelled


def _transfer(made: Trees) -> int:
    """Transfer the file; returns the bytes that travelled, in both directions."""
    pair = made.pair(streams=2)
    pair.start("dest")
    try:
        with Relay(int(pair.peer["port"])) as relay:
            pair.peer["port"] = relay.port
            pair.start("source")
            expect_good(pair.finish())
            return relay.passed
    finally:
        pair.stop()


def _make(file: Path, size: int) -> int:
    """Make a file that begins and ends with holes or data, whatever fits; returns the bytes of its data."""
    at = {size // 10, size // 2 + 4096, size * 9 // 10, size - _DATA}
    each = min(_DATA, size // 20)
    with open(file, "xb") as opened:
        opened.truncate(size)
        for number, start in enumerate(sorted(at)):
            opened.seek(start - start % 4096)
            opened.write(random.Random(number).randbytes(each))
    expect(file.stat().st_blocks * 512 < size // 2, f"the file system of {file} keeps no holes")
    return each * len(at)


def data(file: Path) -> list[tuple[int, int]]:
    """Return where a file has data, as (start, end)."""
    found, at = [], 0
    with open(file, "rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        while at < size:
            try:
                start = os.lseek(opened.fileno(), at, os.SEEK_DATA)
            except OSError:  # ENXIO: nothing but a hole up to the end
                break
            at = os.lseek(opened.fileno(), start, os.SEEK_HOLE)
            found.append((start, at))
    return found


def _compare(file: Path, copy: Path) -> None:
    """Compare what is not a hole, a piece at a time."""
    a, b = file.stat(), copy.stat()
    expect((a.st_size, a.st_mtime_ns, a.st_mode) == (b.st_size, b.st_mtime_ns, b.st_mode), "size, time or mode differ")
    with open(file, "rb") as one, open(copy, "rb") as other:
        for start, end in data(file):
            for at in range(start, end, 1 << 20):
                length = min(1 << 20, end - at)
                pieces = [os.pread(opened.fileno(), length, at) for opened in (one, other)]
                expect(pieces[0] == pieces[1], f"the data at {at} is not the same")
