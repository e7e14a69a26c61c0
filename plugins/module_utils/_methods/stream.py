# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The method stream: our own engine.

``context.serve``: ``address`` to listen at (numeric), ``ports`` to choose from (none: any free one), ``allow``:
addresses that may connect. ``context.secrets``: ``exchange``, the one-time secret of both ends, and, unless the setting
``encrypt`` is false, ``tls_certificate``, ``tls_key`` and ``tls_peer`` (PEM). ``Server.ready`` and so ``context.peer``:
``address``, ``port``. ``context.peer`` has ``patience`` too: the seconds in which the first connection must be made,
None if nothing else could be tried.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Collection

from .._core.context import Context, Server
from .._core.errors import TransferFailed
from .._core.garbage import rest_from_garbage
from .._core.outcome import Outcome
from .._engine.net.connect import Connection, ConnectionParameters, Listener, connect, connect_again, connect_first
from .._engine.net.data_connection import DataConnection
from .._engine.net.early_connections import EarlyConnections
from .._engine.net.session import SessionLost, WireSession
from .._engine.net.session_server import SessionServer
from .._engine.wire.conversation import Contents
from .._engine.wire.handshake import CONTROL, MAX_STREAMS
from .._engine.wire.messages import Fewer
from .._tree import xattr

if TYPE_CHECKING:
    from .._engine.net.pool import ConnectionPool
    from .._engine.receiver.receiver import Receiver
    from .._engine.sender.sender import Sender

_TIMEOUTS = 4  # without getting farther; then it is given up to connect again


class _Conversation:
    """One conversation of one end, with its connections. ``earlier`` is an interrupted one, which this one resumes."""

    def __init__(
        self,
        context: Context,
        parameters: ConnectionParameters,
        control: Connection,
        earlier: _Conversation | None = None,
        early: EarlyConnections | None = None,
    ) -> None:
        self._context, self._parameters, self._early = context, parameters, early
        context.progress.bytes_done = context.progress.files_done = 0
        counted = earlier.end.counted if earlier is not None else None
        self.end: Sender | Receiver
        self.streams: ConnectionPool
        # Half of the timeout goes into noticing that nothing comes any more, half into connecting again.
        channel = control.channel(parameters.timeout / 2, parameters.drives)
        self.session = session = WireSession(context, [channel], Contents.BUNDLES)
        self.end, self.streams = _maker(context.side)(context, session, parameters.timeout, counted)
        begun = early.settle() if early is not None else _first_count(context)
        self._count = max(begun, earlier.streams.proven if earlier is not None else 0)
        first = context.settings["congestion_first"]
        self.streams.congestion = earlier.streams.congestion if earlier is not None else first

    def _make_link(self, number: int) -> DataConnection:
        """Make a data connection; raises OSError or HandshakeError."""
        peer = self._context.peer
        early = self._early.take(number) if self._early is not None else None
        return self.link(early or connect(self._parameters, str(peer["address"]), int(peer["port"]), number))

    def link(self, connection: Connection) -> DataConnection:
        """Take a data connection."""
        return connection.link(self._parameters.timeout, self._parameters.drives)

    def hold(self) -> Outcome:
        """Hold the conversation to its end; raises TransferFailed."""
        rest_from_garbage()
        xattr.quicken()
        self.streams.watch()
        if self._parameters.drives:
            settings = self._context.settings
            self.streams.connect(self._count, self._make_link, _first_count(self._context))
            ask = self._ask_for_fewer if self._context.side == "dest" else None
            if int(settings["streams_max"]) > int(settings["streams"]):  # nobody said how many
                self.streams.grow(int(settings["streams_max"]), int(settings["bwlimit"]), ask)
        outcome = self.end.run()
        outcome.streams = self.streams.proven or self.streams.count
        return outcome

    def _ask_for_fewer(self, numbers: Collection[int]) -> None:
        """Only the source knows when nothing is under way in a connection any more."""
        self.session.send(Fewer(numbers))


def _first_count(context: Context) -> int:
    """Return how many data connections a transfer begins with, however short its line is."""
    return max(1, int(context.settings["streams_first"]))


def _maker(side: str) -> Callable[..., Any]:
    """Return the class for a side. Do not import what only the other side needs: it would be compiled, too."""
    if side == "source":
        from .._engine.sender.stream_sender import make_source

        return make_source
    from .._engine.receiver.stream_receiver import make_dest

    return make_dest


class _RetryBudget:
    """Decides whether to connect again: as long as each session gets farther than those before.

    What cuts every connection before anything is complete would be met again and again without end.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._farthest, self._since = 0, time.monotonic()
        self._lost = 0  # conversations, since then

    def lost(self, context: Context, error: SessionLost) -> None:
        """Take note of a conversation that broke off; raise TransferFailed if it is not worth while to go on."""
        done = context.progress.bytes_done + context.progress.files_done
        now = time.monotonic()
        self._lost += 1
        if done > self._farthest:
            self._farthest, self._since, self._lost = done, now, 0
        elif now - self._since > self._seconds:
            raise TransferFailed(
                f"the connection was lost {self._lost} times in {now - self._since:.0f} seconds, and got no farther "
                f"in between ({error}). Something on the way ends connections early: look at the firewalls and load "
                "balancers between the hosts, then run the task again to resume"
            ) from error


def drive(context: Context) -> Outcome:
    """Connect to the serving end, and do the transfer with it; where the connection is lost, connect again."""
    parameters = ConnectionParameters(context)
    early = EarlyConnections(context, parameters, _first_count(context))
    try:
        conversation = _Conversation(context, parameters, connect_first(context, parameters), early=early)
        retries = _RetryBudget(_TIMEOUTS * parameters.timeout)
        while True:
            try:
                return conversation.hold()
            except SessionLost as error:
                retries.lost(context, error)
                context.log(f"{error}. Connecting again")
                control = connect_again(context, parameters, parameters.timeout / 2, error)
                conversation = _Conversation(context, parameters, control, conversation)
    finally:
        early.close()


def serve(context: Context) -> Server:
    """Listen, and hold the conversation with whoever proves to be the driving end."""
    return _StreamServer(context)


class _StreamServer(SessionServer):
    """The port, and the conversation from its first connection on. A new conversation takes the place of the old."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        _maker(context.side)  # imported before anybody waits for it
        self._parameters = ConnectionParameters(context)
        self._conversation: _Conversation | None = None
        self._early: list[Connection] = []
        self._retries = _RetryBudget(_TIMEOUTS * self._parameters.timeout)
        self._port = Listener(context, self._parameters, self._arrived)
        self.ready = {"address": self._port.address, "port": self._port.port}

    def _arrived(self, connection: Connection) -> None:
        with self._lock:
            if self._closing:
                connection.socket.close()
            elif self._conversation is None and connection.number != CONTROL:
                self._keep(connection)
            elif self._conversation is not None and connection.number != CONTROL:
                self._conversation.streams.attach(self._conversation.link(connection))
            else:
                self._converse(connection)

    def _keep(self, connection: Connection) -> None:
        """Keep a data connection until the conversation begins.

        The peer makes it later, but on a line that loses packets it may be here first.
        """
        if len(self._early) < MAX_STREAMS:
            self._early.append(connection)
        else:
            connection.socket.close()

    def _converse(self, connection: Connection) -> None:
        earlier = self._conversation
        if earlier is not None and self._thread is not None:
            earlier.session.abort("the peer connected again")
            self._thread.join()
        self._conversation = _Conversation(self._context, self._parameters, connection, earlier)
        for early in self._early:
            self._conversation.streams.attach(self._conversation.link(early))
        self._early.clear()
        self._begin(partial(self._hold, self._conversation))

    def _hold(self, conversation: _Conversation) -> Outcome:
        """Hold a conversation; where nothing comes of it, or of one after the other, no other is begun."""
        try:
            return conversation.hold()
        except TransferFailed as error:
            if isinstance(error, SessionLost):
                try:
                    self._retries.lost(self._context, error)
                except TransferFailed:
                    self._port.close()
                    raise
            elif conversation.session.has_stalled:
                self._port.close()
            raise

    def _stop_listening(self) -> None:
        self._port.close()
        for early in self._early:
            early.socket.close()
        self._early.clear()
