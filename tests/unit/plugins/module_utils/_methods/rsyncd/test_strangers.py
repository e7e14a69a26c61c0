# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Other users of the host and of the network at the port of a daemon for one transfer, with the real rsync."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.pending_connections import MOST
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsyncd import method as rsyncd
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import Pair, settings

SECRET = "not-a-secret-of-strangers"

# A user who takes a port now and then, for a moment, and says what came there.
ROGUE = """
import os, random, socket, sys, time
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
print("ready", flush=True)
while True:
    time.sleep(random.random() * 0.1)
    with socket.socket() as rogue:
        rogue.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        rogue.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            rogue.bind(("127.0.0.1", int(sys.argv[1])))
            rogue.listen(8)
        except OSError:
            continue
        rogue.settimeout(0.03)
        try:
            client = rogue.accept()[0]
        except OSError:
            continue
        with client:
            client.sendall(b"@RSYNCD: 31.0 sha512 sha256 sha1 md5 md4\\n")
            client.settimeout(5)
            said = b""
            while b"longhaul" not in said:
                piece = client.recv(1000)
                if not piece:
                    break
                said += piece
            if said:
                print("caught", said, flush=True)
"""


@pytest.fixture(name="pair")
def a_pair(tmp_path) -> Pair:
    pair = Pair(tmp_path)
    (pair.source / "file").write_text("x" * 1000)
    return pair


@contextlib.contextmanager
def daemon(pair: Pair, said: list[str], **serve) -> Iterator[rsyncd.OwnDaemon]:
    plan = settings(method="rsyncd")
    pair.staged(plan)
    context = pair.context("dest", "serve", plan)
    context.serve.update({"address": "127.0.0.1", "ports": [0], "allow": ["127.0.0.1"], **serve})
    context.secrets, context.log = {"daemon": SECRET}, said.append
    try:
        server = rsyncd.serve(context)
        try:
            yield server
        finally:
            server.close()
    finally:
        pair.close()
        pair.unstage()


def push(pair: Pair, server: rsyncd.OwnDaemon) -> None:
    context = pair.context("source", "drive", settings(method="rsyncd"))
    context.peer, context.secrets = {**server.ready, "address": "127.0.0.1"}, {"daemon": SECRET}
    outcome = rsyncd.drive(context)
    assert (outcome.failure, outcome.errors) == ("", [])
    assert (pair.dest / "file").read_bytes() == (pair.source / "file").read_bytes()


def test_a_port_of_another_user_is_never_taken_for_the_daemons(pair):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    rogue = subprocess.Popen([sys.executable, "-c", ROGUE, str(port)], stdout=subprocess.PIPE)
    served = refused = 0
    try:
        assert rogue.stdout.readline() == b"ready\n"
        end = time.monotonic() + 90
        while (served < 2 or refused < 2) and time.monotonic() < end:
            try:
                with daemon(pair, [], ports=[port]) as server:
                    assert server.ready["port"] == port
                    push(pair, server)
                    served += 1
            except TransferFailed as error:
                assert "taken by another program" in str(error)
                refused += 1
    finally:
        rogue.kill()
        assert rogue.communicate()[0] == b""
    assert served and refused  # by chance, who comes first


@pytest.mark.parametrize("said", [b"", b"@RSYNCD: 31.0 sha512\n", b"@RSYNCD: 31.0 sha512\nlonghaul\n"])
def test_strangers_on_the_port_do_not_keep_the_peer_out(pair, said):
    log: list[str] = []
    with daemon(pair, log) as server, contextlib.ExitStack() as stack:
        for _number in range(MOST + 8):
            stranger = stack.enter_context(socket.create_connection(("127.0.0.1", server.ready["port"]), timeout=5))
            stranger.sendall(said)
        begun = time.monotonic()
        push(pair, server)
        assert time.monotonic() - begun < 20
        wait_for(lambda: not server.active(), seconds=10)  # strangers do not keep the job


def test_what_strangers_do_takes_no_space(pair):
    log: list[str] = []
    with daemon(pair, log) as server:
        folder = os.path.dirname(server._files[0])
        for _number in range(60):
            with socket.create_connection(("127.0.0.1", server.ready["port"]), timeout=10) as stranger:
                stranger.sendall(b"@RSYNCD: 31.0 sha512\nno-such-module-%s\n" % (b"x" * 500))
                while stranger.recv(1000):
                    pass
        assert sum(entry.stat().st_size for entry in os.scandir(folder)) < 10_000
        push(pair, server)
    assert len("".join(log)) < 100_000
