# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The line between two ends is measured over loopback, and a peer with nonsense ends nothing else."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._benchmark import link
from ansible_collections.longhaul.fleet.plugins.module_utils._benchmark.line_facts import (
    HostLine,
    Interface,
    parse_addresses,
    read_host,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import PeerUnreachable, TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net import connect as connect_module
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.connect import (
    Connection,
    ConnectionParameters,
    Listener,
    connect,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.data_connection import (
    ConnectionLost,
    DataConnection,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.frames import FrameError
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.records import Record, RecordKind
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer import credentials

HOST = HostLine({"127.0.0.1": Interface(125e6, "802.3ad")}, (4 << 20, 6 << 20))
MIB = 1 << 20


class Ends:
    """Both ends on this machine, of which the serving one listens."""

    def __init__(self, folder: Path, source_drives: bool) -> None:
        made, _public = credentials.for_transfer("stream", True, None)
        self.said: list[str] = []
        self.folder, self.secrets = str(folder), made
        self.sides = ("source", "dest") if source_drives else ("dest", "source")
        self.server = link.LineServer(self.context("serve"), HOST, 1.0, 8 * MIB)
        self.failed: list[str] = []
        self.waiting = threading.Thread(target=self._wait, daemon=True)

    def _wait(self) -> None:
        try:
            self.server.wait()
        except TransferFailed as error:
            self.failed.append(str(error))

    def context(self, part: str) -> Context:
        settings: Any = {"encrypt": True, "timeout": 0}
        return Context(
            self.sides[0] if part == "drive" else self.sides[1],
            part,
            b"/",
            settings,
            self.folder,
            peer={} if part == "serve" else {"address": "127.0.0.1", "port": self.server.port},
            serve={"address": "127.0.0.1"},
            secrets=dict(self.secrets[part]),
            log=self.said.append,
        )

    def drive(self, seconds: float = 0.6, most: int = 48 * MIB) -> link.LineRates:
        self.waiting.start()
        found = link.LineDriver(self.context("drive"), HOST, 2, seconds, most).run()
        self.waiting.join(10)
        return found


@pytest.fixture(name="ends", params=[True, False], ids=["push", "pull"])
def _ends(request: Any, tmp_path: Path) -> Iterator[Ends]:
    made = Ends(tmp_path, request.param)
    yield made
    made.server.close()


def test_both_directions_are_measured_with_one_and_several_connections(ends: Ends, tmp_path: Path) -> None:
    found = ends.drive()
    for way in ("forth", "back"):
        rates = found[way]
        assert min(rates["one_stream"], rates["several_streams"], rates["encrypted"]) > 0
        assert rates["streams"] == 2
    assert found["gaps"] == []
    assert 0 < found["bytes"] <= 48 * MIB
    assert 0 <= found["loss"] <= 1
    assert found["window"] == 3 * MIB
    assert found["source"] == found["dest"]
    assert (found["source"]["interface"], found["source"]["bond"]) == (125e6, "802.3ad")
    if Path("/proc/sys/net").exists():
        assert 0 < found["round_trip"] < 10
        assert found["path_mtu"] >= 1280
        assert found["congestion"]
    assert not ends.waiting.is_alive()
    assert ends.failed == []
    assert list(tmp_path.iterdir()) == []


def test_a_peer_that_asks_for_nonsense_is_dropped_and_the_next_one_is_served(ends: Ends) -> None:
    context = ends.context("drive")
    plain = ConnectionParameters(context, encrypts=False)
    for data in (b"\x09" + bytes(16), b"\x01" + bytes(16) + b"x" * 100):
        connection = connect(plain, "127.0.0.1", ends.server.port, 1).link(5.0, drives=True)
        connection.send(memoryview(data))
        with pytest.raises(Exception, match="closed|reset"):
            connection.receive(1)
        connection.close()
    assert ends.drive(0.1, 6 * MIB)["bytes"] > 0


def too_much(connection: DataConnection) -> None:
    for _number in range(200):
        connection.send_head(Record(RecordKind.RAW, length=MIB, size=MIB))
        connection.send(memoryview(bytes(MIB)))


def too_large(connection: DataConnection) -> None:
    connection.send_head(Record(RecordKind.RAW, length=2 * MIB, size=2 * MIB))
    connection.send(memoryview(bytes(2 * MIB)))


def too_long(connection: DataConnection) -> None:
    for _number in range(200):
        connection.send_head(Record(RecordKind.RAW, length=1, size=1))
        connection.send(memoryview(b"x"))
        time.sleep(0.05)


@pytest.mark.parametrize("flood", [too_much, too_large, too_long])
def test_a_peer_that_finds_no_end_is_dropped(
    ends: Ends, flood: Callable[[DataConnection], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "_TIMEOUT", 0.3)
    plain = ConnectionParameters(ends.context("drive"), encrypts=False)
    connection = connect(plain, "127.0.0.1", ends.server.port, 1).link(5.0, drives=True)
    connection.send(memoryview(link._ASK.pack(link._FORTH, 0.1, MIB)))
    with pytest.raises(ConnectionLost, match="closed|reset|pipe"):
        flood(connection)
        connection.receive(1)
    connection.close()


@pytest.mark.parametrize("flood", [too_much, too_large, too_long])
def test_a_serving_end_that_finds_no_end_is_left(
    ends: Ends, flood: Callable[[DataConnection], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "_TIMEOUT", 0.3)
    ends.server.close()
    served: list[DataConnection] = []

    def arrived(connection: Connection) -> None:
        served.append(connection.link(5.0, drives=False))
        served[0].receive(link._ASK.size)
        with contextlib.suppress(ConnectionLost):
            flood(served[0])

    context = ends.context("serve")
    monkeypatch.setattr(link, "_FORTH", 3)  # no direction: the driving end receives in the first measurement
    listener = Listener(context, ConnectionParameters(context, encrypts=False), arrived)
    ends.server.port = listener.port
    with pytest.raises(TransferFailed, match="more bytes|longer than"):
        link.LineDriver(ends.context("drive"), HOST, 2, 0.1, MIB).run()
    listener.close()
    for one in served:
        one.close()


def test_a_server_whose_peer_stays_without_an_end_ends(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_TIMEOUT", 0.05)
    monkeypatch.setattr(link, "_FIRST", 0.2)
    plain = ConnectionParameters(ends.context("drive"), encrypts=False)
    connection = connect(plain, "127.0.0.1", ends.server.port, 1)
    with pytest.raises(TransferFailed, match="did not end the measurement"):
        ends.server.wait()
    connection.socket.close()


def test_the_number_of_connections_is_bounded(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_MOST_LINKS", 2)
    plain = ConnectionParameters(ends.context("drive"), encrypts=False)
    held = []
    for number in range(3):
        held.append(connect(plain, "127.0.0.1", ends.server.port, number).link(5.0, drives=True))
        time.sleep(0.1)
    with pytest.raises(ConnectionLost, match="closed|reset"):
        held[2].receive(1)
    for one in held:
        one.close()


def report(**changes: object) -> bytes:
    values: dict[str, Any] = {
        "rate": 1e6,
        "amount": 5,
        "tcp": {"round_trip": 0.1, "sent": 1, "lost": 0, "path_mtu": 1500, "congestion": "cubic"},
        "side": {"interface": 0, "bond": "", "send_buffer": 1, "receive_buffer": 1},
    }
    for name, value in changes.items():
        holder = next(one for one in (values, values["tcp"], values["side"]) if name in one)
        holder[name] = value
    return json.dumps(values).encode()


def test_a_report_is_read() -> None:
    found = link._parse_report(report(rate=7))
    assert (found.rate, found.amount, found.tcp["congestion"]) == (7.0, 5, "cubic")


@pytest.mark.parametrize(
    "said",
    [
        report(rate=float("nan")),
        report(rate=float("inf")),
        report(rate=10**400),
        report(rate=-1),
        report(round_trip=float("inf")),
        report(interface=10**400),
        report(amount=10**400),
        report(send_buffer=1 << 64),
        report(lost="1"),
        report(sent=True),
        b"[" * 4000,
        b"\xff",
        b"[]",
    ],
)
def test_a_report_with_nonsense_is_refused(said: bytes) -> None:
    with pytest.raises((FrameError, ValueError)):
        link._parse_report(said)


def test_a_stop_in_the_measurement_with_tls_is_no_gap(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(driver: link.LineDriver, links: list[DataConnection], parameters: ConnectionParameters) -> None:
        if parameters.encrypts:
            raise TransferFailed("the benchmark was stopped")
        connect_all(driver, links, parameters)

    connect_all = link.LineDriver._connect
    monkeypatch.setattr(link.LineDriver, "_connect", stop)
    with pytest.raises(TransferFailed, match="was stopped"):
        ends.drive(0.1, 6 * MIB)


def test_a_stop_while_tls_is_made_is_no_gap(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_context: object) -> None:
        raise link.BenchmarkStop("the benchmark was stopped")

    monkeypatch.setattr(connect_module, "_tls", stop)
    with pytest.raises(link.BenchmarkStop):
        ends.drive(0.1, 6 * MIB)
    with pytest.raises(link.BenchmarkStop):
        link.LineServer(ends.context("serve"), HOST, 1.0, 8 * MIB)


def test_a_stranger_gets_nothing(ends: Ends) -> None:
    with socket.create_connection(("127.0.0.1", ends.server.port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.0\r\n\r\n" * 10)
        stranger.settimeout(5)
        assert not read_or_reset(stranger)
    assert ends.drive(0.1, 6 * MIB)["bytes"] > 0


def read_or_reset(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1)
    except ConnectionResetError:
        return b""


def test_a_server_that_nobody_connects_to_ends(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_FIRST", 0.1)
    with pytest.raises(TransferFailed, match="did not connect"):
        ends.server.wait()


def test_who_cannot_connect_says_so(ends: Ends) -> None:
    context = ends.context("drive")
    ends.server.close()
    with pytest.raises(PeerUnreachable, match="Open the port"):
        link.LineDriver(context, HOST, 2, 0.1, MIB).run()


def test_without_tls_the_plain_rates_remain(ends: Ends) -> None:
    ends.secrets["drive"]["tls_peer"] = ends.secrets["drive"]["tls_certificate"]
    found = ends.drive(0.1, 6 * MIB)
    assert found["forth"]["one_stream"] > 0
    assert found["forth"]["encrypted"] == 0
    assert "could not be measured with TLS" in found["gaps"][0]


def test_addresses_are_those_of_interfaces() -> None:
    said = (
        "1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever\n"
        "2: eth0    inet 10.0.0.1/24 brd 10.0.0.255 scope global eth0\n"
        "3: bond0.5@bond0    inet6 fd00::1/64 scope global \n"
        "nonsense\n"
    )
    assert parse_addresses(said) == {"127.0.0.1": "lo", "10.0.0.1": "eth0", "fd00::1": "bond0.5"}


def test_this_host_knows_its_buffers() -> None:
    found = read_host()
    assert all(isinstance(size, int) and size >= 0 for size in found.buffers)
    assert all(one.speed >= 0 for one in found.interfaces.values())
