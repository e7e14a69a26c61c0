# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure the line between two hosts with the stream's own connections, from memory to memory.

The connections are those of a transfer: one port, the same handshake, plain or TLS. Plain ones carry made data alone.
On each, the driving end asks for one measurement after the other; the receiving end counts, once the first part of the
time is over, in which a connection gains speed::

    ask        direction, seconds, bytes       driving end -> serving end
    records    RAW ... RAW DONE                in the direction that was asked for
    report     length, JSON                    serving end -> driving end
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Iterator, Mapping, NamedTuple, Sequence

from .._core.context import Context
from .._core.errors import TransferFailed
from .._core.json_shape import as_object, member, number
from .._core.memory_file import MemoryFile
from .._engine.net.connect import Connection, ConnectionParameters, Listener, connect, connect_first
from .._engine.net.data_connection import ConnectionLost, DataConnection
from .._engine.net.tcp_info import bound_unsent
from .._engine.wire.frames import FrameError
from .._engine.wire.handshake import MAX_STREAMS, HandshakeError
from .._engine.wire.records import Record, RecordKind
from .line_facts import HostLine, SideFacts, TcpFacts, side_facts, tcp_facts

if TYPE_CHECKING:
    from typing import TypedDict

    class DirectionRates(TypedDict):
        """Bytes a second in one direction; 0 where it was not measured."""

        one_stream: float
        several_streams: float
        streams: int  # of several_streams, and of encrypted
        encrypted: float

    class LineRates(TypedDict):
        """Measured rates of a line. ``gaps`` are sentences."""

        forth: DirectionRates  # from the source to the destination
        back: DirectionRates
        round_trip: float
        loss: float
        path_mtu: int
        window: int
        congestion: str
        source: SideFacts
        dest: SideFacts
        bytes: int  # that were sent
        gaps: list[str]

else:  # making such classes takes time at each job's start
    DirectionRates = LineRates = dict

_TIMEOUT = 30.0  # seconds without a byte
_FIRST = 30.0  # seconds until the driving end is there, and until it comes back
_LOOK = 0.05  # seconds
_LEAST_RECORD, _LARGEST_RECORD = 64 << 10, 1 << 20
_QUICK = 0.01  # seconds: a record that is sent quicker is followed by a larger one
_WARM = 0.3  # of the time that is asked for: a connection gains speed in it
_UNSENT = 256 << 10  # bytes that wait in the sending end
_ASK = struct.Struct("!BdQ")
_LENGTH = struct.Struct("!I")
_LONGEST_REPORT = 4096
_END, _FORTH, _BACK = 0, 1, 2  # _FORTH: the driving end sends
_TESTS = 6
_MOST_LINKS = 2 * MAX_STREAMS  # plain ones and those with TLS
_LARGEST_NUMBER = 1 << 63  # in a report
_TLS_FIRST_BYTE = b"\x16"  # of a ClientHello's record; the stream's own hello begins with another


class BenchmarkStop(TransferFailed):
    """The job was asked to stop."""


class Received(NamedTuple):
    """Bytes received over a connection."""

    amount: int
    rate: float  # bytes a second, once the connection had gained speed


class _Report(NamedTuple):
    """Report of the serving end on one measurement."""

    rate: float  # of what it received
    amount: int
    tcp: TcpFacts
    side: SideFacts


class _MemoryRecords:
    """Files in memory that records are sent from, and received into."""

    def __init__(self, folder: str) -> None:
        self._source, self._sink = MemoryFile(folder), MemoryFile(folder)
        self._source.write_all(memoryview(os.urandom(_LARGEST_RECORD)))

    def send(self, link: DataConnection, seconds: float, most: int) -> int:
        """Send records for ``seconds``, or ``most`` bytes; return how many bytes. Raises ConnectionLost."""
        until, sent, size = time.monotonic() + seconds, 0, _LEAST_RECORD
        while sent < most and time.monotonic() < until:
            began, size = time.monotonic(), min(size, most - sent)
            link.send_head(Record(RecordKind.RAW, length=size, size=size))
            link.send_file(self._source.fd, 0, size, lambda _count: None)
            sent += size
            if time.monotonic() - began < _QUICK:
                size = min(2 * size, _LARGEST_RECORD)
        link.send_head(Record(RecordKind.DONE))
        return sent

    def receive(self, link: DataConnection, seconds: float, most: int) -> Received:
        """Receive records to the last one, ``most`` bytes altogether. Raises ConnectionLost and FrameError."""
        amount = marked_amount = 0
        began = marked = last = 0.0
        while True:
            record = link.receive_head()
            last = last or time.monotonic()
            began = began or last
            if record.kind == RecordKind.DONE:
                break
            if record.kind != RecordKind.RAW:
                raise FrameError(f"protocol error: {record.kind.name} in a measurement")
            if record.size > min(_LARGEST_RECORD, most - amount):
                raise FrameError("protocol error: more bytes in a measurement than were asked for")
            link.receive_file(self._sink.fd, 0, record.size, lambda _count: None)
            last, amount = time.monotonic(), amount + record.size
            if not marked and last - began >= _WARM * seconds:
                marked, marked_amount = last, amount
        if not marked or last - marked < 0.2 * (last - began):  # it was over before it had gained speed
            marked, marked_amount = began, 0
        return Received(amount, (amount - marked_amount) / max(last - marked, 1e-6))


@contextlib.contextmanager
def _ending(link: DataConnection, seconds: float) -> Iterator[None]:
    """Abort a connection whose peer takes longer than ``seconds``, with a byte now and then, too."""
    timer = threading.Timer(seconds, link.abort, [f"a measurement took longer than {seconds:.0f} seconds"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _EitherWay(ConnectionParameters):
    """Takes plain connections and those with TLS at one port, by the first byte."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._plain = ConnectionParameters(context, encrypts=False)

    def wrap(self, connection: socket.socket) -> socket.socket:
        """Prepare a new connection, and put TLS around it if the peer begins with it."""
        connection.settimeout(_TIMEOUT)
        if connection.recv(1, socket.MSG_PEEK) == _TLS_FIRST_BYTE:
            return super().wrap(connection)
        return self._plain.wrap(connection)


class LineServer:
    """The serving end of a measurement."""

    def __init__(self, context: Context, host: HostLine, seconds: float, most: int) -> None:
        """Listen. ``seconds`` and ``most`` bytes bound what the peer can ask for. Raises TransferFailed."""
        self._host, self._seconds, self._most = host, seconds, most
        self._memory = _MemoryRecords(context.folder)
        self._lock = threading.Lock()
        self._links: set[DataConnection] = set()
        self._ended = threading.Event()
        try:
            parameters: ConnectionParameters = _EitherWay(context)
        except BenchmarkStop:
            raise
        except TransferFailed:  # this Python has no TLS 1.3
            parameters = ConnectionParameters(context, encrypts=False)
        self._log = context.log
        self._port = Listener(context, parameters, self._arrived)
        self.address, self.port = self._port.address, self._port.port

    def wait(self) -> None:
        """Serve until the peer says that it is done. Raises TransferFailed if it stays away, or finds no end."""
        began = seen = time.monotonic()
        patience = self._seconds + _FIRST + _TESTS * _TIMEOUT
        while not self._ended.wait(_LOOK):
            if time.monotonic() - began > patience:
                raise TransferFailed(
                    f"the other host did not end the measurement of the line within {patience:.0f} seconds: the line "
                    "stalls, or its job hangs. Run the task again"
                )
            with self._lock:
                is_used = bool(self._links)
            if is_used:
                seen = time.monotonic()
            elif time.monotonic() - seen > _FIRST:
                raise TransferFailed(f"the other host did not connect to port {self.port} within {_FIRST:.0f} seconds")

    def close(self) -> None:
        """End all connections."""
        self._port.close()
        with self._lock:
            for link in self._links:
                link.abort("the measurement ended")

    def _arrived(self, connection: Connection) -> None:
        link = None
        try:
            link = connection.link(_TIMEOUT, drives=False)
            with self._lock:
                if len(self._links) >= _MOST_LINKS:
                    raise FrameError(f"protocol error: more than {_MOST_LINKS} connections")
                self._links.add(link)
            while self._answer(link):
                pass
            self._ended.set()
        except (ConnectionLost, FrameError, OSError) as error:
            if not self._ended.is_set():
                self._log(f"a connection of the measurement ended: {error}")
        finally:
            with self._lock:
                if link is None:
                    connection.socket.close()
                else:
                    self._links.discard(link)
                    link.close()

    def _answer(self, link: DataConnection) -> bool:
        """Do one measurement; return whether another may follow."""
        direction, seconds, most = _ASK.unpack(link.receive(_ASK.size, patient=True))
        if direction == _END:
            return False
        if direction not in (_FORTH, _BACK):
            raise FrameError(f"protocol error: {direction} is no direction")
        seconds = min(max(0.0, seconds), self._seconds)
        bound_unsent(link.socket, _UNSENT)
        if direction == _FORTH:
            with _ending(link, seconds + _TIMEOUT):
                found = self._memory.receive(link, seconds, max(_LARGEST_RECORD, self._most))
        else:
            found = Received(self._memory.send(link, seconds, min(most, self._most)), 0.0)
        side = side_facts(link.socket, self._host)
        said = json.dumps(dict(_Report(found.rate, found.amount, tcp_facts(link.socket), side)._asdict())).encode()
        link.send(memoryview(_LENGTH.pack(len(said)) + said))
        return True


def _read_report(link: DataConnection) -> _Report:
    """Return what the serving end says. Raises ConnectionLost, and FrameError or ValueError for what is no report."""
    (length,) = _LENGTH.unpack(link.receive(_LENGTH.size, patient=True))
    if length > _LONGEST_REPORT:
        raise FrameError("protocol error: a report of a measurement is too long")
    return _parse_report(link.receive(length))


def _parse_report(said: bytes) -> _Report:
    """Return what a report says. Raises FrameError and ValueError. Pure."""
    try:
        values = as_object(json.loads(said), "a report")
    except RecursionError:
        raise FrameError("protocol error: a report of a measurement is nested too deeply") from None
    tcp, side = (as_object(values.get(name), name) for name in ("tcp", "side"))
    return _Report(
        _quantity(values, "rate"),
        _count(values, "amount"),
        {
            "round_trip": _quantity(tcp, "round_trip"),
            "sent": _count(tcp, "sent"),
            "lost": _count(tcp, "lost"),
            "path_mtu": _count(tcp, "path_mtu"),
            "congestion": member(tcp, "congestion", str),
        },
        {
            "interface": _quantity(side, "interface"),
            "bond": member(side, "bond", str),
            "send_buffer": _count(side, "send_buffer"),
            "receive_buffer": _count(side, "receive_buffer"),
        },
    )


def _count(values: Mapping[str, object], name: str) -> int:
    value = member(values, name, int)
    if abs(value) > _LARGEST_NUMBER:
        raise FrameError(f"protocol error: {name} in a report of a measurement is impossible")
    return value


def _quantity(values: Mapping[str, object], name: str) -> float:
    value = number(values, name)
    if not 0 <= value <= _LARGEST_NUMBER:  # no number (NaN) is not, either
        raise FrameError(f"protocol error: {name} in a report of a measurement is impossible")
    return float(value)


class LineDriver:
    """The driving end of a measurement."""

    def __init__(self, context: Context, host: HostLine, streams: int, seconds: float, most: int) -> None:
        """Take what the peer said, and how long and with how many bytes all measurements together may take."""
        self._context, self._host, self._streams = context, host, max(2, streams)
        self._seconds, self._most = seconds / _TESTS, max(_LARGEST_RECORD, most // _TESTS)
        self._memory = _MemoryRecords(context.folder)
        self._plain: list[DataConnection] = []
        self._encrypted: list[DataConnection] = []
        self._number = 1  # of the next connection
        self._forth: dict[DataConnection, TcpFacts] = {}  # as the source sees them
        self._found = _nothing_found(self._streams)

    def run(self) -> LineRates:
        """Measure everything. Raises PeerUnreachable if the peer cannot be reached, and TransferFailed."""
        context, found = self._context, self._found
        plain = ConnectionParameters(context, encrypts=False)
        try:
            self._plain.append(connect_first(context, plain).link(_TIMEOUT, drives=True))
            found["round_trip"] = tcp_facts(self._plain[0].socket)["round_trip"]
            for way in (_FORTH, _BACK):
                self._rates(way)["one_stream"] = self._measure(self._plain, way)
            self._connect(self._plain, plain)
            for way in (_FORTH, _BACK):
                self._rates(way)["several_streams"] = self._measure(self._plain, way)
            with self._naming_gap():
                self._connect(self._encrypted, self._with_tls())
                for way in (_FORTH, _BACK):
                    self._rates(way)["encrypted"] = self._measure(self._encrypted, way)
            self._plain[0].send(memoryview(_ASK.pack(_END, 0.0, 0)))
        except (ConnectionLost, FrameError, HandshakeError, OSError, ValueError) as error:
            raise TransferFailed(f"the line was lost while it was measured: {error}. Run the task again") from error
        finally:
            for link in (*self._plain, *self._encrypted):
                link.close()
        return found

    @contextlib.contextmanager
    def _naming_gap(self) -> Iterator[None]:
        try:
            yield
        except (ConnectionLost, FrameError, HandshakeError, OSError, ValueError) as error:
            self._found["gaps"].append(f"The line could not be measured with TLS: {error}.")

    def _with_tls(self) -> ConnectionParameters:
        """Raise ValueError if there is no TLS, which is a gap."""
        try:
            return ConnectionParameters(self._context)
        except BenchmarkStop:
            raise
        except TransferFailed as error:
            raise ValueError(str(error)) from error

    def _connect(self, links: list[DataConnection], parameters: ConnectionParameters) -> None:
        address, port = str(self._context.peer["address"]), int(self._context.peer["port"])
        while len(links) < self._streams:
            links.append(connect(parameters, address, port, self._number).link(_TIMEOUT, drives=True))
            self._number += 1

    def _rates(self, way: int) -> DirectionRates:
        is_forth = (way == _FORTH) == (self._context.side == "source")
        return self._found["forth" if is_forth else "back"]

    def _measure(self, links: Sequence[DataConnection], way: int) -> float:
        """Return how many bytes a second go over these connections in one direction."""
        most = max(_LARGEST_RECORD, self._most // len(links))
        with ThreadPoolExecutor(len(links)) as pool:
            try:
                done = list(pool.map(lambda link: self._measure_one(link, way, most), links))
            except BaseException:  # the pool waits for its threads, and a stop would wait with it
                for link in links:
                    link.abort("the measurement ended")
                raise
        self._learn([report for _received, report in done], links)
        return sum(received.rate if way == _BACK else report.rate for received, report in done)

    def _measure_one(self, link: DataConnection, way: int, most: int) -> tuple[Received, _Report]:
        bound_unsent(link.socket, _UNSENT)
        with _ending(link, self._seconds + _TIMEOUT):
            link.send(memoryview(_ASK.pack(way, self._seconds, most)))
            if way == _FORTH:
                received = Received(self._memory.send(link, self._seconds, most), 0.0)
            else:
                received = self._memory.receive(link, self._seconds, most)
            return received, _read_report(link)

    def _learn(self, reports: Sequence[_Report], links: Sequence[DataConnection]) -> None:
        """Take what both kernels say of the connections."""
        found, is_source = self._found, self._context.side == "source"
        own, peer = [tcp_facts(link.socket) for link in links], [report.tcp for report in reports]
        found["bytes"] += sum(report.amount for report in reports)
        sends_forth = own if is_source else peer
        self._forth.update(zip(links, sends_forth))
        sent, lost = (sum(one[name] for one in self._forth.values()) for name in ("sent", "lost"))
        found["loss"] = min(1.0, max(0, lost) / sent) if sent > 0 else 0.0
        trips = [one["round_trip"] for one in (*own, *peer) if one["round_trip"] > 0]
        found["round_trip"] = min([found["round_trip"] or 1e9, *trips]) if trips else found["round_trip"]
        found["path_mtu"] = min((one["path_mtu"] for one in (*own, *peer) if one["path_mtu"] > 0), default=0)
        found["congestion"] = sends_forth[0]["congestion"]
        sides = (side_facts(links[0].socket, self._host), reports[0].side)
        found["source"], found["dest"] = sides if is_source else sides[::-1]
        found["window"] = window_of(found["source"], found["dest"])


def window_of(source: SideFacts, dest: SideFacts) -> int:
    """Return how many bytes may be under way by the limits of both buffers; 0 where one is not known. Pure.

    Linux offers about half of the receive buffer as the window, and keeps the rest for what packets cost in memory.
    """
    return min(source["send_buffer"], dest["receive_buffer"] // 2)


def _nothing_found(streams: int) -> LineRates:
    return {
        "forth": {"one_stream": 0.0, "several_streams": 0.0, "streams": streams, "encrypted": 0.0},
        "back": {"one_stream": 0.0, "several_streams": 0.0, "streams": streams, "encrypted": 0.0},
        "round_trip": 0.0,
        "loss": 0.0,
        "path_mtu": 0,
        "window": 0,
        "congestion": "",
        "source": {"interface": 0.0, "bond": "", "send_buffer": 0, "receive_buffer": 0},
        "dest": {"interface": 0.0, "bond": "", "send_buffer": 0, "receive_buffer": 0},
        "bytes": 0,
        "gaps": [],
    }
