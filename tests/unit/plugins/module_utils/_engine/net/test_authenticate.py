# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Both ends of a connection prove that they know the secret, however their messages are cut on the way."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net import authenticate
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.handshake import HandshakeError


def reader(connection, most):
    """Read at most so many bytes at once, and have nothing every other time."""
    turns = iter(range(10**6))
    return partial(
        authenticate.read_exactly, lambda count: connection.recv(min(count, most)) if next(turns) % 2 else None
    )


def meet(drive_secret, serve_secret, greeting=b"", most=1 << 20):
    """Let two ends shake hands; return what came of it at the driving and at the serving end."""
    here, there = socket.socketpair()

    def drive():
        with here:
            return authenticate.drive(drive_secret, 3, reader(here, most), here.sendall, greeting)

    def serve():
        with there:
            assert reader(there, most)(len(greeting)) == greeting
            return authenticate.serve(serve_secret, 3, reader(there, most), there.sendall)

    with ThreadPoolExecutor(2) as pool:
        return [end.exception() or end.result() for end in (pool.submit(drive), pool.submit(serve))]


@pytest.mark.parametrize("most", [1, 7, 1 << 20])
@pytest.mark.parametrize("greeting", [b"", b"hello"])
def test_two_that_know_the_secret_have_the_same_keys(greeting, most):
    drives, serves = meet("secret", "secret", greeting, most)
    assert drives == serves
    assert drives.drive != drives.serve


def test_a_stranger_is_found_out_by_both():
    drives, serves = meet("secret", "another")
    assert isinstance(drives, HandshakeError)
    assert "does not know this transfer's secret" in str(drives)
    assert isinstance(serves, HandshakeError)
    assert "ended during the handshake" in str(serves)


def test_who_says_nothing_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(authenticate, "HANDSHAKE_SECONDS", 0.05)
    with pytest.raises(HandshakeError, match="said too little"):
        authenticate.read_exactly(lambda count: None, 1)
