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
from ..._core.errors import PeerLost, TransferFailed
from ..._model.ticket import FREE, Ticket
from ..wire.conversation import Contents, Conversation, Role, Said, window_for
from ..wire.frames import VERSION, FrameError
from ..wire.messages import Bye, FailedMessage, Hello, PaceMessage, shorten
from .control_channel import Channel, ChannelBroken
from .ticket_file import PEER, POLL, Tickets, write_ticket

PING_SECONDS = 5.0
_FAREWELL = 3.0  # seconds for the peer to hear why this one gives up
_WAITING = 10_000  # events for the leading thread, from the peer or its own others; each is small
_STOPPED = "the transfer was told to stop; run it again and it goes on"
_PINGS = 8  # at least, within the timeout: half of it is how long silence may last


class SessionLost(PeerLost):
    """The peer is lost. A new connection may reach it again."""


OnMessage = Callable[[int, Said], None]


class WireSession:
    """Messages to and from the peer. Connection 0 carries the decisions, and all of them contents.

    What arrives is handed to ``on_message(stream, message)`` in the connection's own thread; what goes wrong there, or
    with the connection, comes out of ``next_event`` as TransferFailed in the thread that leads the conversation. The
    peer's greeting is checked here. Nobody waits for it, since on a long line that would cost a round trip.
    """

    def __init__(self, context: Context, channels: list[Channel], contents: Contents) -> None:
        self._context = context
        self.channels = channels
        self.window = window_for(contents, int(context.settings["streams_max"]))  # shards that may be under way
        conversation = Conversation(Role(context.side), contents, self.window)
        for channel in channels:
            channel.join(conversation)
        timeout = float(context.settings["timeout"])
        self._timeout = timeout
        self._ping_seconds = min(PING_SECONDS, timeout / _PINGS) if timeout else PING_SECONDS
        self._events: queue.Queue[Any] = queue.Queue()
        self._threads: list[threading.Thread] = []
        self._over = threading.Event()
        self._gives_up = False
        self._moved_at = time.monotonic()  # when this end, or its peer, had done something
        self._seen = 0  # of the progress
        self._stalled: TransferFailed | None = None
        self._refused: TransferFailed | None = None  # why this end takes nothing more from its peer
        self.tickets = Tickets(context.folder, context.log)
        self._told = self._kept = self._peer_ticket = FREE  # what the peer knows of ours; its own, written and heard

    def start(self, on_message: OnMessage) -> None:
        """Greet the peer, and begin to listen."""
        self._keep_peer_ticket(FREE)  # of an earlier conversation
        self.send(self._hello())
        for number, channel in enumerate(self.channels):
            self._spawn(self._listen, number, channel, on_message)
        self._spawn(self._ping)

    def _spawn(self, target: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _listen(self, number: int, channel: Channel, on_message: OnMessage) -> None:
        is_over = False
        while not is_over:
            is_over = True
            try:
                for message in channel.receive():
                    if isinstance(message, FailedMessage):
                        raise TransferFailed(message.reason)
                    if isinstance(message, PaceMessage):
                        self._peer_ticket = message.ticket
                    elif isinstance(message, Hello):
                        self._check_hello(message)
                    elif not self._gives_up:
                        if self._events.qsize() > _WAITING:
                            raise FrameError("more arrived than anybody asked for")
                        on_message(number, message)
            except ChannelBroken as error:
                self.put(_broken_off(error))
            except FrameError as error:
                self._refused = self._refused or impossible(error)
                self.put(self._refused)
                self._gives_up = True
                is_over = False  # it goes on being read until the peer has heard why, see fail
            except Exception as error:
                self.put(error)

    def _ping(self) -> None:
        looked = time.monotonic()
        while not self._over.wait(min(POLL, self._ping_seconds)):
            self._exchange_tickets()
            if time.monotonic() - looked < self._ping_seconds:
                continue
            works = self._works() or self.tickets.read().paused  # which lasts no longer than the timeout
            before, looked = looked, time.monotonic()
            was_stopped = looked - before > self._timeout / 2  # so that it has not read what came meanwhile
            for channel in self.channels:
                with contextlib.suppress(ChannelBroken):
                    channel.ping(works)
            if works or was_stopped:
                self._moved_at = looked
            self._moved_at = max(self._moved_at, *(channel.moved_at for channel in self.channels))
            if self._timeout and looked - self._moved_at > self._timeout and not self._gives_up:
                self._give_up()

    @property
    def has_stalled(self) -> bool:
        """Whether this end gave up, since nothing happened any more."""
        return self._stalled is not None

    def _works(self) -> bool:
        """Return whether this end is at work, or was since it was last asked, and does not just wait for its peer."""
        progress = self._context.progress
        seen, self._seen = self._seen, progress.bytes_done + progress.files_done
        return self._seen != seen or time_accounting.is_at_work()

    def _give_up(self) -> None:
        """End a conversation in which nothing happens, although the peer goes on saying that it lives."""
        self._stalled = TransferFailed(
            f"nothing was transferred for {self._timeout:.0f} seconds: the other host answers, but does not do what "
            "this one waits for. Look at its processes, and whether it can read and write its tree; raise timeout if "
            "it needs longer. What is in place stays: run the task again to resume"
        )
        self.put(self._stalled)
        if not self._over.wait(_FAREWELL):  # else whoever leads waits for the peer to take what it sends
            self.abort(str(self._stalled))

    def _exchange_tickets(self) -> None:
        own, heard = self.tickets.own.read(), self._peer_ticket
        with contextlib.suppress(ChannelBroken):
            if own != self._told and self.channels[0].mention(PaceMessage(own)):
                self._told = own
        if heard != self._kept:
            self._keep_peer_ticket(heard)

    def _keep_peer_ticket(self, ticket: Ticket) -> None:
        """Let all processes of this end know what the peer was told."""
        try:
            write_ticket(self._context.folder, PEER, ticket)
            self._kept = ticket
        except OSError as error:
            self._context.log(f"the ticket of the peer cannot be kept: {error.strerror}")

    def check(self) -> None:
        """Raise TransferFailed if the peer is lost, or this end was told to stop."""
        if self._context.stop.is_set():
            raise stopped(self._context)
        try:
            self.channels[0].check()
        except ChannelBroken as error:
            raise self._why_lost(error) from error

    def send(self, message: Said, stream: int = 0) -> None:
        """Send a message; raise TransferFailed if the peer is lost."""
        try:
            self.channels[stream].send(message)
        except ChannelBroken as error:
            raise self._why_lost(error) from error

    def _why_lost(self, error: ChannelBroken) -> TransferFailed:
        """Return why the conversation ended: what this end refused counts more than that the peer then hung up."""
        return self._stalled or self._refused or _broken_off(error)

    def put(self, event: Any) -> None:
        """Hand something to the thread that leads; an exception will be raised there."""
        self._events.put(event)

    def next_event(self, wait: bool = True, waiting: str = time_accounting.ANSWER) -> Any:
        """Return the next event; None if there is none and ``wait`` is false. ``waiting`` is what it waits for."""
        while True:
            if self._context.stop.is_set():
                raise stopped(self._context)
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
                raise self._stalled or event
            return event

    def _hello(self) -> Hello:
        settings = self._context.settings
        return Hello(VERSION, settings["id"], bool(settings["check"]))

    def _check_hello(self, greeting: Hello) -> None:
        """Raise TransferFailed unless the peer means the same transfer."""
        if greeting.dump() != self._hello().dump():
            raise TransferFailed(
                "the two ends do not mean the same transfer, or run different versions of this collection: run it again"
            )

    def fail(self, reason: str) -> None:
        """Tell the peer that this side gives up, and why; wait at most some seconds.

        Data from the peer is still read until it has received this, and hangs up: a connection that is closed
        earlier loses the last message, and the peer would connect again.
        """
        self._gives_up = True
        sender = threading.Thread(target=self._send_failure, args=(reason,), daemon=True)
        sender.start()
        until = time.monotonic() + _FAREWELL
        for thread in (sender, *self._threads[: len(self.channels)]):
            thread.join(max(0.0, until - time.monotonic()))

    def _send_failure(self, reason: str) -> None:
        with contextlib.suppress(ChannelBroken, FrameError, TransferFailed):
            own = self.tickets.own.read()
            if own != self._told:  # where it ends since it was cancelled, the peer must not wait for it
                self.channels[0].send(PaceMessage(own))
            self.channels[0].send(FailedMessage(reason))

    @contextlib.contextmanager
    def failures_told(self) -> Iterator[None]:
        """Tell the peer why the session ends here. Raise TransferFailed for a FrameError, too."""
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
        """Say goodbye on every connection, and wait for the peer's goodbye."""
        for number in range(len(self.channels)):
            with contextlib.suppress(TransferFailed):
                self.send(Bye(), number)
        for thread in self._threads[: len(self.channels)]:
            thread.join(10)

    def close(self) -> None:
        """End all threads and give the connections back."""
        self._over.set()
        for channel in self.channels:
            channel.abort("the conversation is over")
        for thread in self._threads:
            thread.join()
        if self._peer_ticket != self._kept:  # it came with the last words
            self._keep_peer_ticket(self._peer_ticket)
        for channel in self.channels:
            channel.close()


def stopped(context: Context) -> TransferFailed:
    """Return how an end fails that was told to stop."""
    return TransferFailed(context.last_words or _STOPPED)


def impossible(error: FrameError) -> TransferFailed:
    """Return the failure for unexpected data from the peer."""
    return TransferFailed(
        f"protocol error: unexpected data from the peer: {shorten(str(error))}. The hosts run different versions, or "
        "the network corrupts data. What is in place stays"
    )


def _broken_off(error: Exception) -> SessionLost:
    return SessionLost(
        f"the conversation with the other host broke off: {error}. That end was killed or restarted, or the network "
        "failed. What is in place stays: run the task again to resume"
    )
