# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The protocol of rcp, which every scp speaks, as bytes: no I/O.

The sender says a line for each folder (``D0755 0 NAME``) and file (``C0644 SIZE NAME``), and ``E`` at the end of a
folder. After a file's line come its bytes and a zero. The receiver acknowledges the beginning, each line and each file
by a zero. Either says instead of a zero what went wrong: a byte 1, or 2 where it gives up, and a line.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Union

from .protocol_error import ProtocolError

OK = b"\0"
END = b"E\n"
MAX_LINE = 2048  # bytes; OpenSSH's own limit
MAX_SIZE = (1 << 63) - 1
_RECORD = re.compile(rb"([CD])[0-7]{4} (0|[1-9][0-9]{0,18}) ([^/]+)")


class Folder(NamedTuple):
    """What follows is in a folder."""

    name: bytes


class File(NamedTuple):
    """So many bytes of a file follow, and an answer."""

    size: int
    name: bytes


class End(NamedTuple):
    """The folder is complete."""


class Complaint(NamedTuple):
    """Something went wrong at the peer."""

    text: bytes


Record = Union[Folder, File, End, Complaint]


def parse_record(line: bytes) -> Record:
    """Return what a line says, which comes without its line feed. Raises ProtocolError."""
    if line == END[:-1]:
        return End()
    if line[:1] in (b"\1", b"\2"):
        return Complaint(line[1:])
    found = _RECORD.fullmatch(line)
    if found is None:
        raise ProtocolError(f"a line that is none of scp's: {line[:100]!r}")
    kind, size, name = found.groups()
    if int(size) > MAX_SIZE:
        raise ProtocolError(f"a file of {size.decode()} bytes")
    return Folder(name) if kind == b"D" else File(int(size), name)


def folder_line(name: bytes) -> bytes:
    """Return what begins a folder, which only its owner may enter."""
    return b"D0700 0 %s\n" % name


def file_line(size: int, name: bytes) -> bytes:
    """Return what comes before a file's bytes."""
    return b"C0600 %d %s\n" % (size, name)


def complaint(text: str) -> bytes:
    """Return what takes the place of a zero if something went wrong."""
    return b"\1longhaul: %s\n" % text.replace("\n", " ").encode("utf-8", "replace")[: MAX_LINE // 2]
