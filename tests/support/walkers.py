# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ends of a conversation that say whatever they may, by chance, or what they may not; without files and connections."""

from __future__ import annotations

from typing import Any, Callable, Protocol, Sequence

from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire import messages
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.conversation import (
    STEPS,
    Contents,
    Conversation,
    LanePhase,
    Role,
    Said,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.frames import (
    Frame,
    FrameEncoder,
    FrameError,
    FrameKind,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.summary import Summary
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._model.ticket import Ticket

KEY = b"k" * 32
MANY = 1000  # shards that may be under way
FILE = Entry(b"a", "f", 0o644, 0, 0, 5, 1, 2, 3, 4, 1, 0, 0)

_MAKERS: dict[FrameKind, Callable[[int], Said]] = {
    FrameKind.HELLO: lambda _shard: messages.Hello(1, "0" * 16, False),
    FrameKind.SHARD: lambda shard: messages.Shard(shard, [FILE]),
    FrameKind.WANT: lambda shard: messages.Want(shard, [0], {}, {}, {}),
    FrameKind.ACK: lambda shard: messages.Ack(shard, 1, {}, 0),
    FrameKind.HASH: lambda shard: messages.Hash(shard, [0]),
    FrameKind.SUMS: lambda shard: messages.Sums(shard, {0: "ab"}),
    FrameKind.READY: messages.Ready,
    FrameKind.FETCHED: messages.Fetched,
    FrameKind.SENT: lambda shard: messages.Sent(shard, {}, {}, 5),
    FrameKind.SCANNED: lambda _shard: messages.Scanned(1, 5, True),
    FrameKind.SUMMARY: lambda _shard: Summary(Outcome()),
    FrameKind.FAILED: lambda _shard: messages.FailedMessage("why"),
    FrameKind.PING: lambda _shard: messages.Ping(),
    FrameKind.BYE: lambda _shard: messages.Bye(),
    FrameKind.GOT: lambda shard: messages.Got(shard, 0, [[0, 5]]),
    FrameKind.BLOCKS: lambda shard: messages.BlockSums(shard, 0, 0, bytes(8), is_last=True),
    FrameKind.FEWER: lambda _shard: messages.Fewer([2]),
    FrameKind.PACE: lambda _shard: messages.PaceMessage(Ticket(True, False, 1000)),
    FrameKind.TOTAL: lambda _shard: messages.Total(1, 5, 6),
    FrameKind.BEGIN: lambda shard: messages.Begin(shard, tar=True),
    FrameKind.RAW: lambda _shard: messages.Raw(0),
    FrameKind.END: lambda shard: messages.End(shard, 5, 7),
}


class Chance(Protocol):
    """As much of random.Random as is needed here."""

    def random(self) -> float:
        """Return a random float in [0, 1)."""

    def getrandbits(self, count: int, /) -> int:
        """Return a random integer with this number of bits."""

    def randrange(self, stop: int, /) -> int:
        """Return a random integer in [0, bound)."""

    def choice(self, values: Sequence[Any], /) -> Any:
        """Return one of these."""


def message(kind: FrameKind, shard: int) -> Said:
    """Return a message of a kind, about a shard of one file where the kind is about one."""
    return _MAKERS[kind](shard) if kind in _MAKERS else Frame(kind, b"12345")


class Walker:
    """One end, with what is on its way to it on each connection."""

    def __init__(self, role: Role, contents: Contents, lanes: int) -> None:
        self.end = Conversation(role, contents, MANY)
        self.lanes = [self.end.lane(KEY, KEY) for _number in range(lanes)]
        self.arriving = [bytearray() for _number in range(lanes)]
        self.sent: list[list[bytes]] = [[] for _number in range(lanes)]
        self.received: list[list[bytes]] = [[] for _number in range(lanes)]
        self._steps = STEPS[contents]
        self._offered = self.heard = 0  # the number of the last shard, as it was sent and as it came

    def say(self, chance: Chance, peer: Walker) -> None:
        """Send something that may be sent now, if there is anything."""
        number = chance.randrange(len(self.lanes))
        lane, role = self.lanes[number], self.end.role
        due = [kind for kind in self.end.due(lane, role) if kind not in _RARE or chance.random() < _RARE[kind]]
        if not number and not lane.is_over and chance.random() < _FAILING:
            due = [FrameKind.FAILED]
        if not due:
            return
        kind = chance.choice(due)
        shards = [shard for shard, at in self.end.shards.items() if kind in self._steps[at.step]]
        if kind in (FrameKind.END, FrameKind.SENT) and self.lanes[number].carried in shards:
            shards = [lane.carried]
        elif kind == FrameKind.END or (kind == FrameKind.SENT and FrameKind.END in _kinds(self._steps)):
            return  # what flows on another connection
        if kind == FrameKind.SHARD:
            self._offered += 1
            shards = [self._offered]
        said = message(kind, chance.choice(shards) if shards else 0)
        peer.arriving[number] += lane.send(said)
        self.sent[number].append(bytes(said.dump()))

    def hear(self, number: int, count: int) -> None:
        """Let so many bytes arrive on a connection."""
        data = bytes(self.arriving[number][:count])
        del self.arriving[number][:count]
        self.received[number] += [bytes(said.dump()) for said in self.lanes[number].receive(data)]


_RARE = {FrameKind.TOTAL: 0.05, FrameKind.SHARD: 0.3}  # or a walk would be over before anything is under way
_FAILING = 0.0003


def _lanes(contents: Contents) -> int:
    return 3 if contents is Contents.ARCHIVES else 1


def _kinds(steps: Any) -> set[FrameKind]:
    return {kind for allowed in steps.values() for kind in allowed}


class Walk:
    """Both ends."""

    def __init__(self, contents: Contents) -> None:
        self.source, self.dest = (Walker(role, contents, _lanes(contents)) for role in (Role.SOURCE, Role.DEST))


def walk(contents: Contents, chance: Chance, turns: int) -> Walk:
    """Let both ends take so many turns, and all arrive that was sent."""
    ends = Walk(contents)
    both = (ends.source, ends.dest)
    for _turn in range(turns):
        number = chance.randrange(2)
        if chance.random() < 0.5:
            both[number].say(chance, both[1 - number])
        else:
            lane = chance.randrange(len(both[number].lanes))
            both[number].hear(lane, chance.randrange(400))
    for end in both:
        for lane, arriving in enumerate(end.arriving):
            end.hear(lane, len(arriving))
    return ends


def lie(contents: Contents, role: Role, chance: Chance, turns: int) -> str:
    """Let an end of that role take so many turns with a peer that says anything; return what it was refused for.

    What is not refused was due.
    """
    honest, peer = (Walker(each, contents, _lanes(contents)) for each in (role, _other(role)))
    encoders = [FrameEncoder(KEY) for _lane in honest.lanes]
    for _turn in range(turns):
        honest.say(chance, peer)
        number = chance.randrange(len(encoders))
        lane = honest.lanes[number]
        due = honest.end.due(lane, peer.end.role)
        kind = chance.choice(due if due and chance.random() < 0.9 else list(FrameKind))
        under_way = [*honest.end.shards, 1, 2]
        payload = bytearray(message(kind, _number(chance, kind, honest, under_way)).dump())
        if payload and chance.random() < 0.1:
            payload[chance.randrange(len(payload))] = chance.getrandbits(8)
        is_over = not due and lane.phases[peer.end.role] in (LanePhase.GONE, LanePhase.FAILED)
        try:
            list(lane.receive(encoders[number].encode(kind, bytes(payload))))
        except FrameError as error:
            assert lane.is_refused
            return str(error)
        assert kind in due or (kind in (FrameKind.PING, FrameKind.PACE, FrameKind.FAILED) and not is_over), (kind, due)
    return ""


def _number(chance: Chance, kind: FrameKind, honest: Walker, under_way: list[int]) -> int:
    if kind != FrameKind.SHARD:
        return int(chance.choice(under_way))
    honest.heard += 1
    return honest.heard


def _other(role: Role) -> Role:
    return Role.DEST if role is Role.SOURCE else Role.SOURCE
