# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A file tree as data: what each name is, and which names are one file.

Trees on disk are made of these (``disk``), so that a failing one can be told in a few lines and made again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

FILE, FOLDER, SYMLINK, FIFO, CHARACTER, BLOCK, SOCKET = "file", "folder", "symlink", "fifo", "chr", "blk", "socket"
SPECIAL = (FIFO, CHARACTER, BLOCK, SOCKET)


@dataclass(frozen=True)
class Inode:
    """All that is known of one file, folder or other entry, but for its names."""

    kind: str
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    mtime: int = 1_000_000_000_123_456_789  # ns
    size: int = 0
    data: tuple[tuple[int, int, int], ...] = ()  # (offset, length, number) of what is written: the rest are holes
    target: bytes = b""
    device: int = 0
    xattrs: tuple[tuple[str, bytes], ...] = ()

    def described(self) -> str:
        """Return its description, without default values."""
        usual = Inode(self.kind, 0o755 if self.kind == FOLDER else 0o644)
        names = ("mode", "uid", "gid", "mtime", "size", "data", "target", "device", "xattrs")
        said = [f"{n}={getattr(self, n)!r}" for n in names if getattr(self, n) != getattr(usual, n)]
        return " ".join([self.kind, *(f"mode={self.mode:#o}" if s.startswith("mode=") else s for s in said)])


@dataclass
class Tree:
    """Names and what they name; the root is the name ``b""``."""

    names: dict[bytes, int] = field(default_factory=dict)
    inodes: dict[int, Inode] = field(default_factory=dict)

    def copy(self) -> Tree:
        """Return an independent copy."""
        return Tree(dict(self.names), dict(self.inodes))

    def at(self, path: bytes) -> Inode | None:
        """Return the entry of a name; None if there is none."""
        return self.inodes[self.names[path]] if path in self.names else None

    def add(self, path: bytes, inode: Inode) -> None:
        """Make an entry; what had the name is gone, with all below it."""
        self.remove(path)
        number = max(self.inodes, default=0) + 1
        self.names[path], self.inodes[number] = number, inode

    def change(self, path: bytes, **what: object) -> None:
        """Change an entry under all its names."""
        self.inodes[self.names[path]] = replace(self.inodes[self.names[path]], **what)

    def link(self, old: bytes, new: bytes) -> None:
        """Make another name of an entry."""
        number = self.names[old]
        self.remove(new, keep=number)
        self.names[new] = number

    def remove(self, path: bytes, keep: int = 0) -> None:
        """Remove a name and all below it."""
        for name in [name for name in self.names if name == path or name.startswith(path + b"/")]:
            del self.names[name]
        self.inodes = {n: i for n, i in self.inodes.items() if n == keep or n in set(self.names.values())}

    def rename(self, old: bytes, new: bytes) -> None:
        """Rename an entry, with everything below it."""
        moved = {n: i for n, i in self.names.items() if n == old or n.startswith(old + b"/")}
        kept = dict(self.inodes)
        self.remove(new)
        for name in moved:
            self.names.pop(name, None)
        for name, number in moved.items():
            self.names[new + name[len(old) :]] = number
            self.inodes[number] = kept[number]
        self.remove(b"\0")  # which is no name: drops what has none any more

    def paths(self, *kinds: str) -> list[bytes]:
        """Return the names of entries of these kinds (default: all), without the root."""
        return sorted(p for p, n in self.names.items() if p and (not kinds or self.inodes[n].kind in kinds))

    def folders(self) -> list[bytes]:
        """Return the folders, the root first."""
        return [b"", *self.paths(FOLDER)]

    def links(self, path: bytes) -> list[bytes]:
        """Return all names of the entry that has this one."""
        return sorted(name for name, number in self.names.items() if number == self.names[path])

    def described(self) -> list[str]:
        """Return a line for each name; of an entry with several names the first one says what it is."""
        lines, first = [], {}
        for path in sorted(self.names):
            number = self.names[path]
            what = f"= {first[number]!r}" if number in first else self.inodes[number].described()
            first.setdefault(number, path)
            lines.append(f"{path!r}: {what}")
        return lines
