# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trees with everything in them that movers of files are known to break on.

``make_hard_tree`` makes one small case for each such thing, ``make_big_files`` makes bulk data. Both give the same
names, contents and file times on every call.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import random
import struct
import unicodedata
from pathlib import Path
from typing import Collection, Iterator

from . import hard_metadata, hard_types
from .hard_maker import CASES, HOUR_NS, START_NS, Maker

CASE_FILES = (hard_types, hard_metadata)  # importing them fills CASES

NAMES = {
    "leading dash": b"-rf",
    "leading two dashes": b"--delete",
    "leading hash": b"#comment",
    "leading semicolon": b";comment",
    "leading space": b" leading",
    "leading colon": b":colon",
    "leading plus rule": b"+ rule",
    "newline": b"two\nlines",
    "trailing carriage return": b"carriage\r",
    "trailing space": b"space ",
    "trailing tab": b"tab\t",
    "trailing newline": b"newline\n",
    "literal backslash n": b"literal\\nname",
    "literal octal escape": b"literal\\#012name",
    "trailing backslash": b"backslash\\",
    "star": b"*",
    "globs": b"a*b[c]?~{d,e}",
    "tilde": b"~root",
    "host and path": b"a:b",
    "daemon module": b"host::module",
    "variable": b"$HOME",
    "command": b"`id`",
    "command substitution": b"$(id)",
    "quotes": b'it\'s "quoted"',
    "percent": b"%s%n%i",
    "not UTF-8": b"latin-\xe9-\xff",
    "255 bytes": b"x" * 255,
    "255 bytes of UTF-8": "é".encode() * 127 + b"x",
    "lower case twin": b"case",
    "upper case twin": b"CASE",
    "NFC twin": unicodedata.normalize("NFC", "Ångström").encode(),
    "NFD twin": unicodedata.normalize("NFD", "Ångström").encode(),
    "nearly an own staging name": b".longhaul-0123456789abcde",
    "an own staging name and more": b".longhaul-0123456789abcdef0",
    "an own staging name in capitals": b".longhaul-0123456789ABCDEF",
    "the beginning of an own staging name": b".longhaul-",
    "an own staging name without its hyphen": b".longhaulx",
    "an own staging name behind a letter": b"x.longhaul-0123456789abcdef",
    "own partial name": b".longhaul-partial",
    "own journal name": b"0123456789abcdef0123456789abcdef.ranges",
    "own temporary name": b"link-1",
    "rsync's staging name": b".~tmp~",
    "rsync's partial name": b".rsync-partial",
    "rsync's temporary name": b".file.Ab12Cd",
    "rsync's filter file": b".rsync-filter",
}

NEEDS_ROOT = frozenset(
    {
        "block device",
        "character device",
        "hard-linked devices",
        "numeric ids without names",
        "owner and setuid",
        "symlink's owner",
        "directory's owner",
        "trusted xattr",
        "trusted xattr of a symlink",
        "security xattr",
        "capability",
    }
)


def make_hard_tree(
    root: str | bytes | os.PathLike,
    *,
    as_root: bool = True,
    many: int = 2000,
    big: int = 0,
    without: Collection[str] = (),
    outside: str | bytes | os.PathLike | None = None,
) -> dict[str, bytes]:
    """Make the tree at ``root`` (made if missing, else it must be empty); give {case: path below the root}.

    ``as_root=False`` leaves out the cases in NEEDS_ROOT. ``many`` is the number of entries in the crowded directory,
    ``big`` the size in bytes of one file with incompressible data (0: no such file). ``without`` names cases to leave
    out (see ``case_names()``), for what a method says that it cannot do. ``outside`` is a folder on the same file
    system for the other name of a file that is linked from outside the root; default: beside the root.
    Raises ValueError if ``without`` names no case.
    """
    unknown = set(without) - set(case_names())
    if unknown:
        raise ValueError("no such case: " + ", ".join(sorted(unknown)))
    top = os.fsencode(os.path.abspath(root))
    os.makedirs(top, exist_ok=True)
    if os.listdir(top):
        raise ValueError(f"{root!r} is not empty")
    maker = Maker(top, os.fsencode(os.path.abspath(outside)) if outside else top + b".outside", many)
    left_out = set(without) | (set() if as_root else NEEDS_ROOT)
    made: dict[str, bytes] = {}
    for folder in (b"names", b"name dirs", b"types", b"metadata"):
        os.mkdir(maker.at(folder))
    for name, text in NAMES.items():
        if name in left_out:
            continue
        made[name] = maker.file(b"names/" + text, text)
        os.mkdir(maker.at(b"name dirs/" + text))
        made["directory: " + name] = b"name dirs/" + text
        maker.file(b"name dirs/" + text + b"/file", text)
    for name, make in CASES.items():
        if name not in left_out:
            made[name] = make(maker)
    if big:
        _write_random(maker.at(b"big"), big, random.Random(1))
        made["big file"] = b"big"
    maker.set_times()
    return made


def case_names() -> list[str]:
    """Return the names of all cases, as ``without`` takes them."""
    return [*NAMES, *CASES]


def make_big_files(root: str | bytes | os.PathLike, total: int, count: int = 1, seed: int = 0) -> list[Path]:
    """Make ``count`` files ``big-0`` … of incompressible data, ``total`` bytes together; no two blocks are alike."""
    os.makedirs(root, exist_ok=True)
    paths = [Path(os.fsdecode(root)) / f"big-{number}" for number in range(count)]
    for number, path in enumerate(paths):
        size = total // count + (total % count if number == 0 else 0)
        _write_random(os.fsencode(path), size, random.Random(seed * 1000 + number))
        os.utime(path, ns=(START_NS, START_NS + number * HOUR_NS))
    return paths


@contextlib.contextmanager
def immutable(path: str | bytes | os.PathLike) -> Iterator[None]:
    """Make a file immutable (``chattr +i``) for the time of a block; raise OSError if the file system cannot."""
    get_flags, set_flags, flag = 0x80086601, 0x40086602, 0x10
    fd = os.open(path, os.O_RDONLY)
    try:
        (flags,) = struct.unpack("L", fcntl.ioctl(fd, get_flags, bytes(8)))
        fcntl.ioctl(fd, set_flags, struct.pack("L", flags | flag))
        try:
            yield
        finally:
            fcntl.ioctl(fd, set_flags, struct.pack("L", flags & ~flag))
    finally:
        os.close(fd)


def _write_random(path: bytes, size: int, source: random.Random) -> None:
    with open(path, "wb") as file:
        while size > 0:
            block = source.getrandbits(8 * min(size, 65536)).to_bytes(min(size, 65536), "little")
            size -= file.write(block)


def remove_tree(root: str | bytes | os.PathLike) -> None:
    """Remove a tree, also where its paths are longer than PATH_MAX or its directories are read-only."""
    try:
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    try:
        _empty(fd)
    finally:
        os.close(fd)
    os.rmdir(root)


def _empty(fd: int) -> None:
    os.fchmod(fd, 0o700)
    for name in os.listdir(fd):
        try:
            os.unlink(name, dir_fd=fd)
        except OSError as error:
            if error.errno not in (errno.EISDIR, errno.EPERM):
                raise
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
            try:
                _empty(below)
            finally:
                os.close(below)
            os.rmdir(name, dir_fd=fd)
