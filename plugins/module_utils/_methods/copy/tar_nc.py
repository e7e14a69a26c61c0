# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The method tar_nc: tar at both ends, netcat between them, our frames inside.

Nothing is encrypted. Whoever connects must prove that it knows the transfer's secret, and what the two ends decide is
authenticated message by message; the contents of files are protected against corruption, not against somebody on the
line who changes them.

``context.serve``: ``address`` to listen at (numeric), ``ports`` to choose from (none: any free one), ``allow``:
addresses that may connect (where it is one, and the dialect knows how). ``context.secrets["exchange"]`` is the one-time
secret of both ends. ``Server.ready`` and so ``context.peer``: ``address``, ``ports`` (one for each stream).
"""

from __future__ import annotations

from ..._core.context import Context, Server
from ..._core.errors import TransferFailed
from ..._core.outcome import Outcome
from ..._core.ports import free_port
from ..._core.subprocesses import find_program
from ..._engine.net.control_channel import Channel
from ..._engine.net.session import Session
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


def _secret(context: Context) -> str:
    secret = context.secrets.get("exchange", "")
    if not secret:
        raise TransferFailed("tar_nc was given no one-time secret, without which anybody could connect")
    return secret


def _channel(context: Context, wire: netcat_transport.Wire) -> Channel:
    drives = context.part == "drive"
    return Channel(
        wire.reader,
        wire.writer,
        float(context.settings["timeout"] or 300),
        send_key=wire.keys.drive if drives else wire.keys.serve,
        receive_key=wire.keys.serve if drives else wire.keys.drive,
    )


def _converse(context: Context, wires: list[netcat_transport.Wire], nc_argv: list[str]) -> Outcome:
    """Hold the conversation over the connections, and end them."""
    try:
        session = Session(context, [_channel(context, wire) for wire in wires], Contents.ARCHIVES)
        if context.side == "source":
            outcome = Sender(context, session, TarSource(context)).run()
        else:
            outcome = Receiver(context, session, TarDest(context)).run()
    finally:
        for wire in wires:
            wire.end()
    outcome.streams = len(wires)
    if nc_argv and context.side in outcome.cmd:
        outcome.cmd[context.side] = [*outcome.cmd[context.side], "|", *nc_argv]
    return outcome


def drive(context: Context) -> Outcome:
    """Connect to the serving end, and do the transfer with it."""
    dialect, program = _dialect(context)
    secret = _secret(context)
    address = netcat_transport.resolve(str(context.peer["address"]))
    ports = [int(port) for port in context.peer["ports"]]
    if ":" in address and dialect != netcat.BUILTIN and not netcat.speaks_ipv6(dialect):
        dialect = netcat.BUILTIN
    wires: list[netcat_transport.Wire] = []
    try:
        for number, port in enumerate(ports):
            wires.append(
                netcat_transport.connect(
                    dialect, program, address, port, number, secret, netcat_transport.RENEW_SECONDS, context.stop
                )
            )
    except TransferFailed:
        for wire in wires:
            wire.drop()
        raise
    argv = [] if dialect == netcat.BUILTIN else netcat.connect_argv(dialect, address, ports[0], program)
    context.settings = {**context.settings, "streams": len(ports)}
    return _converse(context, wires, argv)


def serve(context: Context) -> Server:
    """Listen, and hold the conversation with whoever proves to be the driving end."""
    return _TarServer(context)


class _TarServer(SessionServer):
    """The listeners, and the conversation once all connections are there."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._dialect, self._program = _dialect(context)
        self._secret = _secret(context)
        self._address = netcat_transport.own_address(str(context.serve.get("address") or ""))
        if ":" in self._address and not netcat.speaks_ipv6(self._dialect):
            self._dialect = netcat.BUILTIN
        self._wires: dict[int, netcat_transport.Wire] = {}
        self._listeners: list[netcat_transport.Listener] = []
        ports = self._choose_ports(max(1, int(context.settings["streams"])))
        try:
            for number, port in enumerate(ports):
                self._listeners.append(self._listen_there(number, port))
        except BaseException:
            self.close()
            raise
        context.settings = {**context.settings, "streams": len(ports)}
        self.ready = {
            "address": self._address,
            "ports": [listener.port for listener in self._listeners],
        }

    def _listen_there(self, number: int, port: int) -> netcat_transport.Listener:
        """Listen at a port; where any will do and somebody took this one meanwhile, at another."""
        for _again in range(0 if self._context.serve.get("ports") else 2):
            try:
                return self._listen(number, port)
            except (TransferFailed, OSError) as error:
                self._context.log(f"port {port}: {error}")
                port = free_port(self._address)
        return self._listen(number, port)

    def _listen(self, number: int, port: int) -> netcat_transport.Listener:
        return netcat_transport.Listener(
            self._dialect,
            self._program,
            self._address,
            port,
            number,
            self._secret,
            [str(address) for address in self._context.serve.get("allow") or ()],
            self._arrived,
            self._context.log,
        )

    def _choose_ports(self, count: int) -> list[int]:
        """Find free ports, as many as there are streams; fewer where the range has no more, but at least one."""
        named = [int(port) for port in self._context.serve.get("ports") or ()]
        if not named:
            return [free_port(self._address) for _number in range(count)]
        chosen: list[int] = []
        for port in named:
            if free_port(self._address, port):
                chosen.append(port)
            if len(chosen) == count:
                break
        if not chosen:
            raise TransferFailed(
                f"{f'port {named[0]} is' if len(named) == 1 else f'all ports from {named[0]} to {named[-1]} are'} "
                f"taken at {self._address} by other programs. Name another port or a wider port_range"
            )
        return chosen

    def _arrived(self, number: int, wire: netcat_transport.Wire) -> None:
        with self._lock:
            if self._closing:
                wire.drop()
                return
            self._wires[number] = wire
            if len(self._wires) < len(self.ready["ports"]):
                return
            self._begin(self._hold)

    def _hold(self) -> Outcome:
        wires = [self._wires[number] for number in sorted(self._wires)]
        argv = []
        if self._dialect != netcat.BUILTIN:
            argv = netcat.listen_argv(self._dialect, self._address, self._listeners[0].port, [], self._program)
        return _converse(self._context, wires, argv)

    def _stop_listening(self) -> None:
        if self._thread is None:
            for wire in list(self._wires.values()):
                wire.drop()
        for listener in self._listeners:
            listener.close()
