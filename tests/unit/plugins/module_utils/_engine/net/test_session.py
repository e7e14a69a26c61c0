# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What two ends tell each other at the end of a session, over a real pair of sockets."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.control_channel import Channel
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.session import WireSession
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.ticket_file import (
    OWN,
    PEER,
    read_ticket,
    write_ticket,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.conversation import Contents
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.frames import (
    VERSION,
    FrameDecoder,
    FrameKind,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.messages import Hello, dump_message
from ansible_collections.longhaul.fleet.plugins.module_utils._model.ticket import Ticket
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.liar import GREETING, KEY, End
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ID, settings


def begin(side: str, connection: socket.socket, folder: Path) -> WireSession:
    """Begin the session of one side."""
    folder.mkdir(mode=0o700)
    context = Context(side=side, part="drive", root=b"/", settings=settings("stream"), folder=str(folder))
    fd = connection.detach()
    session = WireSession(context, [Channel(fd, fd, 60)], Contents.BUNDLES)
    session.start(lambda _stream, message: session.put(message))
    return session


def test_whoever_ends_since_it_was_cancelled_tells_its_peer_before(tmp_path: Path) -> None:
    ends = socket.socketpair()
    source, dest = (begin(side, end, tmp_path / side) for side, end in zip(("source", "dest"), ends))
    write_ticket(str(tmp_path / "source"), OWN, Ticket(cancelled=True))
    wait_for(lambda: source.tickets.own.read().cancelled, seconds=10)
    source.fail("it was cancelled")  # at once: what is told from time to time need not have been
    wait_for(lambda: not dest._events.empty(), seconds=10)
    for session in (source, dest):
        session.close()
    assert read_ticket(str(tmp_path / "dest"), PEER) == Ticket(cancelled=True)
    assert os.listdir(tmp_path / "source") == [OWN]


def test_a_peer_that_lies_and_hangs_up_is_not_taken_for_one_that_was_lost(tmp_path: Path) -> None:
    """Whoever leads may be at work meanwhile, and hears first that the connection is gone."""
    end = End(tmp_path, "dest")
    end.say(FrameKind.SENT, dump_message({"id": 1, "problems": {}, "sums": {}, "bytes": 10}))  # of no shard
    assert "protocol error" in str(end.finish_refused())
    with pytest.raises(TransferFailed, match="protocol error"):
        end.conversation.session.check()


def said_by(end: End, count: int) -> list[FrameKind]:
    """Return the first frames that an end sends."""
    decoder, found = FrameDecoder(KEY), []
    end.control.settimeout(20)
    while len(found) < count:
        found += [FrameKind(frame.kind) for frame in decoder.feed(end.control.recv(1 << 16))]
    return found[:count]


def test_the_source_offers_its_tree_before_it_has_heard_its_peer(tmp_path: Path) -> None:
    end = End(tmp_path, "source", greeting=None)
    assert said_by(end, 3) == [FrameKind.HELLO, FrameKind.SHARD, FrameKind.TOTAL]
    end.say(FrameKind.HELLO, GREETING.dump())
    assert isinstance(end.finish(), TransferFailed)  # it hung up


@pytest.mark.parametrize("side", ["source", "dest"])
@pytest.mark.parametrize("greeting", [Hello(VERSION + 1, ID, False), Hello(VERSION, "0" * 16, False)])
def test_a_peer_that_means_something_else_is_refused(tmp_path: Path, side: str, greeting: Hello) -> None:
    ended = End(tmp_path, side, greeting=greeting).finish_refused()
    assert isinstance(ended, TransferFailed) and "do not mean the same transfer" in str(ended)
