# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of rsync as it comes.

Lines, not text, are kept: ten million changed files must not pile up. rsync escapes control characters in names
(``\\#012``, and a backslash that could be mistaken for such an escape as ``\\#134``), so a line of output is one line,
and the prefix that ``--out-format`` sets marks those which are about an entry.
"""

from __future__ import annotations

import collections
import os
import re
from typing import Callable, NamedTuple

TAIL_LINES = 40  # of standard error, kept for the result
_LONGEST_LINE = 1 << 20  # bytes: what is longer is no output of rsync

# rsync ends a line of progress only when more progress follows: anything else may be glued to it.
_PROGRESS = re.compile(
    rb"^\s*(?P<bytes>[\d,]+)\s+\d+%\s+\S+/s\s+[\d?]+:[\d?]+:[\d?]+ ?"
    rb"(?:\(xfr#\d+, (?:ir|to)-chk=(?P<left>\d+)/(?P<total>\d+)\)| ?)(?P<rest>.*)$",
    re.DOTALL,
)
_STATISTIC = re.compile(rb"^(?P<name>[A-Z][A-Za-z0-9 ]+): (?P<number>[\d,]+)")
_ESCAPE = re.compile(rb"\\#(\d{3})")
_ITEM = re.compile(rb"^(?P<flags>\S.{10}) (?P<size>\d+) (?P<path>.*)$", re.DOTALL)

_SKIPPED = re.compile(r"^skipping (?P<what>non-regular file|directory) (?P<path>.+)$")
IN_THE_WAY = "cannot delete non-empty directory: the source has something else here"
_QUOTED = re.compile(r'^(?P<what>[^"]*)"(?P<path>.*)"(?P<why>[^"]*)$')
_MOVED = re.compile(r'^(?P<verb>rename|copy) ".*"(?: \(in [^()"]*\))? -> "(?P<path>.*)"(?P<why>[^"]*)$')
_ATTRIBUTE = re.compile(r'"(?: \(in [^()"]*\))?,"[^"]*$')  # lsetxattr("path" (in module),"name")
_ACL = re.compile(r"\b(?:sys_)?acl_\w+\((?P<path>.*), ACL_TYPE_\w+\): ")
_UNVERIFIED = re.compile(r"^ERROR: (?P<path>.*) failed verification -- update (?:discarded|put|retained)")
_IN_THE_WAY = re.compile(r"^could not make way for (?:new )?[\w -]+: (?P<path>.*)$")
_VANISHED = re.compile(r'^(?:\[\w+\] )?(?:file|directory) has vanished: "?(?P<path>.*?)"?$')
_REFUSED_FILE = re.compile(r'^(?:\[\w+\] )?ERROR: daemon refused to receive \w+ "(?P<path>.*)"$')
_GENERAL = ("server sent ", "failed to open log-file", "password file", "could not open password")  # quoted, no entry
_TOO_LONG = re.compile(r"^filename overflows max-path len by \d+: (?P<path>.*)$")
_ROLE = re.compile(r"^\[\w+\] ")


class Item(NamedTuple):
    """One line of ``--out-format=%i %l %n``: what was done to one entry."""

    flags: str  # the 11 characters of %i; "*deleting  " for a deletion
    path: bytes  # relative to the root; a directory without its slash; the root itself b""
    is_directory: bool
    size: int = 0

    @property
    def is_sent(self) -> bool:
        """Whether it is a file whose content goes from one host to the other."""
        return self.flags[0] in "<>" and self.flags[1] == "f"

    @property
    def kind(self) -> str:
        """One of created, updated, attributes, deleted."""
        if self.flags.startswith("*deleting"):
            return "deleted"
        if self.flags[2:].startswith("+++"):
            return "created"
        # "." says that no content moved; of links and special files only a new target is an update (c).
        return "attributes" if self.flags[0] in ".h" and self.flags[2] != "c" else "updated"

    @property
    def only_time(self) -> bool:
        """Whether nothing but a modification time was set."""
        return self.flags[0] == "." and self.flags[4] in "tT" and not self.flags[2:].strip(". tT")


class RsyncPathError(NamedTuple):
    """What standard error says about one path."""

    kind: str  # "error", "vanished", "in the way", "unstable"
    path: str
    reason: str


def unescape(text: bytes) -> bytes:
    """Return the name that rsync escaped for its output."""
    return _ESCAPE.sub(lambda found: bytes([int(found.group(1), 8) & 0xFF]), text)


def parse_item(line: bytes) -> Item:
    """Read a line of ``--out-format`` (its prefix taken off); raise ValueError if it is none."""
    found = _ITEM.match(line)
    if not found:
        raise ValueError(f"not an itemized line: {line[:200]!r}")
    name = unescape(found.group("path"))
    path = name.rstrip(b"/")
    return Item(
        found.group("flags").decode("ascii", "replace"),
        b"" if path == b"." else path,
        name.endswith(b"/"),
        int(found.group("size")),
    )


class OutputReader:
    """Eats standard output in pieces of any size; hands on items and progress, keeps statistics and the odd lines."""

    def __init__(
        self,
        prefix: str,
        on_item: Callable[[Item], None],
        on_progress: Callable[[int, int, int], None] = lambda _bytes, _done, _total: None,
    ) -> None:
        """``on_progress`` gets bytes that went by, entries checked, entries known so far."""
        self.statistics: dict[str, int] = {}
        self.remarks: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)  # all other lines
        self.skipped_special = 0
        self.deletes_skipped = False  # rsync saw a read error and deleted nothing
        self._prefix, self._on_item, self._on_progress = prefix.encode(), on_item, on_progress
        self._rest = b""
        self._entries = (0, 0)

    def feed(self, data: bytes) -> None:
        """Take the next bytes; an empty piece ends the output."""
        lines = re.split(rb"[\r\n]", self._rest + data)
        self._rest = lines.pop()[:_LONGEST_LINE] if data else b""
        for line in lines:
            if line:
                self._line(line)

    def _line(self, line: bytes) -> None:
        if line.startswith(self._prefix):
            self._on_item(parse_item(line[len(self._prefix) :]))
            return
        progress = _PROGRESS.match(line)
        if progress:
            if progress.group("total"):
                total = int(progress.group("total"))
                self._entries = (total - int(progress.group("left")), total)
            self._on_progress(_number(progress.group("bytes")), *self._entries)
            if progress.group("rest"):
                self._line(progress.group("rest"))
            return
        statistic = _STATISTIC.match(line)
        if statistic:
            self.statistics[statistic.group("name").decode()] = _number(statistic.group("number"))
            return
        text = _readable(line)
        if "IO error encountered -- skipping file deletion" in text:
            self.deletes_skipped = True
        elif _SKIPPED.match(text):
            self.skipped_special += 1
            self.remarks.append(text)
        elif not line.startswith((b"sent ", b"total size is ", b"cannot delete non-empty directory: ")):
            self.remarks.append(text)


class ErrorReader:
    """Eats standard error; hands on what is said about paths, keeps the last lines and those about the whole."""

    def __init__(self, on_path: Callable[[RsyncPathError], None]) -> None:
        self.tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
        self.general: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
        self._on_path = on_path
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take the next bytes; an empty piece ends the output."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()[:_LONGEST_LINE] if data else b""
        for line in lines:
            if line.strip():
                self._line(_readable(line.rstrip(b"\r")))

    def _line(self, text: str) -> None:
        self.tail.append(text)
        found = read_error(text)
        if found:
            self._on_path(found)
        else:
            self.general.append(text)


def read_error(text: str) -> RsyncPathError | None:
    """Read one line of standard error as something about one path; None if it is about the whole run."""
    said = text[len("rsync: ") :] if text.startswith("rsync: ") else text
    vanished = _VANISHED.match(said)
    if vanished:
        return RsyncPathError("vanished", _path(vanished.group("path")), "vanished")
    in_the_way = _IN_THE_WAY.match(_ROLE.sub("", said))
    if in_the_way:
        return RsyncPathError("in the way", _path(in_the_way.group("path")), IN_THE_WAY)
    too_long = _TOO_LONG.match(said)
    if too_long:
        reason = "its path is longer than rsync can handle (4096 bytes): method tar_nc can, or give src further down"
        return RsyncPathError("error", _path(too_long.group("path")), reason)
    refused = _REFUSED_FILE.match(said)
    if refused:
        return RsyncPathError(
            "error", _path(refused.group("path")), "the daemon's module excludes it (its exclude or filter)"
        )
    unverified = _UNVERIFIED.match(text)
    if unverified:
        return RsyncPathError(
            "unstable", _path(unverified.group("path")), "changed while it was sent, or damaged on the way"
        )
    plain = _ROLE.sub("", said)
    if not text.startswith("rsync: ") or any(word in plain for word in _GENERAL):
        return None
    acl = _ACL.search(plain)
    if acl:
        return RsyncPathError("error", _path(acl.group("path")), plain)
    moved = _MOVED.match(plain)
    if moved:  # from a temporary name, which tells nobody anything
        return RsyncPathError("error", _path(moved.group("path")), f"{moved.group('verb')} failed{moved.group('why')}")
    quoted = _QUOTED.match(plain)
    if not quoted:
        return None
    path = _ATTRIBUTE.sub("", quoted.group("path"))
    return RsyncPathError("error", _path(path), plain)


def _path(escaped: str) -> str:
    return os.fsdecode(unescape(os.fsencode(escaped)))


def _readable(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")


def _number(text: bytes) -> int:
    return int(text.replace(b",", b""))
