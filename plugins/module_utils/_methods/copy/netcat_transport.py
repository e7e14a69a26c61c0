# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connections by netcat: listen, connect, and know who is there.

Each connection is one process of the host's nc (or, where a host has none, a socket of our own: to the peer they
are the same). Whoever connects must prove at once that it knows the transfer's secret; a stranger is dropped and the
port is listened on again.
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
from typing import Callable, NamedTuple

from ..._core import subprocesses
from ..._core.errors import PeerUnreachable, TransferFailed
from ..._core.ports import LISTEN, free_port, has_socket
from ..._core.subprocesses import pipe
from ..._engine.net import authenticate
from ..._engine.net.authenticate import HANDSHAKE_SECONDS
from ..._engine.wire.handshake import HandshakeError, Keys
from . import netcat

_SOON = 0.3  # seconds in which nc listens, where nothing tells that it does
RENEW_SECONDS = 30.0  # a listener to which nobody spoke may be held by a silent stranger: listen again
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
    return os.read(fd, count) if _is_readable(fd) else None


def _is_readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(200))


def _messages(reader: int, writer: int, stop: threading.Event) -> tuple[authenticate.Read, authenticate.Send]:
    """Return what reads and sends the messages by which both ends prove who they are."""
    return partial(authenticate.read_exactly, partial(_receive, reader, stop)), partial(os.write, writer)


def _start(argv: list[str]) -> tuple[int, int, subprocess.Popen[bytes]]:
    """Start nc; gives what it receives, what it sends, and the process. It ends with the thread that called."""
    process = subprocesses.start(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        die_with_parent=True,  # one that still listens, or whose line is dead, does not see its input's end
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
        return str(socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise TransferFailed(
            f"this host does not know the other one by the name {address} ({error.strerror}): set longhaul_address of "
            "that host to an address"
        ) from error


def own_address(address: str) -> str:
    """Return the numeric address to listen at. If a name means the loopback here, listen at all addresses."""
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
        return address
    except OSError:
        pass
    if address:
        with contextlib.suppress(TransferFailed):
            found = resolve(address)
            if not found.startswith("127.") and found != "::1":
                free_port(found)
                return found
    return "0.0.0.0"


class Listener:
    """Waits at one port for the driving end's connection ``number``, in a thread of its own.

    ``arrived`` is called with the wire, once. ``close`` ends the waiting.
    """

    def __init__(
        self,
        dialect: str,
        program: str,
        address: str,
        port: int,
        number: int,
        secret: str,
        allowed: list[str],
        arrived: Callable[[int, Wire], None],
        log: Callable[[str], None],
    ) -> None:
        self.port = port
        self._dialect, self._program, self._address, self._allowed = dialect, program, address, allowed
        self._number, self._secret = number, secret
        self._arrived, self._log = arrived, log
        self._stop = threading.Event()
        self._socket = self._listen() if dialect == netcat.BUILTIN else None
        self._first = None if self._socket else self._start_nc()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _listen(self) -> socket.socket:
        listening = socket.socket(socket.AF_INET6 if ":" in self._address else socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((self._address, self.port))
        listening.listen(8)
        listening.settimeout(0.2)
        return listening

    def _start_nc(self) -> tuple[int, int, subprocess.Popen[bytes]]:
        """Start nc and wait until it holds the port."""
        argv = netcat.listen_argv(self._dialect, self._address, self.port, self._allowed, self._program)
        reader, writer, process = _start(argv)
        begun = time.monotonic()
        while process.poll() is None and time.monotonic() - begun < HANDSHAKE_SECONDS:
            listens = has_socket(self.port, LISTEN)  # asked, not tried: who tries has the port for that moment
            if listens or (listens is None and time.monotonic() - begun > _SOON):
                break
            time.sleep(0.01)
        if process.poll() is not None:
            os.close(reader)
            os.close(writer)
            raise TransferFailed(
                f"{' '.join(argv)} ended at once with code {process.returncode}: {_said(process) or 'it said nothing'}"
            )
        return reader, writer, process

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                opened = self._next()
            except (OSError, TransferFailed) as error:
                self._log(f"port {self.port}: {error}")
                self._stop.wait(1)
                continue
            if opened is None:
                continue
            reader, writer, process = opened
            try:
                keys = self._shake_hands(reader, writer)
            except (HandshakeError, OSError) as error:
                if not self._stop.is_set():
                    self._log(f"port {self.port}: {error}; listening on")
                os.close(reader)
                os.close(writer)
                if process is not None:
                    subprocesses.end(process, 0)
                continue
            if self._socket is not None:
                self._socket.close()
            self._arrived(self._number, Wire(reader, writer, keys, process))
            if process is not None:
                process.wait()  # nc ends with the thread that started it: see subprocesses.start
            return
        if self._socket is not None:
            self._socket.close()

    def _next(self) -> tuple[int, int, subprocess.Popen[bytes] | None] | None:
        """Return the next connection (with nc: a pending one); None if none came yet."""
        if self._socket is None:
            first, self._first = self._first, None
            return first or self._start_nc()
        try:
            connection, where = self._socket.accept()
        except socket.timeout:
            return None
        if self._allowed and where[0] not in self._allowed:
            self._log(f"port {self.port}: {where[0]} connected, which is not the other host: dropped")
            connection.close()
            return None
        connection.setblocking(True)
        fd = connection.detach()
        return fd, os.dup(fd), None

    def _shake_hands(self, reader: int, writer: int) -> Keys:
        deadline = time.monotonic() + (HANDSHAKE_SECONDS if self._socket is not None else RENEW_SECONDS)
        while not _is_readable(reader):
            if self._stop.is_set() or time.monotonic() > deadline:
                raise HandshakeError("the peer said nothing")
        return authenticate.serve(self._secret, self._number, *_messages(reader, writer, self._stop))

    def close(self) -> None:
        """Stop waiting; whoever has the wire has ended it."""
        self._stop.set()
        self._thread.join()
        if self._first is not None:
            os.close(self._first[0])
            os.close(self._first[1])
            subprocesses.end(self._first[2], 0)


def connect(
    dialect: str,
    program: str,
    address: str,
    port: int,
    number: int,
    secret: str,
    patience: float,
    stop: threading.Event,
) -> Wire:
    """Connect to a listener, which may take ``patience`` seconds to be there; raises PeerUnreachable."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return _connect_once(dialect, program, address, port, number, secret, stop)
        except (HandshakeError, OSError) as error:
            if stop.is_set() or time.monotonic() > deadline:
                raise PeerUnreachable(
                    f"{address} did not take the connection to port {port}: {error}. Open the port in the firewalls "
                    "between the two hosts, name open ones with port_range, or let that host connect (connect: pull or "
                    "push)"
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
    try:
        keys = authenticate.drive(secret, number, *_messages(reader, writer, stop))
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
