# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A peer that goes on saying that it lives, and does nothing: a transfer waits for it until its timeout."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.sender import sender
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.frames import FrameKind
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.messages import Hash, Ping
from ansible_collections.longhaul.fleet.tests.support.liar import End

TIMEOUT = 2


class Pinging:
    """Send a ping several times in each second, for the time of a block."""

    def __init__(self, end: End, works: bool) -> None:
        self._end, self._works = end, works
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._over.wait(0.2):
            self._end.say(FrameKind.PING, Ping(self._works).dump())

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()


def has_ended(end: End, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while end.ended is None and time.monotonic() < until:
        time.sleep(0.05)
    return end.ended is not None


@pytest.mark.parametrize("side", ["dest", "source"])
def test_a_peer_that_only_says_that_it_lives_is_given_up(tmp_path, side):
    end = End(tmp_path, side, timeout=TIMEOUT)
    begun = time.monotonic()
    with Pinging(end, works=False):
        assert has_ended(end, 30)
    assert time.monotonic() - begun > TIMEOUT - 1
    assert isinstance(end.ended, TransferFailed) and f"nothing was transferred for {TIMEOUT} seconds" in str(end.ended)
    end.finish()


def test_a_peer_that_is_at_work_is_waited_for(tmp_path):
    end = End(tmp_path, "dest", timeout=TIMEOUT)
    with Pinging(end, works=True):
        assert not has_ended(end, 3 * TIMEOUT)
    with Pinging(end, works=False):
        assert has_ended(end, 30)
    end.finish()


def test_an_end_that_hashes_says_that_it_is_at_work(tmp_path, monkeypatch):
    real, begun = sender.hash_and_close, threading.Event()

    def slowly(fd: int) -> bytes:
        begun.set()
        time.sleep(3 * TIMEOUT)
        return real(fd)

    monkeypatch.setattr(sender, "hash_and_close", slowly)
    end = End(tmp_path, "source", timeout=TIMEOUT)
    heard = []
    end.control.settimeout(0.2)
    time.sleep(0.5)
    with Pinging(end, works=False):
        end.say(FrameKind.HASH, Hash(1, [1]).dump())
        assert begun.wait(5)
        until = time.monotonic() + 3 * TIMEOUT + 2
        while time.monotonic() < until and b'"sums"' not in b"".join(heard):
            try:
                heard.append(end.control.recv(1 << 16))
            except socket.timeout:  # TimeoutError itself, since Python 3.10
                assert end.ended is None
    said = b"".join(heard)
    assert b'"sums"' in said and said.count(bytes(Ping(works=True).dump())) >= 3
    end.finish()
