# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An independent judge of two trees: it shares no code with what it judges.

As a program: ``compare.py A B [--ignore ASPECT]... [--skip PATH]...`` prints the differences and ends with 1 where
there are any.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import stat
import sys
from typing import Collection, NamedTuple

ASPECTS = ("type", "size", "content", "mode", "owner", "mtime", "xattrs", "target", "rdev", "links", "sparse")

# Written by the host's own policy, not by who copies.
_HOSTS_OWN_XATTRS = ("security.selinux",)
# File systems round allocations up, and some keep a little more for a file that grew.
_SPARSE_SLACK = 128 * 1024


class Found(NamedTuple):
    """What is at one path of a tree."""

    type: str
    size: int
    content: str
    mode: str
    owner: str
    mtime: int
    xattrs: dict[str, bytes]
    target: bytes
    rdev: int
    links: tuple[bytes, ...]  # all names of the same file below the root
    allocated: int  # bytes


def differences(
    a: str | bytes | os.PathLike | dict[bytes, Found],
    b: str | bytes | os.PathLike,
    *,
    ignore: Collection[str] = (),
    skip: Collection[bytes] = (),
) -> list[str]:
    """Return one line for each difference of the trees at ``a`` and ``b``, the roots included; [] if there is none.

    Names, types, sizes, contents (SHA-256), modes, owners (numbers), mtimes (ns; also of symlinks and directories),
    xattrs and ACLs, symlink targets, device numbers, which names are links of one file, and that ``b`` allocates not
    much more than ``a`` where ``a`` is sparse. ``ignore`` names aspects (see ASPECTS) to leave out, ``skip`` relative
    paths to leave out with everything below them; the root is ``b""`` there, and only the root itself is meant.
    What cannot be read is a difference. ``a`` may be what ``recorded`` said of a tree, without ``skip``. Raises
    ValueError on an unknown aspect, OSError where a root is missing.
    """
    if set(ignore) - set(ASPECTS):
        raise ValueError("no such aspect: " + ", ".join(sorted(set(ignore) - set(ASPECTS))))
    aspects = [aspect for aspect in ASPECTS if aspect not in ignore]
    hashing = "content" in aspects
    left = a if isinstance(a, dict) else _scan(a, set(skip), hashing)
    right = _scan(b, set(skip), hashing)
    lines: list[str] = []
    for path in sorted(left.keys() | right.keys()):
        if path not in right:
            lines.append(f"{_show(path)}: missing in the second tree ({left[path].type})")
        elif path not in left:
            lines.append(f"{_show(path)}: only in the second tree ({right[path].type})")
        else:
            lines += [f"{_show(path)}: {line}" for line in _compare(left[path], right[path], aspects)]
    return lines


def recorded(root: str | bytes | os.PathLike) -> dict[bytes, Found]:
    """Return all that is compared of a tree, by path, for one that does not stay as it is."""
    return _scan(root, set(), True)


def _compare(a: Found, b: Found, aspects: list[str]) -> list[str]:
    if a.type != b.type:
        return [f"type: {a.type} != {b.type}"] if "type" in aspects else []
    lines = []
    for aspect in aspects:
        if aspect == "sparse":
            if a.allocated + _SPARSE_SLACK < a.size and b.allocated > a.allocated + a.allocated // 8 + _SPARSE_SLACK:
                lines.append(f"sparse: {a.allocated} != {b.allocated} bytes allocated")
        elif aspect == "xattrs":
            for name in sorted(a.xattrs.keys() | b.xattrs.keys()):
                if a.xattrs.get(name) != b.xattrs.get(name):
                    lines.append(f"xattr {name}: {a.xattrs.get(name)!r} != {b.xattrs.get(name)!r}")
        elif getattr(a, aspect) != getattr(b, aspect):
            lines.append(f"{aspect}: {getattr(a, aspect)!r} != {getattr(b, aspect)!r}")
        elif aspect == "content" and a.content.startswith("unreadable"):
            lines.append(f"content: {a.content}, cannot be compared")
    return lines


class _Scanner:
    """Walks by dir fds, so that no path is too long and no symlink is followed."""

    def __init__(self, skip: set[bytes], hashing: bool) -> None:
        self.skip, self.hashing = skip, hashing
        self.entries: dict[bytes, tuple[os.stat_result, Found]] = {}
        self.names: dict[tuple[int, int], list[bytes]] = {}
        self.hashes: dict[tuple[int, int], str] = {}

    def folder(self, fd: int, path: bytes) -> None:
        for name in os.listdir(fd):
            self.entry(fd, os.fsencode(name), path + b"/" + os.fsencode(name) if path else os.fsencode(name))

    def entry(self, parent: int, name: bytes, path: bytes) -> None:
        if path in self.skip:
            return
        self.add(os.stat(name, dir_fd=parent, follow_symlinks=False), parent, name, path)
        if self.entries[path][1].type == "directory":
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
            try:
                self.folder(below, path)
            finally:
                os.close(below)

    def add(self, status: os.stat_result, parent: int, name: bytes, path: bytes) -> None:
        kind = _type(status.st_mode)
        content = ""
        if kind == "file" and self.hashing:
            identity = (status.st_dev, status.st_ino)
            if identity not in self.hashes:
                self.hashes[identity] = _sha256(parent, name)
            content = self.hashes[identity]
        if kind != "directory":
            self.names.setdefault((status.st_dev, status.st_ino), []).append(path)
        self.entries[path] = (
            status,
            Found(
                type=kind,
                size=status.st_size if kind in ("file", "symlink") else 0,
                content=content,
                mode=oct(stat.S_IMODE(status.st_mode)),
                owner=f"{status.st_uid}:{status.st_gid}",
                mtime=status.st_mtime_ns,
                xattrs=_xattrs(f"/proc/self/fd/{parent}/".encode() + name),
                target=os.readlink(name, dir_fd=parent) if kind == "symlink" else b"",
                rdev=status.st_rdev if kind in ("block device", "character device") else 0,
                links=(),
                allocated=status.st_blocks * 512 if kind == "file" else 0,
            ),
        )


def _scan(root: str | bytes | os.PathLike, skip: set[bytes], hashing: bool) -> dict[bytes, Found]:
    """Return what is at each path below the root (and at ``b""`` the root itself)."""
    scanner = _Scanner(skip, hashing)
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if b"" not in skip:
            scanner.add(os.stat(fd), fd, b".", b"")
        scanner.folder(fd, b"")
    finally:
        os.close(fd)
    found = {}
    for path, (status, entry) in scanner.entries.items():
        links = scanner.names.get((status.st_dev, status.st_ino), []) if entry.type != "directory" else []
        found[path] = entry._replace(links=tuple(sorted(links)) if len(links) > 1 else ())
    return found


def _type(mode: int) -> str:
    kinds = {
        stat.S_IFREG: "file",
        stat.S_IFDIR: "directory",
        stat.S_IFLNK: "symlink",
        stat.S_IFIFO: "FIFO",
        stat.S_IFSOCK: "socket",
        stat.S_IFBLK: "block device",
        stat.S_IFCHR: "character device",
    }
    return kinds[stat.S_IFMT(mode)]


def _sha256(parent: int, name: bytes) -> str:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=parent)
    except OSError as error:
        return f"unreadable: {error.strerror}"
    hashed, block = hashlib.sha256(), memoryview(bytearray(1 << 20))
    with open(fd, "rb", buffering=0) as file:
        try:
            while True:
                length = file.readinto(block)
                if not length:
                    return hashed.hexdigest()
                hashed.update(block[:length])
        except OSError as error:
            return f"unreadable: {error.strerror}"


def _xattrs(path: bytes) -> dict[str, bytes]:
    try:
        names = os.listxattr(path, follow_symlinks=False)
        wanted = [name for name in names if name not in _HOSTS_OWN_XATTRS]
        return {name: os.getxattr(path, name, follow_symlinks=False) for name in wanted}
    except PermissionError:
        return {"unreadable": os.urandom(8)}  # equal to nothing
    except OSError:
        return {}  # a file system without xattrs


def _show(path: bytes) -> str:
    return repr(path)[1:] if path else "the root"


def main() -> int:
    """Compare the two trees named on the command line."""
    parser = argparse.ArgumentParser(description=differences.__doc__)
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("--ignore", action="append", default=[], choices=ASPECTS)
    parser.add_argument("--skip", action="append", default=[], type=os.fsencode)
    given = parser.parse_args()
    found = differences(given.a, given.b, ignore=given.ignore, skip=given.skip)
    for line in found:
        print(line)
    print(f"{len(found)} differences", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
