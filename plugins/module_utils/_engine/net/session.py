# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The connections of one conversation and the threads that listen to them."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from typing import Any, Callable, Iterator

from ..._core import time_accounting
from ..._core.context import Context
from ..._core.errors import TransferFailed
from ..wire.frames import VERSION, Frame, FrameError, FrameKind, Payload
from ..wire.messages import dump_hello, dump_reason, parse_message, parse_reason
from .control_channel import Channel, ChannelBroken

PING_SECONDS = 5.0
_FAREWELL = 3.0  # seconds for the other end to hear why this one gives up
_PINGS = 8  # at least, within the timeout: half of it is how long silence may last


class SessionLost(TransferFailed):
    """The other end cannot be heard any more. It may be spoken to again over a new connection."""


OnFrame = Callable[[int, Frame], None]


class Session:
    """Messages to and from the other end. Connection 0 carries the decisions, and all of them contents.

    What arrives is handed to ``on_frame(stream, frame)`` in the connection's own thread; what goes wrong there, or with
    the connection, comes out of ``next_event`` as TransferFailed in the thread that leads the conversation.
    """

    def __init__(self, context: Context, channels: list[Channel]) -> None:
        self._context = context
        self.channels = channels
        timeout = float(context.settings["timeout"])
        self._ping_seconds = min(PING_SECONDS, timeout / _PINGS) if timeout else PING_SECONDS
        self._events: queue.Queue[Any] = queue.Queue()
        self._threads: list[threading.Thread] = []
        self._over = threading.Event()
        self._gives_up = False

    def start(self, on_frame: OnFrame) -> None:
        """Begin to listen."""
        for number, channel in enumerate(self.channels):
            self._spawn(self._listen, number, channel, on_frame)
        self._spawn(self._ping)

    def _spawn(self, target: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _listen(self, number: int, channel: Channel, on_frame: OnFrame) -> None:
        try:
            for frame in channel.receive():
                if frame.type == FrameKind.FAILED:
                    raise TransferFailed(parse_reason(frame.payload))
                if not self._gives_up:
                    on_frame(number, frame)
        except ChannelBroken as error:
            self.put(_broken_off(error))
        except FrameError as error:
            self.put(impossible(error))
        except Exception as error:
            self.put(error)

    def _ping(self) -> None:
        while not self._over.wait(self._ping_seconds):
            for channel in self.channels:
                with contextlib.suppress(ChannelBroken):
                    channel.ping()

    def send(self, kind: FrameKind, payload: Payload = b"", stream: int = 0) -> None:
        """Send a message; raises TransferFailed where the other end is lost."""
        try:
            self.channels[stream].send(kind, payload)
        except ChannelBroken as error:
            raise _broken_off(error) from error

    def put(self, event: Any) -> None:
        """Hand something to the thread that leads; an exception will be raised there."""
        self._events.put(event)

    def next_event(self, wait: bool = True, waiting: str = time_accounting.ANSWER) -> Any:
        """Give the next event; None where there is none and ``wait`` is false. ``waiting`` is what it waits for."""
        while True:
            if self._context.stop.is_set():
                raise TransferFailed("the transfer was told to stop; run it again and it goes on")
            before = time_accounting.switch(waiting) if wait and self._events.empty() else None
            try:
                event = self._events.get(block=wait, timeout=0.5 if wait else None)
            except queue.Empty:
                if wait:
                    continue
                return None
            finally:
                if before is not None:
                    time_accounting.switch(before)
            if isinstance(event, BaseException):
                raise event
            return event

    def fail(self, reason: str) -> None:
        """Tell the other end that this one gives up, and why; waits some seconds at most.

        What the other end is sending goes on being read until it has heard, and hangs up: a connection that is closed
        before that takes the last words with it, and the other end would connect again.
        """
        self._gives_up = True
        sender = threading.Thread(target=self._send_failure, args=(reason,), daemon=True)
        sender.start()
        until = time.monotonic() + _FAREWELL
        for thread in (sender, *self._threads[: len(self.channels)]):
            thread.join(max(0.0, until - time.monotonic()))

    def _send_failure(self, reason: str) -> None:
        with contextlib.suppress(ChannelBroken, FrameError):
            self.channels[0].send(FrameKind.FAILED, dump_reason(reason))

    @contextlib.contextmanager
    def failures_told(self) -> Iterator[None]:
        """Tell the peer of what ends the conversation here. Raises TransferFailed for a FrameError, too."""
        try:
            yield
        except TransferFailed as error:
            self.fail(str(error))
            raise
        except FrameError as error:
            self.fail(str(error))
            raise impossible(error) from error

    def abort(self, reason: str) -> None:
        """Let the conversation end here and now, from any thread."""
        for channel in self.channels:
            channel.abort(reason)

    def goodbye(self) -> None:
        """Say that this end has nothing more to say, on every connection, and wait for the same from the other end."""
        for number in range(len(self.channels)):
            with contextlib.suppress(TransferFailed):
                self.send(FrameKind.BYE, stream=number)
        for thread in self._threads[: len(self.channels)]:
            thread.join(10)

    def close(self) -> None:
        """End all threads and give the connections back."""
        self._over.set()
        for channel in self.channels:
            channel.abort("the conversation is over")
        for thread in self._threads:
            thread.join()
        for channel in self.channels:
            channel.close()


def impossible(error: FrameError) -> TransferFailed:
    """Say that the other end is not what it seems."""
    return TransferFailed(
        f"the other end sent what no other end sends: {error}. The two run different versions, or something on the way "
        "changes data. What is in place stays"
    )


def _broken_off(error: Exception) -> SessionLost:
    return SessionLost(
        f"the conversation with the other host broke off: {error}. That end was killed or restarted, or the network "
        "failed. What is in place stays: run the task again, it goes on where it stopped"
    )


def hello(context: Context) -> bytes:
    """Give the first message of either end."""
    return dump_hello(VERSION, context.settings["id"], bool(context.settings["check"]))


def check_hello(context: Context, payload: bytes) -> None:
    """Raise TransferFailed unless the other end means the same transfer."""
    if parse_message(payload) != parse_message(hello(context)):
        raise TransferFailed(
            "the two ends do not mean the same transfer, or run different versions of this collection: run it again"
        )
