# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connections by netcat to the serving end, which both prove who they are.

Each connection is one process of the host's nc (or, where a host has none, a socket of our own: to the peer they
are the same). Only the connecting end uses nc: one that listens takes the first connection that comes, whoever that
is, and refuses all others. So at the serving end the ``Listener`` of stream listens.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import threading
import time
from functools import partial
from typing import NamedTuple

from ..._core import subprocesses
from ..._core.errors import PeerUnreachable, TransferFailed
from ..._core.host_name import numeric_address
from ..._core.subprocesses import pipe
from ..._engine.net import authenticate
from ..._engine.net.authenticate import HANDSHAKE_SECONDS
from ..._engine.wire import handshake
from ..._engine.wire.handshake import HandshakeError, Keys
from . import netcat

PATIENCE = 30.0  # seconds until the serving end must have taken a connection
LINGER_SECONDS = 5.0
_RETRY_SECONDS = 0.2


class Wire(NamedTuple):
    """An open connection whose other end has proved who it is."""

    reader: int
    writer: int
    keys: Keys
    process: subprocess.Popen[bytes] | None

    def drop(self) -> None:
        """Close a connection that no channel took over."""
        for fd in (self.reader, self.writer):
            with contextlib.suppress(OSError):
                os.close(fd)
        if self.process is not None:
            subprocesses.end(self.process, 0)

    def end(self) -> None:
        """End the process; what it still had to send is sent first where the peer takes it in time."""
        if self.process is not None:
            subprocesses.end(self.process, LINGER_SECONDS)


def _receive(fd: int, stop: threading.Event, count: int) -> bytes | None:
    if stop.is_set():
        raise HandshakeError("this end was told to stop")
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return os.read(fd, count) if poll.poll(200) else None


def _start(argv: list[str]) -> tuple[int, int, subprocess.Popen[bytes]]:
    """Start nc; gives what it receives, what it sends, and the process. It ends with the thread that called."""
    process = subprocesses.start(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        die_with_parent=True,  # one whose line is dead does not see its input's end
    )
    reader, writer = os.dup(pipe(process.stdout).fileno()), os.dup(pipe(process.stdin).fileno())
    pipe(process.stdin).close()
    pipe(process.stdout).close()
    return reader, writer, process


def _said(process: subprocess.Popen[bytes]) -> str:
    """What a process that has ended printed to its standard error."""
    return process.stderr.read().decode(errors="replace").strip() if process.stderr else ""


def resolve(address: str) -> str:
    """Return the numeric address of the other host; raises TransferFailed for a name that this host does not know."""
    try:
        return numeric_address(socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)[0][4])
    except OSError as error:
        raise TransferFailed(
            f"this host does not know the other one by the name {address} ({error.strerror}): set longhaul_address of "
            "that host to an address"
        ) from error


def connect(
    dialect: str, program: str, address: str, port: int, number: int, secret: str, stop: threading.Event
) -> Wire:
    """Make connection ``number``, which the serving end may take a while to accept; raises PeerUnreachable."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return _connect_once(dialect, program, address, port, number, secret, stop)
        except (HandshakeError, OSError) as error:
            if stop.is_set() or time.monotonic() > deadline:
                raise PeerUnreachable(
                    f"{address} did not take the connection to port {port}, which was tried again and again for "
                    f"{PATIENCE:.0f} seconds: {error}. Open the port in the firewalls between the two hosts, name an "
                    "open one with port or port_range, or let that host connect (connect: pull or push)"
                ) from error
        time.sleep(_RETRY_SECONDS)


def _connect_once(
    dialect: str, program: str, address: str, port: int, number: int, secret: str, stop: threading.Event
) -> Wire:
    process = None
    if dialect == netcat.BUILTIN:
        connection = socket.create_connection((address, port), timeout=HANDSHAKE_SECONDS)
        connection.setblocking(True)
        reader = connection.detach()
        writer = os.dup(reader)
    else:
        reader, writer, process = _start(netcat.connect_argv(dialect, address, port, program))
    read = partial(authenticate.read_exactly, partial(_receive, reader, stop))
    try:
        keys = authenticate.drive(secret, number, read, partial(os.write, writer), handshake.encode_hello(number))
    except (HandshakeError, OSError) as error:
        os.close(reader)
        os.close(writer)
        if process is not None:
            subprocesses.end(process, 0)
            said = _said(process)
            if said:
                raise HandshakeError(said) from error
        raise
    return Wire(reader, writer, keys, process)
