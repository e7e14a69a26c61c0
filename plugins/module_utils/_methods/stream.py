# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The method stream: our own engine. Private to the collection.

``context.serve``: ``address`` to listen at (numeric), ``ports`` to choose from (none: any free one), ``allow``:
addresses that may connect. ``context.secrets``: ``exchange``, the one-time secret of both ends, and, unless the setting
``encrypt`` is false, ``tls_certificate``, ``tls_key`` and ``tls_peer`` (PEM). ``Server.ready`` and so ``context.peer``:
``address``, ``port``. ``context.peer`` has ``patience`` too: the seconds in which the first connection must be made,
None where nothing else could be tried.
"""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any, Callable

from .._exchange import frames
from .._exchange.messages import pack
from .._exchange.talk import ConversationLost, Talk
from .._job.context import Context, Server, TransferFailed
from .._job.outcome import Outcome
from .._stream.hello import CONTROL
from .._stream.link import Link
from .._stream.meeting import Connection, Doorway, Port, connect, connect_again, connect_first
from .._tree import xattr
from .conversing import ConversingServer

if TYPE_CHECKING:
    from .._exchange.dest import DestEnd
    from .._exchange.source import SourceEnd
    from .._stream.streams import Streams

_TIMEOUTS = 4  # without getting farther; then it is given up to connect again


class _Conversation:
    """One conversation of one end, with its connections. ``earlier`` is one that broke off, and is gone on from."""

    def __init__(
        self, context: Context, doorway: Doorway, control: Connection, earlier: _Conversation | None = None
    ) -> None:
        self._context, self._doorway = context, doorway
        context.progress.bytes_done = context.progress.files_done = 0
        counted = earlier.end.counted if earlier is not None else None
        self.end: SourceEnd | DestEnd
        self.streams: Streams
        # Half of the timeout goes into noticing that nothing comes any more, half into connecting again.
        self.talk = talk = Talk(context, [control.channel(doorway.timeout / 2, doorway.drives)])
        self.end, self.streams = _maker(context.side)(context, talk, doorway.timeout, counted)
        self._count = max(1, int(context.settings["streams"]), earlier.streams.proven if earlier is not None else 0)

    def _make_link(self, number: int) -> Link:
        """Make a data connection; raises OSError or HandshakeError."""
        peer = self._context.peer
        return self.link(connect(self._doorway, str(peer["address"]), int(peer["port"]), number))

    def link(self, connection: Connection) -> Link:
        """Take a data connection."""
        return connection.link(self._doorway.timeout, self._doorway.drives)

    def hold(self) -> Outcome:
        """Hold the conversation to its end; raises TransferFailed."""
        _rest_from_garbage()
        xattr.quicken()
        self.streams.watch()
        if self._doorway.drives:
            settings = self._context.settings
            self.streams.connect(self._count, self._make_link)
            ask = self._ask_for_fewer if self._context.side == "dest" else None
            self.streams.grow(int(settings["streams_max"]), int(settings["bwlimit"]), ask)
        outcome = self.end.run()
        outcome.streams = self.streams.count
        return outcome

    def _ask_for_fewer(self, count: int) -> None:
        """Only the source knows when nothing is under way in a connection any more."""
        self.talk.send(frames.FEWER, pack({"streams": count}))


def _maker(side: str) -> Callable[..., Any]:
    """Give what makes the end of a side. What only the other one needs is not imported: that would be compiled, too."""
    if side == "source":
        from .._stream.source import make_source

        return make_source
    from .._stream.receiver import make_dest

    return make_dest


def _rest_from_garbage() -> None:
    """Entries come and go by the thousand and hold no cycles: looking for some costs time and finds nothing."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


class _Perseverance:
    """Says whether to connect again: as long as each conversation gets farther than those before.

    What cuts every connection before anything is complete would be met again and again without end.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._farthest, self._since = 0, time.monotonic()
        self._lost = 0  # conversations, since then

    def lost(self, context: Context, error: ConversationLost) -> None:
        """Take note of a conversation that broke off; raises TransferFailed where it is not worth while to go on."""
        done = context.progress.bytes_done + context.progress.files_done
        self._lost += 1
        if done > self._farthest:
            self._farthest, self._since, self._lost = done, time.monotonic(), 0
        elif time.monotonic() - self._since > self._seconds:
            seconds = time.monotonic() - self._since
            raise TransferFailed(
                f"the connection was lost {self._lost} times in {seconds:.0f} seconds, and got no farther in between "
                f"({error}). Something on the way ends connections early: look at the firewalls and load balancers "
                "between the hosts, then run the task again, it goes on where it stopped"
            ) from error


def drive(context: Context) -> Outcome:
    """Connect to the serving end, and do the transfer with it; where the connection is lost, connect again."""
    doorway = Doorway(context)
    conversation = _Conversation(context, doorway, connect_first(context, doorway))
    perseverance = _Perseverance(_TIMEOUTS * doorway.timeout)
    while True:
        try:
            return conversation.hold()
        except ConversationLost as error:
            perseverance.lost(context, error)
            context.log(f"{error}. Connecting again")
            control = connect_again(context, doorway, doorway.timeout / 2, error)
            conversation = _Conversation(context, doorway, control, conversation)


def serve(context: Context) -> Server:
    """Listen, and hold the conversation with whoever proves to be the driving end."""
    return _StreamServer(context)


class _StreamServer(ConversingServer):
    """The port, and the conversation from its first connection on. A new conversation takes the place of the old."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        _maker(context.side)  # imported before anybody waits for it
        self._doorway = Doorway(context)
        self._conversation: _Conversation | None = None
        self._port = Port(context, self._doorway, self._arrived)
        self.ready: dict[str, Any] = {"address": self._port.address, "port": self._port.port}

    def _arrived(self, connection: Connection) -> None:
        with self._lock:
            if self._closing or (self._conversation is None and connection.number != CONTROL):
                connection.socket.close()
            elif self._conversation is not None and connection.number != CONTROL:
                self._conversation.streams.attach(self._conversation.link(connection))
            else:
                self._converse(connection)

    def _converse(self, connection: Connection) -> None:
        earlier = self._conversation
        if earlier is not None and self._thread is not None:
            earlier.talk.abort("the other end connected again")
            self._thread.join()
        self._conversation = _Conversation(self._context, self._doorway, connection, earlier)
        self._begin(self._conversation.hold)

    def _stop_listening(self) -> None:
        self._port.close()
