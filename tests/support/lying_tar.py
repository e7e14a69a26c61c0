# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An end of a transfer by tar_nc that lies: ``lying_tar.py SIDE LIES ends.py REQUEST.json RESULT.json``.

As ``lying_stream``, whose lies about messages it knows, too. In addition a source falsifies the archives that it sends:
the real tar makes them, and one thing in them is changed.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
import tarfile
import zlib
from typing import Any, Callable

COLLECTION = "ansible_collections.longhaul.fleet"
UNITS = f"{COLLECTION}.plugins.module_utils"
PIECE = 1 << 18
UP = "../" * 4  # from the folder of a shard to what is beside the root
NAMES = (
    *("../escaped", f"{UP}escaped", f"{UP}outside/escaped", "./../escaped", "same/../../escaped", "/lhtest-escaped"),
    *("escaped", "folder/escaped", "raw-0", "raw-1", ".", "./", "..", "new/below", "a" * 300),
)
TARGETS = (f"{UP}outside", f"{UP}older", "..", "../..", "/", ".", f"{UP}outside/secret", f"{UP}older/same")
KINDS = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE)


def _made(name: str, **changes: Any) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    for field, value in changes.items():
        setattr(member, field, value)
    return member


def another_name(members: Any, choice: int, where: int) -> None:
    """Rename a file."""
    members[where % len(members)][0].name = NAMES[choice % len(NAMES)]


def one_more(members: Any, choice: int, where: int) -> None:
    """Add a set-id file that nobody asked for."""
    name = NAMES[choice % len(NAMES)]
    members.insert(where % (len(members) + 1), (_made(name, mode=0o6777, size=4), b"evil"))


def link_first(members: Any, choice: int, where: int) -> None:
    """Put a symlink where a file is due, and write through it."""
    name = members[where % len(members)][0].name
    link = _made(name, type=tarfile.SYMTYPE, linkname=TARGETS[choice % len(TARGETS)], mode=0o777)
    below = _made(f"{name}/escaped", mode=0o4755, size=4)
    members[:0] = [(link, b""), (below, b"evil"), (_made(name, mode=0o644, size=4), b"evil")]


def link_for_a_folder(members: Any, choice: int, _where: int) -> None:
    """Put a symlink where the folder of a file is due."""
    link = _made("./folder", type=tarfile.SYMTYPE, linkname=TARGETS[choice % len(TARGETS)], mode=0o777)
    members.insert(0, (link, b""))


def another_type(members: Any, choice: int, where: int) -> None:
    """Make something else of a file: a device, a FIFO, a folder, a link to what is outside."""
    member, _content = members[where % len(members)]
    member.type, member.size, member.devmajor, member.devminor = KINDS[choice % len(KINDS)], 0, 1, 3
    member.linkname = TARGETS[choice % len(TARGETS)]
    members[where % len(members)] = (member, b"")


def set_id(members: Any, choice: int, _where: int) -> None:
    """Make set-id programs of all files, of root or another."""
    for member, _content in members:
        member.mode, member.uid = 0o6777, (0, 1234)[choice % 2]


def opened_folder(members: Any, choice: int, _where: int) -> None:
    """Open the folder in which the archive is unpacked to all users."""
    folder = _made((".", "./", "..", "../..")[choice % 4], type=tarfile.DIRTYPE, mode=0o6777, uid=1234)
    members.insert(0, (folder, b""))


def other_contents(members: Any, choice: int, where: int) -> None:
    """Send more or less than was planned."""
    member, content = members[where % len(members)]
    content = (b"", content[:-1], content + b"more", b"x" * 5_000_000)[choice % 4]
    member.size = len(content)
    members[where % len(members)] = (member, content)


def twice(members: Any, choice: int, where: int) -> None:
    """Send a file twice, with other contents."""
    member, _content = members[where % len(members)]
    members.insert(choice % (len(members) + 1), (_made(member.name, mode=0o4755, size=4), b"evil"))


def nothing(members: Any, _choice: int, _where: int) -> None:
    """Send an archive without a file."""
    members.clear()


ARCHIVES: dict[str, Callable[[Any, int, int], None]] = {
    f"archive: {lie.__name__}": lie
    for lie in (
        *(another_name, one_more, link_first, link_for_a_folder, another_type),
        *(set_id, opened_folder, other_contents, twice, nothing),
    )
}
BYTES: dict[str, Callable[[bytes, int, int], bytes]] = {
    "bytes: cut": lambda data, choice, _where: data[: len(data) * (choice % 5) // 5],
    "bytes: one other": lambda data, choice, where: _flip(data, where * 37, 1 << choice % 8),
    "bytes: of no archive": lambda data, _choice, _where: b"\xff" * len(data),
}
OF_FRAMES = {  # kind of message: attribute and values
    "frames: length": ("End", "size", (0, 1, 2**62, -1)),
    "frames: check": ("End", "crc", (0, 1, 2**32, -1)),
    "frames: end of another": ("End", "id", (0, 2, 2**62, -1)),
    "frames: begin of another": ("Begin", "id", (0, 2, 2**62, -1)),
    "frames: without tar": ("Begin", "tar", (False, True)),
    "frames: another file": ("Raw", "index", (0, 99, -1, 2**62)),
}


def _flip(data: bytes, position: int, bits: int) -> bytes:
    if not data:
        return data
    position %= len(data)
    return data[:position] + bytes([data[position] ^ bits]) + data[position + 1 :]


def falsified(data: bytes, name: str, choice: int, where: int) -> bytes:
    """Return an archive with a lie in it."""
    if name in BYTES:
        return BYTES[name](data, choice, where)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = [(one, (archive.extractfile(one) or io.BytesIO()).read()) for one in archive if one.isreg()]
    if members:
        ARCHIVES[name](members, choice, where)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def lie_in_archives(lies: list[tuple[str, int, int, int]]) -> None:
    """Have the source of this process falsify archives."""
    carrier = importlib.import_module(f"{UNITS}._methods.copy.tar_carrier")
    turns = iter(range(10**6))

    def relay(self: Any, fd: int, sent: Any, _meter: Any, tell: Any) -> tuple[int, int]:
        turn, data = next(turns), b""
        while True:
            piece = os.read(fd, PIECE)
            if not piece:
                break
            data += piece
        for name, due, choice, where in lies:
            if due == turn:
                data = falsified(data, name, choice, where)
        for start in range(0, len(data), PIECE):
            self._send_data(data[start : start + PIECE], sent, tell)
        return len(data), zlib.crc32(data)

    carrier.TarSource._relay = relay


def main(side: str, told: str, _ends: str, *arguments: str) -> int:
    """Lie, and be an end."""
    stream = importlib.import_module(f"{COLLECTION}.tests.support.lying_stream")
    with open(arguments[0], encoding="utf-8") as request:
        identity = json.load(request)["settings"]["id"].encode()
    for name, (kind, field, values) in OF_FRAMES.items():
        stream.LIES["source"][name] = (kind, stream._attribute(field, *values))
    lies = json.loads(told)
    lie_in_archives([one for one in lies if one[0] in ARCHIVES or one[0] in BYTES])
    stream.lie(side, [one for one in lies if one[0] in stream.LIES[side]], identity)
    importlib.import_module(f"{COLLECTION}.tests.support.unconfined").unconfine()
    ends = importlib.import_module(f"{COLLECTION}.tests.unit.plugins.module_utils._engine.ends")
    return int(ends.main(*arguments))


if __name__ == "__main__":
    del sys.path[0]  # this folder
    sys.exit(main(*sys.argv[1:]))
