# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random trees, and random edits of them, each told in one line."""

from __future__ import annotations

import itertools
import os
import random
import stat
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from ansible_collections.longhaul.fleet.tests.support.hard_tree import NAMES

from .tree import BLOCK, CHARACTER, FIFO, FILE, FOLDER, SOCKET, SYMLINK, Inode, Tree

SECOND = 10**9
# Past, present and future: before 1970, after 2038, and some that differ by less than a second; seldom after 2262,
# which no int64 of nanoseconds can say.
TIMES = (
    0,
    -86_400 * SECOND + 5,
    10**9 * SECOND,
    10**9 * SECOND + 1,
    10**9 * SECOND + 999_999_999,
    1_700_000_000 * SECOND + 123_456_789,
    2_208_988_800 * SECOND + 987_654_321,
)
FAR_TIMES = (10_413_792_000 * SECOND, 10_413_792_000 * SECOND + 7)
SIZES = (0, 1, 5, 4096, 5000, 70_000, 262_143, 262_144, 262_145, 300_000, 1_100_000)
MODES = (0o644, 0o600, 0o755, 0o444, 0o666, 0o4755, 0o2755, 0o6711, 0o1644)
FOLDER_MODES = (0o755, 0o700, 0o1777, 0o2750, 0o2775, 0o555)
# A transfer's own folder is named .longhaul-ID, where ID is 16 lower case hex digits. No source offers what has such a
# name, in whatever folder (reference.py has the like of it); all others are names as any.
STAGING_PATTERN = b".longhaul-" + b"[0-9a-f]" * 16
LIKE_STAGING = (
    b".longhaul-0123456789abcdef",
    b".longhaul-fedcba9876543210",
    b".longhaul-0123456789abcde",
    b".longhaul-0123456789abcdef0",
    b".longhaul-0123456789ABCDEF",
    b".longhaul-0123456789abcdeg",
    b".longhaul-partial",
    b".longhaul-",
    b".longhaulx",
    b"x.longhaul-0123456789abcdef",
)
_FAVOUR = 5  # times as often
_CAPABILITY = struct.pack("<IIIII", 0x02000000, 1 << 10, 0, 0, 0)  # <linux/capability.h>: to bind low ports
_NO_ID = 0xFFFFFFFF


@dataclass(frozen=True)
class Palette:
    """What trees of a user may have."""

    uids: tuple[int, ...] = (0, 0, 0, 1, 54321)
    gids: tuple[int, ...] = (0, 0, 2, 54322)
    devices: bool = True
    trusted: bool = True  # xattrs that root alone may set
    unreadable: bool = True  # modes under which the owner cannot read
    acls: bool = True
    names: tuple[bytes, ...] = ()


def root_palette(chance: random.Random) -> Palette:
    """Return what root's trees may have; few names, so that edits meet the same ones again."""
    return Palette(names=_some_names(chance))


def user_palette(chance: random.Random, uid: int, groups: tuple[int, ...]) -> Palette:
    """Return what the trees of a user in these groups may have."""
    return Palette((uid,), groups, False, False, False, names=_some_names(chance))


def _some_names(chance: random.Random) -> tuple[bytes, ...]:
    hard = [name for name in NAMES.values() if b".longhaul" not in name]
    return (b"a", b"b", b"c", b"x.keep", b"y.tmp", *chance.sample(hard, 4), chance.choice(LIKE_STAGING))


def _holds(tree: Tree, path: bytes) -> tuple[int, object]:
    inode = tree.at(path)
    assert inode
    return inode.size, inode.data


class Grower:
    """Changes a tree at random; each change is told. ``favoured`` edits, by their names, are made more often."""

    def __init__(self, tree: Tree, chance: random.Random, palette: Palette, favoured: Collection[str] = ()) -> None:
        self.tree, self.chance, self.palette, self._favoured = tree, chance, palette, favoured
        self.said: list[str] = []
        if b"" not in tree.names:
            tree.add(b"", Inode(FOLDER, 0o755, palette.uids[0], palette.gids[0]))

    def edit(self, count: int = 1) -> list[str]:
        """Make so many changes, and give what was done."""
        begun = len(self.said)
        acts: list[tuple[Callable[[], str], int]] = [
            (self.write, 6),
            (self.folder, 3),
            (self.symlink, 2),
            (self.special, 1),
            (self.link, 3),
            (self.break_link, 2),
            (self.join, 1),
            (self.content, 3),
            (self.layout, 2),
            (self.attributes, 4),
            (self.xattr, 2),
            (self.remove, 3),
            (self.rename, 2),
            (self.copy, 2),
        ]
        while len(self.said) < begun + count:
            weights = [w * (_FAVOUR if act.__name__ in self._favoured else 1) for act, w in acts]
            act = self.chance.choices([a for a, _w in acts], weights)[0]
            self.said.append(act() or "nothing")
        return self.said[begun:]

    def _new_path(self, deepest: int = 3) -> bytes:
        folders = [f for f in self.tree.folders() if f.count(b"/") < deepest]
        folder, name = self.chance.choice(folders), self.chance.choice(self.palette.names)
        return folder + b"/" + name if folder else name

    def _file(self) -> Inode:
        return Inode(FILE, **{**self._owned(), "mode": self._mode(FILE), **self._contents()})  # type: ignore[arg-type]

    def _owned(self) -> dict[str, int]:
        chance, palette = self.chance, self.palette
        return {"uid": chance.choice(palette.uids), "gid": chance.choice(palette.gids), "mtime": self._time()}

    def _time(self) -> int:
        return self.chance.choice(FAR_TIMES if self.chance.random() < 0.02 else TIMES)

    def _mode(self, kind: str) -> int:
        mode = self.chance.choice(FOLDER_MODES if kind == FOLDER else MODES)
        if self.palette.unreadable and self.chance.random() < 0.1:
            return 0
        # A user who may not write into a folder cannot make what is in it: that is a fault of its own, and no edit
        return mode | 0o700 if kind == FOLDER and not self.palette.unreadable else mode

    def _contents(self) -> dict[str, object]:
        chance, size = self.chance, self.chance.choice(SIZES)
        number = chance.randrange(1, 4)
        shape = chance.choice(["full", "full", "hole", "last", "first", "middle", "stripes", "gap", "tail"])
        block = 4096
        data: list[tuple[int, int, int]]
        if size < 2 * block or shape == "full":
            data = [(0, size, number)] if size else []
        elif shape == "hole":
            data = []
        elif shape == "last":
            data = [(size - 1, 1, number)]
        elif shape == "first":
            data = [(0, block, number)]
        elif shape == "middle":
            data = [(size // 2 // block * block, block, number)]
        elif shape == "stripes":
            data = [(at, min(block, size - at), number) for at in range(0, size, 4 * block)]
        elif shape == "gap":
            third = size // 3 // block * block
            data = [(0, third, number), (2 * third, size - 2 * third, number)]
        else:
            data = [(0, size // 2 // block * block, number)]
        return {"size": size, "data": tuple(data)}

    def write(self) -> str:
        path, inode = self._new_path(), self._file()
        return self._add(path, inode)

    def _add(self, path: bytes, inode: Inode) -> str:
        before = self.tree.at(path)
        self.tree.add(path, inode)
        return f"make {path!r}{f' in place of a {before.kind}' if before else ''}: {inode.described()}"

    def folder(self) -> str:
        path = self._new_path(2)
        inode = Inode(FOLDER, **{**self._owned(), "mode": self._mode(FOLDER)})
        before = self.tree.at(path)
        if before and before.kind == FOLDER:
            return ""
        return self._add(path, inode)

    def symlink(self) -> str:
        targets = (b"nowhere", b"..", b"a", b"/etc/passwd", b"./b", b"x" * 4000, b"new\nline", b"\xff\\#012")
        return self._add(
            self._new_path(), Inode(SYMLINK, **{**self._owned(), "mode": 0o777, "target": self.chance.choice(targets)})
        )

    def special(self) -> str:
        kind = self.chance.choice([FIFO, SOCKET, CHARACTER, BLOCK] if self.palette.devices else [FIFO, SOCKET])
        device = os.makedev(1, self.chance.choice([3, 5])) if kind in (CHARACTER, BLOCK) else 0
        return self._add(self._new_path(), Inode(kind, **{**self._owned(), "mode": 0o640, "device": device}))

    def link(self) -> str:
        others = self.tree.paths(FILE, SYMLINK, FIFO)
        new = self._new_path()
        if not others:
            return ""
        old = self.chance.choice(others)
        if old == new or old.startswith(new + b"/"):
            return ""
        self.tree.link(old, new)
        return f"link {old!r} to {new!r}"

    def break_link(self) -> str:
        linked = [path for path in self.tree.paths(FILE) if len(self.tree.links(path)) > 1]
        if not linked:
            return self.link()
        path = self.chance.choice(linked)
        inode = self.tree.at(path)
        assert inode
        other = self.chance.choice(["same", "mode", "mtime", "content"])
        if other == "mode":
            inode = replace(inode, mode=self._mode(FILE))
        elif other == "mtime":
            inode = replace(inode, mtime=self._time())
        elif other == "content":
            inode = replace(inode, **self._contents())  # type: ignore[arg-type]
        self.tree.add(path, inode)
        return f"make {path!r} a file of its own, {other}: {inode.described()}"

    def join(self) -> str:
        """Make one file of two that hold the same, whatever their attributes are."""
        paths = self.tree.paths(FILE)
        pairs = [
            (old, new)
            for old, new in itertools.permutations(paths, 2)
            if new not in self.tree.links(old) and _holds(self.tree, old) == _holds(self.tree, new)
        ]
        if not pairs:
            return self.copy()
        old, new = self.chance.choice(pairs)
        self.tree.link(old, new)
        return f"make {new!r} one file with {old!r}"

    def content(self) -> str:
        """Change a file's content; its size, and even its time, may stay."""
        files = self.tree.paths(FILE)
        if not files:
            return self.write()
        path = self.chance.choice(files)
        inode = self.tree.at(path)
        assert inode
        if self.chance.random() < 0.5:
            data = tuple((at, length, number % 3 + 1) for at, length, number in inode.data)
            changed: dict[str, object] = {"data": data}
        else:
            changed = self._contents()
        if self.chance.random() < 0.7:
            changed["mtime"] = self._time()
        self.tree.change(path, **changed)
        return f"write into {path!r}: {changed}"

    def layout(self) -> str:
        """Change a file's size and holes, and nothing else."""
        files = [path for path in self.tree.paths(FILE) if self.tree.at(path).size >= 8192]  # type: ignore[union-attr]
        if not files:
            return self.write()
        path = self.chance.choice(files)
        self.tree.change(path, **self._contents())
        return f"lay out {path!r}: {self.tree.at(path).described()}"  # type: ignore[union-attr]

    def attributes(self) -> str:
        path = self.chance.choice([b"", *self.tree.paths()])
        inode = self.tree.at(path)
        assert inode
        owned = self._owned()
        what = self.chance.choice(["mode", "uid", "gid", "mtime"])
        if what == "mode":
            value = 0o755 if path == b"" or inode.kind == SYMLINK else self._mode(inode.kind)
        else:
            value = owned[what]
        if inode.kind == SYMLINK and what == "mode":
            return ""
        self.tree.change(path, **{what: value})
        return f"{what} of {path!r}: {value:#o}" if what == "mode" else f"{what} of {path!r}: {value}"

    def xattr(self) -> str:
        chance = self.chance
        usable = [p for p in [b"", *self.tree.paths(FILE, FOLDER)] if self.palette.trusted or self._owners_may_write(p)]
        if not usable:
            return ""
        path = chance.choice(usable)
        inode = self.tree.at(path)
        assert inode
        names = ["user.note", "user.other", "system.posix_acl_access"]
        names += ["trusted.note"] if self.palette.trusted else []
        names += ["security.capability"] if self.palette.trusted and inode.kind == FILE else []
        names += ["system.posix_acl_default"] if inode.kind == FOLDER else []
        name = chance.choice(names)
        rest = tuple((n, v) for n, v in inode.xattrs if n != name)
        if len(rest) < len(inode.xattrs) and chance.random() < 0.5:
            self.tree.change(path, xattrs=rest)
            return f"remove {name} of {path!r}"
        value = acl(chance.choice([4, 5, 6, 7])) if "acl" in name else chance.choice([b"", b"one", bytes(range(256))])
        value = _CAPABILITY if name == "security.capability" else value
        self.tree.change(path, xattrs=tuple(sorted((*rest, (name, value)))))
        return f"{name} of {path!r}: {value!r}"

    def _owners_may_write(self, path: bytes) -> bool:
        return bool(self.tree.at(path).mode & stat.S_IWUSR)  # type: ignore[union-attr]

    def remove(self) -> str:
        paths = self.tree.paths()
        if not paths:
            return ""
        path = self.chance.choice(paths)
        self.tree.remove(path)
        return f"remove {path!r}"

    def rename(self) -> str:
        paths = self.tree.paths()
        new = self._new_path()
        if not paths:
            return ""
        old = self.chance.choice(paths)
        if old == new or new.startswith(old + b"/") or old.startswith(new + b"/"):
            return ""
        self.tree.rename(old, new)
        return f"rename {old!r} to {new!r}"

    def copy(self) -> str:
        """Make a file that is like another one in all, content and time too."""
        files = self.tree.paths(FILE)
        if not files:
            return self.write()
        old, new = self.chance.choice(files), self._new_path()
        if old.startswith(new + b"/") or old == new:
            return ""
        inode = self.tree.at(old)
        assert inode
        self.tree.add(new, inode)
        return f"copy {old!r} to {new!r}"


def acl(bits: int) -> bytes:
    """Return an ACL as its xattr, with an entry for a user who is in no passwd file."""
    entries = ((1, 7, _NO_ID), (2, bits, 54321), (4, 4, _NO_ID), (16, bits | 4, _NO_ID), (32, 0, _NO_ID))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
