# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an ssh server sends first, whole, in pieces, and wrong; and a server that is asked for real."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._ssh.probe import (
    LISTS,
    MAX_LINE,
    MAX_LINES,
    NoAnswer,
    NotSsh,
    ask,
    parse,
)

VERSION = b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"
OFFERED = {
    "kex": "curve25519-sha256,diffie-hellman-group14-sha256,ext-info-s,kex-strict-s-v00@openssh.com",
    "host_keys": "rsa-sha2-512,ssh-ed25519",
    "ciphers_to_server": "chacha20-poly1305@openssh.com,aes128-ctr",
    "ciphers_to_client": "aes128-ctr",
    "macs_to_server": "umac-64-etm@openssh.com",
    "macs_to_client": "umac-64-etm@openssh.com",
    "compression_to_server": "none,zlib@openssh.com",
    "compression_to_client": "none",
}


def packet(body: bytes, kind: int = 20, padding: int = 6) -> bytes:
    return struct.pack(">IBB", len(body) + padding + 2, padding, kind) + body + bytes(padding)


def body(offered=None) -> bytes:
    offered = offered or OFFERED
    lists = [*(offered[name].encode() for name in LISTS), b"", b""]
    return bytes(range(16)) + b"".join(struct.pack(">I", len(text)) + text for text in lists) + bytes(5)


GOOD = VERSION + packet(body())


def test_the_lists_are_read_and_what_is_no_key_exchange_is_left_out():
    offer = parse(GOOD)
    assert offer.version == "SSH-2.0-OpenSSH_9.2p1 Debian-2"
    assert offer.lists["kex"] == ["curve25519-sha256", "diffie-hellman-group14-sha256"]
    expected = {name: text.split(",") for name, text in OFFERED.items() if name != "kex"}
    assert {name: offer.lists[name] for name in expected} == expected


@pytest.mark.parametrize("count", range(len(GOOD)))
def test_every_beginning_of_it_asks_for_more(count):
    assert parse(GOOD[:count]) is None


@pytest.mark.parametrize(
    "before", [b"Welcome\r\n", b"\r\n" * 20, b"no ssh yet\n"], ids=["greeting", "empty lines", "bare newline"]
)
def test_lines_before_the_version_are_passed_over(before):
    assert parse(before + GOOD).lists["host_keys"] == ["rsa-sha2-512", "ssh-ed25519"]


def test_what_follows_does_not_matter():
    assert parse(GOOD + b"\0" * 100) == parse(GOOD)


def test_an_empty_list_is_empty():
    assert parse(VERSION + packet(body({**OFFERED, "macs_to_client": ""}))).lists["macs_to_client"] == []


def cut(at: int) -> bytes:
    return VERSION + packet(body()[:at])


@pytest.mark.parametrize(
    "data, says",
    [
        (b"SSH-1.5-Cisco-1.25\r\n", "version 2"),
        (b"SSH-1.5-Cisco-1.25\r\n" + packet(body()), "version 2"),
        (b"220 ftp ready\r\n" * (MAX_LINES + 1), "never its version"),
        (b"x" * (MAX_LINE + 2), "lines of more"),
        (VERSION + packet(body(), kind=1), "message 1"),
        (VERSION + b"\xff" * 6, "4294967295 bytes"),
        (VERSION + struct.pack(">IBB", 5, 4, 20), "5 bytes"),
        (VERSION + struct.pack(">IBB", 20, 19, 20), "20 bytes"),
        (cut(18), "before its list kex"),
        (cut(30), "kex that is longer"),
        (cut(len(body()) - 60), "longer|before"),
        (VERSION + packet(body()[:16] + b"\xff\xff\xff\xff" + body()[20:]), "kex that is longer"),
    ],
)
def test_what_is_no_offer_is_refused_with_the_reason(data, says):
    with pytest.raises(NotSsh, match=says):
        parse(data)


def test_version_1_99_is_version_2():
    assert parse(GOOD.replace(b"SSH-2.0-", b"SSH-1.99-")).version.startswith("SSH-1.99-")


class Server:
    """A server that sends something in pieces, then waits or closes."""

    def __init__(self, pieces, close=True):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.heard = b""
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(pieces, close), daemon=True)
        self.thread.start()

    def run(self, pieces, close):
        connection, _address = self.listening.accept()
        with connection:
            connection.settimeout(10)
            self.heard = connection.recv(100)
            with contextlib.suppress(OSError):  # who asks hangs up as soon as it has heard enough
                for piece in pieces:
                    connection.sendall(piece)
            if not close:
                self.done.wait(10)

    def stop(self):
        self.done.set()
        self.thread.join(10)
        self.listening.close()


@pytest.fixture
def serve():
    servers = []

    def start(pieces, close=True):
        servers.append(Server(pieces, close))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def test_a_server_is_asked_and_hears_who_asks(serve):
    server = serve([GOOD[:7], GOOD[7:60], GOOD[60:]], close=False)
    answer = ask("127.0.0.1", server.port, 10)
    assert (answer.offer, answer.address) == (parse(GOOD), "127.0.0.1")
    assert server.heard == b"SSH-2.0-longhaul_offer\r\n"


@pytest.mark.parametrize(
    "pieces, close, says",
    [
        ([], True, "closed the connection"),
        ([GOOD[:50]], True, "closed the connection"),
        ([GOOD[:50]], False, "it is silent"),
        ([b"HTTP/1.1 400 Bad Request\r\n"] * 2000, True, "not an ssh server"),
        ([b"SSH-1.5-old\r\n"], False, "not an ssh server that can be used: SSH-1.5-old"),
    ],
)
def test_a_server_that_does_not_tell_is_described(serve, pieces, close, says):
    with pytest.raises(NoAnswer, match=says):
        ask("127.0.0.1", serve(pieces, close).port, 0.5)


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(NoAnswer, match=f"127.0.0.1 port {port} cannot be reached"):
        ask("127.0.0.1", port, 5)


def test_an_unknown_name():
    with pytest.raises(NoAnswer, match=r"does not know the name host\.invalid|did not answer"):
        ask("host.invalid", 22, 5)
