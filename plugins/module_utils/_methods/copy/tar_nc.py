# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The method tar_nc: tar at both ends, netcat between them, our frames inside.

Nothing is encrypted. Whoever connects must prove that it knows the transfer's secret, and what the two ends decide is
authenticated message by message; the contents of files are protected against corruption, not against somebody on the
line who changes them.

``context.serve``: ``address`` to listen at (numeric), ``ports`` to choose from (none: any free one), ``allow``:
addresses that may connect. ``context.secrets["exchange"]`` is the one-time secret of both ends. ``Server.ready`` and
so ``context.peer``: ``address``, ``port``.
"""

from __future__ import annotations

from ..._core.context import Context, Server
from ..._core.errors import TransferFailed
from ..._core.outcome import Outcome
from ..._core.subprocesses import find_program
from ..._engine.net.connect import Connection, ConnectionParameters, Listener
from ..._engine.net.control_channel import Channel
from ..._engine.net.session import WireSession
from ..._engine.net.session_server import SessionServer
from ..._engine.receiver.receiver import Receiver
from ..._engine.sender.sender import Sender
from ..._engine.wire.conversation import Contents
from . import netcat, netcat_transport
from .tar_carrier import TarDest, TarSource


def _dialect(context: Context) -> tuple[str, str]:
    """Return this host's dialect and the path of its nc; without a usable nc the built-in one."""
    dialect = str((context.settings.get("nc") or {}).get(context.side) or "")
    program = find_program("nc") or ""
    if dialect not in netcat.DIALECTS or dialect == netcat.BUILTIN or not program:
        return netcat.BUILTIN, ""
    return dialect, program


def _streams(context: Context) -> int:
    return max(1, int(context.settings["streams"]))


def _run(context: Context, channels: list[Channel]) -> Outcome:
    """Hold the conversation over the connections."""
    session = WireSession(context, channels, Contents.ARCHIVES)
    if context.side == "source":
        outcome = Sender(context, session, TarSource(context, session)).run()
    else:
        outcome = Receiver(context, session, TarDest(context)).run()
    outcome.streams = len(channels)
    return outcome


def drive(context: Context) -> Outcome:
    """Connect to the serving end, and do the transfer with it."""
    parameters = ConnectionParameters(context, encrypts=False)
    dialect, program = _dialect(context)
    address, port = netcat_transport.resolve(str(context.peer["address"])), int(context.peer["port"])
    if ":" in address and dialect != netcat.BUILTIN and not netcat.speaks_ipv6(dialect):
        dialect = netcat.BUILTIN
    wires: list[netcat_transport.Wire] = []
    try:
        for number in range(_streams(context)):
            wires.append(
                netcat_transport.connect(dialect, program, address, port, number, parameters.secret, context.stop)
            )
    except TransferFailed:
        for wire in wires:
            wire.drop()
        raise
    try:
        outcome = _run(context, [_channel(parameters, wire) for wire in wires])
    finally:
        for wire in wires:
            wire.end()
    if dialect != netcat.BUILTIN and context.side in outcome.cmd:
        argv = netcat.connect_argv(dialect, address, port, program)
        outcome.cmd[context.side] = [*outcome.cmd[context.side], "|", *argv]
    return outcome


def _channel(parameters: ConnectionParameters, wire: netcat_transport.Wire) -> Channel:
    keys = wire.keys
    return Channel(wire.reader, wire.writer, parameters.timeout, send_key=keys.drive, receive_key=keys.serve)


def serve(context: Context) -> Server:
    """Listen, and hold the conversation with whoever proves to be the driving end."""
    return _TarServer(context)


class _TarServer(SessionServer):
    """The listener, and the conversation once all connections are there."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._parameters = ConnectionParameters(context, encrypts=False)
        self._arrived_ones: dict[int, Connection] = {}
        self._listener = Listener(context, self._parameters, self._arrived)
        self.ready = {"address": self._listener.address, "port": self._listener.port}

    def _arrived(self, connection: Connection) -> None:
        with self._lock:
            if self._closing or self._thread is not None or connection.number >= _streams(self._context):
                connection.socket.close()
                return
            former = self._arrived_ones.pop(connection.number, None)
            if former is not None:  # the driving end knows of the later one
                former.socket.close()
            self._arrived_ones[connection.number] = connection
            if len(self._arrived_ones) == _streams(self._context):
                self._begin(self._hold)

    def _hold(self) -> Outcome:
        in_order = [self._arrived_ones[number] for number in sorted(self._arrived_ones)]
        return _run(self._context, [one.channel(self._parameters.timeout, drives=False) for one in in_order])

    def _stop_listening(self) -> None:
        self._listener.close()
        if self._thread is None:
            for connection in self._arrived_ones.values():
                connection.socket.close()
