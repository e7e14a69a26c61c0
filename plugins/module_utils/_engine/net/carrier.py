# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carriers of the contents of files between the two ends; each method has its own."""

from __future__ import annotations

import os
from typing import Any, Callable, Collection, Iterable, NamedTuple, Sequence

from ..._core.context import Progress
from ..._model.entry import Entry
from ..wire.conversation import Said
from ..wire.messages import Shard, Want

_SAID = 4000  # characters of what programs print that are kept

Send = Callable[[Said], None]


class FileRequest(NamedTuple):
    """One file whose content is sent."""

    index: int  # type: ignore[assignment]  # in its shard; tuple's index is hidden
    entry: Entry
    have: int  # bytes that the destination has of it already
    ranges: list[tuple[int, int]] | None = (
        None  # (start, end) of what should be sent, where that is not all behind have
    )
    known: Any = None  # what the destination says of an old version, from which parts can be taken

    @property
    def missing(self) -> int:
        """Upper bound of what the destination still lacks of the file, in bytes without holes."""
        ranges = [(self.have, self.entry.size)] if self.ranges is None else self.ranges
        return min(self.entry.content, sum(end - start for start, end in ranges))


class FileOffer(NamedTuple):
    """One file whose content is about to be asked for, and what is in its place."""

    index: int  # type: ignore[assignment]  # as above
    entry: Entry
    found: Entry | None  # a regular file, if there is one
    keeps_owner: bool  # or it is to belong to somebody else


class SendResult:
    """Result of sending a shard's contents, at the source."""

    def __init__(self, content: int = 0, count: int = 0) -> None:
        self.content = content  # bytes of file contents that travelled, without holes
        self.bytes = count  # that went over the wire for them, packed if they were
        self.problems: dict[int, str] = {}  # by index: why a file could not be read
        self.doubtful = False  # the program complained: the contents are compared by their hashes


class Meter:
    """Counts the contents of a file, or of a shard's files, into the progress while they are sent, and no more.

    ``carried``: bytes that go by for them, if holes are among those.
    """

    def __init__(self, progress: Progress, content: int, carried: int | None = None) -> None:
        self._progress, self._content = progress, content
        self._carried = content if carried is None else carried
        self._seen = self._counted = 0

    def moved(self, count: int) -> None:
        """So many bytes went by, packed or not."""
        self._seen = min(self._carried, self._seen + count)
        self._count(self._content * self._seen // self._carried if self._carried else 0)

    def end(self) -> None:
        """All of it went by."""
        self._seen = self._carried
        self._count(self._content)

    def _count(self, content: int) -> None:
        self._progress.moved(content - self._counted)
        self._counted = content


class _Carrier:
    """What both halves keep of the programs that they run."""

    argv: Sequence[str] = ()  # what was run at last, for the report
    said: str = ""  # the last lines that the programs printed

    def heard(self, text: str) -> None:
        """Keep what a program printed, the last of it."""
        self.said = "\n".join(part for part in (self.said, text.strip()) if part)[-_SAID:]


class SourceCarrier(_Carrier):
    """The source's half. ``send`` is called by several threads, each with its own ``stream`` number."""

    def send(self, stream: int, shard: int, files: list[FileRequest], tell: Send) -> SendResult:
        """Send the files, and return when the destination has them, or could have. Raises TransferFailed."""
        raise NotImplementedError

    def hashes(self, _entries: list[Entry]) -> list[str]:
        """Return how this host can hash blocks of files, where that may be asked of it."""
        return []

    def fetched(self, shard: int) -> None:
        """The destination says that it has fetched the shard's files. Only where it runs the program."""

    def close(self) -> None:
        """End what runs."""


class ShardFiles:
    """A shard's files as they arrived, each somewhere below the staging folder."""

    trouble: str = ""  # what the program complained about; explains files that are missing or short
    matched: int = 0  # bytes that were taken from what was there
    # Of those, in the files that ``locate`` has found: how many, and how many share their space on the disk with it.
    from_basis: int = 0
    shared: int = 0
    # To whom a file must belong, under one name; empty if the source has no hand in the folder. Whoever it let into
    # the folder can have put a name of a foreign file there, which must not be changed.
    owners: Collection[int] = ()

    def locate(self, index: int) -> tuple[int, bytes]:
        """Return the fd of the directory in which a file arrived, and its name there; raise OSError if it did not."""
        raise NotImplementedError

    def status(self, _index: int, folder_fd: int, name: bytes) -> os.stat_result:
        """Return what is at the place where a file arrived; raise OSError."""
        return os.stat(name, dir_fd=folder_fd, follow_symlinks=False)

    def content(self, _index: int) -> memoryview | None:
        """Return the whole content of a file that arrived in memory; None for one that is to be located."""
        return None

    def close(self) -> None:
        """Remove what is left of the shard, but for what a rerun can resume."""


class DestCarrier(_Carrier):
    """The destination's half."""

    resumed: bool = False  # whether something of an earlier run was of use

    def offer(self, shard: Shard, files: list[FileOffer], older: Callable[[Entry], Iterable[Any]]) -> None:
        """Take note of files that are about to be asked for, of which an older version may help.

        ``older``: yields where there may be one, beside the place of the file.
        """

    def expect(self, shard: int, files: list[tuple[int, Entry]]) -> dict[int, int]:
        """Make room for files that are about to be asked for; gives, by index, how much of a file is there already."""
        raise NotImplementedError

    def ranges(self, _shard: int) -> dict[int, list[tuple[int, int]]]:
        """Return, by index, the missing parts of partial files; called after ``expect``."""
        return {}

    def ask(self, message: Want, send: Callable[[Want], None]) -> None:
        """Send the message that asks for a shard's contents: now, or later in a thread, with more in it."""
        send(message)

    def take(self, stream: int, message: Said) -> None:
        """Take BEGIN, RAW, END or contents. Called by the stream's reading thread."""

    def fetch(self, shard: int) -> None:
        """Run the program that fetches a shard's files. Only where the destination runs it; in a thread."""
        raise NotImplementedError

    def collect(self, shard: int) -> ShardFiles:
        """Return what arrived of a shard whose contents have all left the source. Raises TransferFailed."""
        raise NotImplementedError

    def close(self) -> None:
        """End what runs."""
