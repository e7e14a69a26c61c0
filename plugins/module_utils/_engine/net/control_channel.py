# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One connection that carries frames both ways: the I/O around its lane of the conversation."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import sys
import threading
import time
from typing import Iterator

from ..._core import time_accounting
from ..wire.conversation import Conversation, Lane, Said
from ..wire.frames import DamagedFrame, Payload
from ..wire.messages import Bye, PaceMessage, Ping

READ_BYTES = 256 << 10
PIPE_BYTES = 1 << 20
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ of <linux/fcntl.h>; Python's fcntl names it from 3.10 on
_PATIENCE = 500  # milliseconds between two looks at whether the connection was given up


def enlarge_pipe(fd: int) -> None:
    """Let a pipe hold more, so that its two ends need not take turns; does nothing for what is no pipe."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, _SET_PIPE_SIZE, PIPE_BYTES)


class ChannelBroken(Exception):
    """The connection is of no use any more; the text says what happened to it."""


class Channel:
    """Messages over a pair of file descriptors, which it owns; any thread may send, one receives.

    It counts as broken when nothing at all (not even a ping) arrives for ``timeout`` seconds, when it ends before the
    peer said goodbye, when something arrives that no frame is, and when ``abort`` is called. ``join`` comes first.
    """

    _lane: Lane

    checks = True  # whether frames carry a check

    def __init__(
        self, reader: int, writer: int, timeout: float, send_key: bytes | None = None, receive_key: bytes | None = None
    ) -> None:
        self._reader, self._writer, self._timeout = reader, writer, timeout
        self._keys = send_key, receive_key
        self._lock = threading.Lock()
        self._broken = ""
        self.moved_at = time.monotonic()  # when something arrived that is more than a sign of an idle life
        self._closed = False
        for fd in sorted({reader, writer}):
            os.set_blocking(fd, False)
            enlarge_pipe(fd)

    def join(self, conversation: Conversation) -> None:
        """Become the next connection of a conversation."""
        self._lane = conversation.lane(*self._keys, self.checks)

    def send(self, message: Said) -> None:
        """Send a message, waiting while the peer is slow; raises ChannelBroken, and TransferFailed for one too many."""
        with self._lock:
            self._write_all(self._lane.parts(message))

    def ping(self, works: bool) -> None:
        """Send a keep-alive to the peer, unless something is being sent anyway; ``works`` says what this end does."""
        self.mention(Ping(works))

    def mention(self, message: Ping | PaceMessage) -> bool:
        """Send what may be said at any time, unless something is being sent, or all is said; return whether it was."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._lane.is_over:
                return False
            self._write_all(self._lane.parts(message))
            return True
        finally:
            self._lock.release()

    def _write_all(self, parts: tuple[Payload, ...]) -> None:
        left = [memoryview(part) for part in parts if part]
        while left:
            self.check()
            try:
                written = self._write_some(left)
            except BlockingIOError:
                before = time_accounting.switch(time_accounting.SEND)
                self._wait(self._writer, select.POLLOUT)
                time_accounting.switch(before)
                continue
            except OSError as error:
                raise self._fail(f"the connection was lost while sending ({error.strerror})") from error
            while left and written >= len(left[0]):
                written -= len(left.pop(0))
            if left:
                left[0] = left[0][written:]

    def _write_some(self, parts: list[memoryview]) -> int:
        """Write as much as goes at once; raise BlockingIOError if nothing does."""
        return os.writev(self._writer, parts)

    def _read_some(self, room: memoryview) -> int:
        """Read what is there, 0 at the end; raise BlockingIOError if nothing is."""
        return os.readv(self._reader, [room])

    def receive(self) -> Iterator[Said]:
        """Yield what arrives until the peer says goodbye; raises ChannelBroken.

        Raises FrameError for what the peer may not say; what it says then is dropped by another call.
        """
        last = time.monotonic()
        while True:
            self.check()
            if not self._wait(self._reader, select.POLLIN):
                self._check_silence(last)
                continue
            try:
                with self._lane.get_buffer() as room:
                    count = self._read_some(room)
            except BlockingIOError:  # the beginning of a record of TLS
                self._check_silence(last)
                continue
            except OSError as error:
                raise self._fail(f"the connection was lost while receiving ({error.strerror})") from error
            if not count:
                raise self._fail("the connection ended before the peer had said goodbye")
            idle_before, has_news = self._lane.idle_pings, False
            try:
                for message in self._lane.buffer_updated(count):
                    has_news = True
                    if isinstance(message, Bye):
                        return
                    yield message
            except DamagedFrame as error:
                raise self._fail(str(error)) from error
            last = time.monotonic()
            if has_news or self._lane.idle_pings == idle_before:
                self.moved_at = last

    def _check_silence(self, since: float) -> None:
        """Raise ChannelBroken if nothing whole has arrived for too long."""
        if time.monotonic() - since > self._timeout:
            raise self._fail(f"nothing arrived from the peer for {self._timeout:.0f} seconds")

    def fileno(self) -> int:
        """Return the descriptor that it sends through."""
        return self._writer

    def reuse(self, payload: Payload) -> None:
        """Take back what was received, which nobody may look at any more."""
        self._lane.reuse(payload)

    def abort(self, reason: str) -> None:
        """Let everybody who sends or receives here stop within a second."""
        self._broken = self._broken or reason

    def close(self) -> None:
        """Close the file descriptors; nobody may be sending or receiving any more."""
        self.abort("it was closed")
        if not self._closed:
            self._closed = True
            for fd in sorted({self._reader, self._writer}):
                with contextlib.suppress(OSError):
                    os.close(fd)

    def check(self) -> None:
        """Raise ChannelBroken if it is."""
        if self._broken:
            raise ChannelBroken(self._broken)

    def _fail(self, reason: str) -> ChannelBroken:
        self.abort(reason)
        return ChannelBroken(self._broken)

    def _wait(self, fd: int, event: int) -> bool:
        poll = select.poll()
        poll.register(fd, event)
        return bool(poll.poll(_PATIENCE))
