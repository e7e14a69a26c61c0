# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check a snapshot, or a tree restored from it, against the manifest, without Ansible and without this collection.

Needs Python 3.8 and its standard library. The format is described in docs/snapshot-format.md. Exit codes: 0 if the tree
is as the manifest says, 1 if it differs, 2 if the manifest or the tree cannot be read.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import hashlib
import io
import json
import os
import stat
import struct
import sys
import zlib
from typing import BinaryIO, Iterator, NamedTuple, Sequence

MAGIC = b"LHSNAP1\n"
FRAME = struct.Struct("<cII16s")  # type, length, stored length, check
HEAD = struct.Struct("<BHIIHH")  # type, mode, length behind the head, of the path, of the target, number of attributes
SHORT = struct.Struct("<IIqqIIIHII")  # uid, gid, mtime, ctime, size, dev, ino, nlink, rdev, blocks
LONG = struct.Struct("<IIqqQQQQQQ")
FAR = struct.Struct("<IIqIqIQQQQQQ")  # each time as seconds and nanoseconds
IS_LONG, IS_FAR = 0x80, 0x40  # in the type
ATTRIBUTE = struct.Struct("<BI")
TYPES = "fdlpsbc"
MODES = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFBLK, stat.S_IFCHR)
MOST = 64 << 20  # bytes of a frame: none is as large
PIECE = 1 << 20
NAMESPACES = (b"user.", b"trusted.", b"security.", b"system.posix_acl_")  # of the attributes that a manifest has


class Damaged(Exception):
    """The manifest cannot be used."""


class Record(NamedTuple):
    """One entry of the manifest."""

    path: bytes
    type: str
    mode: int
    uid: int
    gid: int
    size: int
    mtime_ns: int
    identity: tuple[int, int]  # names with the same one share a file
    nlink: int
    rdev: int
    target: bytes
    attributes: tuple[tuple[bytes, bytes], ...]
    content: bytes  # hash; empty: not known


class Difference(NamedTuple):
    """One thing that is not as the manifest says."""

    path: bytes
    what: str


def frames(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """Yield type and payload of each frame. Raises Damaged."""
    if file.read(len(MAGIC)) != MAGIC:
        raise Damaged("it is no manifest of this format")
    check, kind = bytes(16), b""
    while kind != b"E":
        head = file.read(FRAME.size)
        if len(head) < FRAME.size:
            raise Damaged("it is cut short")
        kind, length, stored_length, said = FRAME.unpack(head)
        if max(length, stored_length) > MOST:
            raise Damaged("a frame has an impossible length")
        stored = file.read(stored_length)
        check = hashlib.blake2b(check + kind + struct.pack("<I", length) + stored, digest_size=16).digest()
        if len(stored) < stored_length or check != said:
            raise Damaged("a frame is damaged, or the file is cut short")
        try:
            unpacker = zlib.decompressobj()
            payload = unpacker.decompress(stored, length + 1)  # never more than the head says
        except zlib.error as error:
            raise Damaged(f"a frame cannot be unpacked: {error}") from None
        if len(payload) != length or not unpacker.eof:
            raise Damaged("a frame has another length than its head says")
        yield kind, payload
    if file.read(1):
        raise Damaged("something follows its end")


def records(payload: bytes) -> Iterator[Record]:
    """Yield the records of a frame. Raises Damaged."""
    try:
        at, entry = 4, 4 + struct.unpack_from("<I", payload)[0]
        end_of_hashes = entry
        while entry < len(payload):
            kind, mode, length, path, target, count = HEAD.unpack_from(payload, entry)
            start, entry = entry + HEAD.size, entry + HEAD.size + length
            form = LONG if kind & IS_LONG else FAR if kind & IS_FAR else SHORT
            numbers = form.unpack_from(payload, start)
            if form is FAR:
                numbers = (*numbers[:2], numbers[2] * 10**9 + numbers[3], 0, *numbers[6:])
            uid, gid, mtime, _ctime, size, dev, ino, nlink, rdev, _blocks = numbers
            name = start + form.size
            behind = name + path + target
            attributes: list[tuple[bytes, bytes]] = []
            while len(attributes) < count:
                name_length, value_length = ATTRIBUTE.unpack_from(payload, behind)
                middle = behind + ATTRIBUTE.size + name_length
                attributes.append((payload[behind + ATTRIBUTE.size : middle], payload[middle : middle + value_length]))
                behind = middle + value_length
            content = payload[at + 1 : at + 1 + payload[at]]
            at += 1 + payload[at]
            if behind != entry or entry > len(payload) or at > end_of_hashes:
                raise Damaged("a record has another length than its head says")
            yield Record(
                payload[name : name + path],
                TYPES[kind & ~(IS_LONG | IS_FAR)],
                mode,
                uid,
                gid,
                size,
                mtime,
                (dev, ino),
                nlink,
                rdev,
                payload[name + path : name + path + target],
                tuple(attributes),
                content,
            )
    except (struct.error, IndexError) as error:
        raise Damaged(f"a record cannot be read: {error}") from None


def members(payload: bytes) -> dict[str, object]:
    """Return the JSON object that a frame holds. Raises Damaged."""
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"a frame holds no JSON: {error}") from None
    if not isinstance(found, dict):
        raise Damaged("a frame holds no JSON object")
    return found


class Manifest:
    """A manifest, read once from its beginning to its end."""

    def __init__(self, file: BinaryIO) -> None:
        self._frames, self.count = frames(file), 0
        kind, payload = next(self._frames, (b"", b""))
        if kind != b"H":
            raise Damaged("it does not begin with a head")
        about = members(payload)
        self.algorithm = str(about.get("algorithm"))  # of the hashes
        self.about = f"{about.get('host')}/{about.get('job')}"
        if self.algorithm not in ("blake2b", "sha256"):
            raise Damaged("its head names no algorithm that is known here")

    def read(self) -> Iterator[Record]:
        """Yield every record. Raises Damaged, at the latest at the end."""
        for kind, payload in self._frames:
            if kind == b"R":
                for record in records(payload):
                    self.count += 1
                    yield record
            elif kind == b"E" and members(payload).get("entries") != self.count:
                raise Damaged("it has another number of entries than its end says")
        if not self.count:
            raise Damaged("it has no records, not even of the root of the tree")


def hash_file(path: bytes, algorithm: str) -> bytes:
    """Return the hash of what a file holds. Raises OSError."""
    digest = hashlib.blake2b(digest_size=32) if algorithm == "blake2b" else hashlib.sha256()
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(PIECE), b""):
            digest.update(piece)
    return digest.digest()


class OpenDirectory(NamedTuple):
    """A directory that the next records are in."""

    path: bytes
    fd: int
    names: set[bytes]  # that no record has named yet


class TreeCheck:
    """A tree beside a manifest. The process works in each of its directories in turn: paths may be of any length."""

    def __init__(self, tree: str, algorithm: str, aspects: set[str], is_copy: bool) -> None:
        """Take the root, and what is compared besides names, types and sizes: owners, times, attributes, contents.

        ``is_copy``: it is not the snapshot's own, most of whose files have names in other snapshots, too.
        """
        self._tree, self._algorithm, self._aspects, self._is_copy = tree, algorithm, aspects, is_copy
        self._open: list[OpenDirectory] = []
        self._missing: bytes | None = None  # a directory that is not there: what is below it is not named again
        self._first_names: dict[tuple[int, int], tuple[bytes, os.stat_result]] = {}  # by the file in the manifest
        self._shared: dict[tuple[int, int], tuple[bytes, tuple[int, int]]] = {}  # by the file in the tree
        self.unhashed = 0  # files whose contents nobody knows

    def check(self, found: Iterator[Record]) -> Iterator[Difference]:
        """Yield every difference, in the order of the records. Raises OSError if there is no such tree."""
        os.chdir(self._tree)
        for record in found:
            yield from self._leave(record.path)
            if self._missing is not None and record.path.startswith(self._missing + b"/"):
                continue
            name = os.path.basename(record.path) or b"."
            if self._open:
                self._open[-1].names.discard(name)
            wrong = self._compare(record, name)
            if wrong:
                yield Difference(record.path, wrong)
        yield from self._leave(None)

    def _leave(self, path: bytes | None) -> Iterator[Difference]:
        """Close the directories that do not hold a path, and name what only they have. None: close all."""
        while self._open:
            folder = self._open[-1]
            if path is not None and (not folder.path or path.startswith(folder.path + b"/")):
                os.fchdir(folder.fd)
                return
            self._open.pop()
            os.close(folder.fd)
            for name in sorted(folder.names):
                yield Difference(folder.path + b"/" + name if folder.path else name, "is not in the manifest")

    def _compare(self, record: Record, name: bytes) -> str:
        """Return what is wrong with an entry of the directory that the process is in; empty if nothing is."""
        is_folder = record.type == "d"
        try:
            found = os.lstat(name)
            if stat.S_IFMT(found.st_mode) != MODES[TYPES.index(record.type)]:
                self._missing = record.path if is_folder else self._missing
                return "is of another type"
            if is_folder:
                fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                self._open.append(OpenDirectory(record.path, fd, set(map(os.fsencode, os.listdir(fd)))))
            wrong = self._attributes(record, name, found)
            has_contents = record.type == "f" and "contents" in self._aspects and record.content
            self.unhashed += record.type == "f" and not record.content
            if record.type == "f" and found.st_size != record.size:
                wrong.append(f"size {found.st_size}, expected {record.size}")
            elif has_contents and hash_file(name, self._algorithm) != record.content:
                wrong.append("contents")
        except OSError as error:
            self._missing = record.path if is_folder else self._missing
            return "is missing" if error.errno == errno.ENOENT else f"cannot be read: {error.strerror}"
        return "differs: " + ", ".join(wrong) if wrong else ""

    def _attributes(self, record: Record, name: bytes, found: os.stat_result) -> list[str]:
        wrong = []
        if record.type == "l" and os.readlink(name) != record.target:
            wrong.append("target")
        if record.type != "l" and stat.S_IMODE(found.st_mode) != record.mode:
            wrong.append(f"mode {stat.S_IMODE(found.st_mode):04o}, expected {record.mode:04o}")
        if record.type in "bc" and found.st_rdev != record.rdev:
            wrong.append("device number")
        if "owners" in self._aspects and (found.st_uid, found.st_gid) != (record.uid, record.gid):
            wrong.append(f"owner {found.st_uid}:{found.st_gid}, expected {record.uid}:{record.gid}")
        if "times" in self._aspects and found.st_mtime_ns != record.mtime_ns:
            wrong.append("modification time")
        if "attributes" in self._aspects and attributes_of(name) != record.attributes:
            wrong.append("extended attributes or ACL")
        if record.nlink > 1 and record.type != "d":
            first, seen = self._first_names.setdefault(record.identity, (record.path, found))
            if not os.path.samestat(seen, found):
                wrong.append(f"is not the same file as {show(first)}")
        if self._is_copy and found.st_nlink > 1 and record.type != "d":
            place = (found.st_dev, found.st_ino)
            first, identity = self._shared.setdefault(place, (record.path, record.identity))
            if identity != record.identity:
                wrong.append(f"is the same file as {show(first)}, which is another one in the manifest")
        return wrong


def attributes_of(path: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """Return the extended attributes of an entry that a manifest records, sorted, ACLs among them."""
    found = []
    with contextlib.suppress(OSError, AttributeError):  # a system or a file system without any
        for name in os.listxattr(path, follow_symlinks=False):
            key = os.fsencode(name)
            if key.startswith(NAMESPACES):
                with contextlib.suppress(OSError):
                    found.append((key, os.getxattr(path, name, follow_symlinks=False)))
    return tuple(sorted(found))


def show(path: bytes) -> str:
    """Return a path that a terminal shows harmlessly."""
    text = os.fsdecode(path) or "."
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "surrogateescape").decode()
        for letter in text
    )


def sum_lines(found: Iterator[Record]) -> Iterator[bytes]:
    """Yield lines that ``b2sum -l 256 --check`` or ``sha256sum --check`` reads, one for each file with a hash."""
    for record in found:
        if record.content:
            name = record.path.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
            mark = b"\\" if name != record.path else b""
            yield mark + record.content.hex().encode() + b"  " + name + b"\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says, and return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # which may be of an encoding that lacks letters of a name
            stream.reconfigure(errors="backslashreplace")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "snapshot", help="the folder of a snapshot, such as /srv/backup/web1/data/latest, or a manifest"
    )
    parser.add_argument("--tree", help="compare this tree, such as a restored one; default: the snapshot's own")
    parser.add_argument("--no-contents", action="store_true", help="do not read the files")
    parser.add_argument("--no-owners", action="store_true", help="ignore owners and groups")
    parser.add_argument("--no-times", action="store_true", help="ignore modification times")
    parser.add_argument("--no-attributes", action="store_true", help="ignore extended attributes and ACLs")
    parser.add_argument("--sums", action="store_true", help="compare nothing; write the hashes for b2sum or sha256sum")
    given = parser.parse_args(arguments)
    manifest = os.path.join(given.snapshot, "manifest") if os.path.isdir(given.snapshot) else given.snapshot
    tree = given.tree or os.path.join(os.path.dirname(manifest), "data")
    names = ("contents", "owners", "times", "attributes")
    aspects = {name for name in names if not getattr(given, f"no_{name}")}
    differences = 0
    try:
        with open(manifest, "rb") as file:
            known = Manifest(file)
            if given.sums:
                command = "b2sum -l 256" if known.algorithm == "blake2b" else "sha256sum"
                print(f"# in the tree: {command} --check --quiet THIS_FILE", file=sys.stderr)
                for line in sum_lines(known.read()):
                    sys.stdout.buffer.write(line)
                return 0
            comparison = TreeCheck(os.path.abspath(tree), known.algorithm, aspects, bool(given.tree))
            for difference in comparison.check(known.read()):
                differences += 1
                print(f"{show(difference.path)} {difference.what}")
    except (Damaged, ValueError) as error:
        print(f"{manifest} is damaged: {error}. Use another copy or another snapshot", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"cannot read {show(os.fsencode(error.filename or manifest))}: {error.strerror}", file=sys.stderr)
        return 2
    found = f"{known.about}: {known.count} entries of the manifest, {differences} differences in {tree}"
    if comparison.unhashed and "contents" in aspects:
        found += f"; of {comparison.unhashed} files the manifest has no hash, so their contents were not compared"
    print(found, file=sys.stderr)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
