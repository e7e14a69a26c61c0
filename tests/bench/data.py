# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The trees that the benchmark moves. The same call makes the same tree."""

from __future__ import annotations

import os
import random
from pathlib import Path

SMALL_MOST = 16384  # bytes of the largest small file
_MIB = 1 << 20
_NOISE = 32 * _MIB  # until contents of small files come again: farther away than what compresses them looks back
_HOLE = 16 * _MIB  # of a sparse image, from one stretch of data to the next
_PIECES = 20  # stretches that an edit in place changes
_PER_FOLDER = 100
_EVERY = 16  # of a tree of very many entries, each which file is not empty


def make_small(root: Path, count: int) -> None:
    """Make ``count`` files of 0 to 16 KiB, a hundred in a directory, which cannot be compressed."""
    contents, start = random.Random(1).randbytes(_NOISE), 0
    for number in range(count):
        if number % _PER_FOLDER == 0:
            folder = root / f"{number // _PER_FOLDER:05}"
            folder.mkdir(parents=True)
        size = number * 37 % SMALL_MOST
        start = start + size if start + 2 * size <= _NOISE else 0
        (folder / f"{number:07}").write_bytes(contents[start : start + size])


def make_sparse(root: Path, size: int) -> None:
    """Make one image of ``size`` bytes with 1 MiB of data in each 16 MiB and holes between them."""
    root.mkdir(parents=True)
    source = random.Random(2)
    with (root / "image").open("wb") as file:
        for start in range(0, size, _HOLE):
            file.seek(start)
            file.write(source.randbytes(min(_MIB, size - start)))
        file.truncate(size)


def make_text(root: Path, size: int, count: int = 4) -> None:
    """Make ``count`` files of log lines, ``size`` bytes together, of which zlib leaves about a quarter."""
    root.mkdir(parents=True)
    source = random.Random(3)
    words = ["".join(source.choices("etaoinshrdlucmfwypvbgk", k=source.randrange(2, 12))) for _word in range(2000)]
    messages = [" ".join(source.choices(words, k=source.randrange(3, 12))) for _message in range(300)]
    blocks = [_log(source, words, messages) for _block in range(16)]
    for number in range(count):
        with (root / f"text-{number}.log").open("wb") as file:
            for at in range(0, size // count, _MIB):
                file.write(source.choice(blocks)[: min(_MIB, size // count - at)])


def _log(source: random.Random, words: list[str], messages: list[str]) -> bytes:
    """Return 1 MiB of lines as a system log has them: a time, a program, one of some messages, and what differs."""
    lines, length, second = [], 0, source.randrange(86400)
    while length < _MIB:
        second += source.randrange(3)
        time = f"{second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}"
        program = f"{words[source.randrange(20)]}[{source.randrange(32768)}]"
        line = f"2026-11-21T{time} host {program}: {source.choice(messages)} {source.choice(words)}\n"
        lines.append(line)
        length += len(line)
    return "".join(lines).encode()[:_MIB]


def make_entries(root: Path, count: int) -> None:
    """Make a tree of ``count`` entries, directories included: files, most of them empty, the very first one not."""
    content = random.Random(4).randbytes(1000)
    made = number = 0
    while made < count:
        if number % _PER_FOLDER == 0:
            folder = os.path.join(root, f"{number // _PER_FOLDER:06}")
            os.makedirs(folder)
            made += 1
        fd = os.open(os.path.join(folder, f"{number:08}"), os.O_CREAT | os.O_WRONLY, 0o644)
        if number % _EVERY == 0:
            os.write(fd, content)
        os.close(fd)
        number += 1
        made += 1


def edit(path: Path, share: float, seed: int = 5) -> int:
    """Change ``share`` of a file in place, in up to 20 stretches anywhere in it; give the bytes that were changed."""
    source, size = random.Random(seed), path.stat().st_size
    each = max(1, int(size * share) // _PIECES)
    slot = size // _PIECES
    with path.open("r+b") as file:
        for piece in range(_PIECES):
            file.seek(piece * slot + source.randrange(max(1, slot - each)))
            file.write(source.randbytes(each))
    return each * _PIECES


def tree_size(root: Path) -> int:
    """Return the bytes in the files below a folder, holes counted."""
    found = (os.path.join(folder, name) for folder, _folders, names in os.walk(root) for name in names)
    return sum(os.lstat(path).st_size for path in found)
