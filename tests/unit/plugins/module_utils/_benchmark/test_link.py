# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The line between two ends is measured over loopback, and a peer with nonsense ends nothing else."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any, Iterator

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
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.connect import ConnectionParameters, connect
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
