# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The conversation as a state machine, without I/O: it says when each end may send which frame.

Each end has a ``Conversation``, with a ``Lane`` for each connection. Bytes that arrive go into a lane and come out as
messages; a message goes in and comes out as bytes. Both are held to the tables below. FrameError says what the peer did
wrong, and Defect what this end was about to do wrong. A state changes before the bytes leave, so an answer never comes
too early. Threads may share a conversation.
"""

from __future__ import annotations

import threading
from enum import Enum
from typing import Callable, Collection, Dict, Iterator, Mapping, Optional, Union

from ..._core.errors import TransferFailed
from . import messages
from .frames import DATA_TYPES, Frame, FrameDecoder, FrameEncoder, FrameError, FrameKind, Payload
from .messages import Message, OfShard, Shard
from .summary import Summary

K = FrameKind


class Role(Enum):
    """Who speaks."""

    SOURCE = "source"
    DEST = "dest"


class Contents(Enum):
    """How the contents of files are sent. There is one connection, but for archives."""

    BUNDLES = "bundles"  # small files in bundles, ranges of large ones over data connections: stream
    ARCHIVES = "archives"  # an archive for each shard, over any of the connections: tar_nc
    PROGRAM = "program"  # a program beside the conversation brings them: scp, sftp


class LanePhase(Enum):
    """Progress of an end on a connection."""

    SILENT = "silent"  # it has said nothing
    OFFERING = "offering"  # the source offers shards
    COUNTED = "counted"  # ... and has found all entries
    SCANNED = "scanned"  # ... and every shard is acknowledged
    ANSWERING = "answering"  # the destination answers
    ACCOUNTED = "accounted"  # it has sent its account
    BESIDE = "beside"  # on a connection other than the first
    GONE = "gone"  # it has nothing more to say
    FAILED = "failed"  # it has given up


class ShardStep(Enum):
    """Progress of a shard."""

    OFFERED = "offered"
    HASHING = "hashing"
    HASHED = "hashed"
    WANTED = "wanted"
    BEGUN = "begun"
    ENDED = "ended"
    READY = "ready"
    FETCHED = "fetched"
    SENT = "sent"


class Flow(Enum):
    """What a connection carries of contents."""

    IDLE = "idle"
    FLOWING = "flowing"  # those of the shard that BEGIN named last


def _stay(state: LanePhase, *kinds: FrameKind) -> dict[FrameKind, LanePhase]:
    return dict.fromkeys(kinds, state)


_CONTENTS = (K.BEGIN, K.RAW, K.DATA, K.DEFLATED, K.ZSTD, K.END, K.SENT)
_ALIVE = (K.PING, K.PACE)
_OFFERS = (*_ALIVE, K.SHARD, K.SUMS, K.READY, *_CONTENTS)
_ANSWERS = (*_ALIVE, K.HASH, K.WANT, K.BLOCKS, K.FETCHED, K.GOT, K.ACK, K.FEWER)
_ENDED: Mapping[LanePhase, Mapping[FrameKind, LanePhase]] = {LanePhase.GONE: {}, LanePhase.FAILED: {}}

# What an end may send in a phase, and the phase that it is in then. FAILED may come on the first connection alone.
PHASES: Mapping[Role, Mapping[LanePhase, Mapping[FrameKind, LanePhase]]] = {
    Role.SOURCE: {
        LanePhase.SILENT: {K.HELLO: LanePhase.OFFERING, K.PING: LanePhase.SILENT, K.FAILED: LanePhase.FAILED},
        LanePhase.OFFERING: {
            **_stay(LanePhase.OFFERING, *_OFFERS),
            K.TOTAL: LanePhase.COUNTED,
            K.FAILED: LanePhase.FAILED,
        },
        LanePhase.COUNTED: {
            **_stay(LanePhase.COUNTED, *_OFFERS),
            K.SCANNED: LanePhase.SCANNED,
            K.FAILED: LanePhase.FAILED,
        },
        LanePhase.SCANNED: {
            **_stay(LanePhase.SCANNED, *_ALIVE),
            K.SUMMARY: LanePhase.ACCOUNTED,
            K.FAILED: LanePhase.FAILED,
        },
        LanePhase.ACCOUNTED: {**_stay(LanePhase.ACCOUNTED, *_ALIVE), K.BYE: LanePhase.GONE, K.FAILED: LanePhase.FAILED},
        LanePhase.BESIDE: {**_stay(LanePhase.BESIDE, K.PING, *_CONTENTS), K.BYE: LanePhase.GONE},
        **_ENDED,
    },
    Role.DEST: {
        LanePhase.SILENT: {K.HELLO: LanePhase.ANSWERING, K.PING: LanePhase.SILENT, K.FAILED: LanePhase.FAILED},
        LanePhase.ANSWERING: {
            **_stay(LanePhase.ANSWERING, *_ANSWERS),
            K.SUMMARY: LanePhase.ACCOUNTED,
            K.FAILED: LanePhase.FAILED,
        },
        LanePhase.ACCOUNTED: {
            **_stay(LanePhase.ACCOUNTED, *_ALIVE, K.FEWER),
            K.BYE: LanePhase.GONE,
            K.FAILED: LanePhase.FAILED,
        },
        LanePhase.BESIDE: {K.PING: LanePhase.BESIDE, K.BYE: LanePhase.GONE},
        **_ENDED,
    },
}

# The phases, on the first connection, in which the receiver of a frame must be before it is sent. One that failed is
# in any of them.
NOT_BEFORE: Mapping[Role, Mapping[FrameKind, frozenset[LanePhase]]] = {
    Role.SOURCE: {
        K.SUMMARY: frozenset({LanePhase.ACCOUNTED, LanePhase.FAILED}),
        K.BYE: frozenset({LanePhase.ACCOUNTED, LanePhase.GONE, LanePhase.FAILED}),
    },
    Role.DEST: {
        K.SUMMARY: frozenset({LanePhase.SCANNED, LanePhase.FAILED}),
        K.BYE: frozenset({LanePhase.ACCOUNTED, LanePhase.GONE, LanePhase.FAILED}),
    },
}

# What may be sent about a shard, and how far the shard is then. None: it is not under way, not yet or no more.
Steps = Dict[Optional[ShardStep], Dict[FrameKind, Optional[ShardStep]]]
_AGREED: Steps = {
    None: {K.SHARD: ShardStep.OFFERED},
    ShardStep.OFFERED: {K.HASH: ShardStep.HASHING, K.WANT: ShardStep.WANTED, K.ACK: None},
    ShardStep.HASHING: {K.SUMS: ShardStep.HASHED},
    ShardStep.HASHED: {K.WANT: ShardStep.WANTED, K.ACK: None},
}
STEPS: Mapping[Contents, Steps] = {
    Contents.BUNDLES: {
        **_AGREED,
        ShardStep.WANTED: {
            K.BEGIN: ShardStep.BEGUN,
            K.BLOCKS: ShardStep.WANTED,
            K.GOT: ShardStep.WANTED,
            K.SENT: ShardStep.SENT,
        },
        ShardStep.BEGUN: {K.BLOCKS: ShardStep.BEGUN, K.GOT: ShardStep.BEGUN, K.SENT: ShardStep.SENT},
        # a range that was sent twice is confirmed twice; hashes may be told until SENT has arrived
        ShardStep.SENT: {K.BLOCKS: ShardStep.SENT, K.GOT: ShardStep.SENT, K.ACK: None},
    },
    Contents.ARCHIVES: {
        **_AGREED,
        ShardStep.WANTED: {K.BEGIN: ShardStep.BEGUN},
        ShardStep.BEGUN: {K.END: ShardStep.ENDED},
        ShardStep.ENDED: {K.SENT: ShardStep.SENT},
        ShardStep.SENT: {K.ACK: None},
    },
    Contents.PROGRAM: {
        **_AGREED,
        ShardStep.WANTED: {K.READY: ShardStep.READY, K.SENT: ShardStep.SENT},
        ShardStep.READY: {K.FETCHED: ShardStep.FETCHED},
        ShardStep.FETCHED: {K.SENT: ShardStep.SENT},
        ShardStep.SENT: {K.ACK: None},
    },
}

# What of contents a connection may carry. SENT of the shard whose contents flow ends them; of another one it does not.
FLOWS: Mapping[Contents, Mapping[Flow, Mapping[FrameKind, Flow]]] = {
    Contents.BUNDLES: {
        Flow.IDLE: {K.BEGIN: Flow.FLOWING},
        Flow.FLOWING: {**dict.fromkeys((K.BEGIN, *sorted(DATA_TYPES)), Flow.FLOWING), K.SENT: Flow.IDLE},
    },
    Contents.ARCHIVES: {
        Flow.IDLE: {K.BEGIN: Flow.FLOWING},
        Flow.FLOWING: {**dict.fromkeys((K.RAW, K.DATA, K.DEFLATED), Flow.FLOWING), K.END: Flow.IDLE},
    },
    Contents.PROGRAM: {Flow.IDLE: {}, Flow.FLOWING: {}},
}

_WINDOW = 4  # shards under way beside those that the streams work at
MAX_BUNDLES = 8  # shards under way, whatever the number of streams, where their small files are held in memory
_WINDOW_BYTES = 16 << 20  # of them, and one more

_OF_SHARDS = frozenset(kind for steps in STEPS.values() for allowed in steps.values() for kind in allowed)
_OF_FLOWS = frozenset({K.BEGIN, K.RAW, K.END}) | DATA_TYPES
_ANY_TIME = frozenset({K.PING, K.PACE, K.FAILED})
_LAST_WORDS = frozenset({K.BYE, K.FAILED})
_OVER = frozenset({LanePhase.GONE, LanePhase.FAILED})
_NOTHING: frozenset[FrameKind] = frozenset()

_PARSERS: dict[FrameKind, Callable[[Payload], Message]] = {
    message.kind: message.parse
    for message in (
        *(messages.Hello, Shard, messages.Total, messages.Scanned, messages.Want, messages.Hash, messages.Sums),
        *(messages.Sent, messages.Ack, messages.Got, messages.BlockSums, messages.Begin, messages.Raw, messages.End),
        *(
            messages.Ready,
            messages.Fetched,
            messages.Fewer,
            messages.PaceMessage,
            messages.FailedMessage,
            messages.Ping,
        ),
        *(messages.Bye, Summary),
    )
}

Said = Union[Message, Frame]  # contents are frames


def has_room(sizes: Collection[int], window: int) -> bool:
    """Return whether one more shard may be under way, beside those of ``sizes`` bytes: that bounds both ends' memory.

    ``window`` is how many there may be, of which each end knows from ``window_for``.
    """
    return len(sizes) < window and sum(sizes) <= _WINDOW_BYTES


def window_for(contents: Contents, streams: int) -> int:
    """Return how many shards may be under way with so many streams, or as many as there may become."""
    window = _WINDOW + 2 * max(1, streams)
    return min(window, MAX_BUNDLES) if contents is Contents.BUNDLES else window


class Defect(TransferFailed):
    """This end was about to send what its peer would refuse."""


class _OutOfTurn(Exception):
    """Has two arguments: the frame, and what was due."""


class _Shard:
    __slots__ = ("count", "size", "step")

    def __init__(self, count: int, size: int) -> None:
        self.count = count  # entries
        self.size = size  # bytes
        self.step: ShardStep | None = None


class Conversation:
    """What one end knows of both: the shards under way, and how far each end is on each connection.

    ``window`` is how many shards the peer may have under way; see ``has_room``.
    """

    def __init__(self, role: Role, contents: Contents, window: int) -> None:
        self.role, self._window = role, window
        self.peer = Role.DEST if role is Role.SOURCE else Role.SOURCE
        self.shards: dict[int, _Shard] = {}  # those under way
        self._contents = contents
        self.flows, self._steps = FLOWS[contents], STEPS[contents]
        self._lanes: list[Lane] = []
        self._offered = 0  # the number of the last shard
        self._lock = threading.Lock()

    def lane(self, send_key: bytes | None = None, receive_key: bytes | None = None, checks: bool = True) -> Lane:
        """Return the next connection. The keys and ``checks`` are those of FrameEncoder and FrameDecoder."""
        phase = LanePhase.BESIDE if self._lanes else LanePhase.SILENT
        lane = Lane(self, phase, FrameEncoder(send_key, checks), FrameDecoder(receive_key, checks))
        self._lanes.append(lane)
        return lane

    def turn(self, lane: Lane, role: Role, said: Said) -> None:
        """Take note of what an end sends. Raises _OutOfTurn, and FrameError for entries that a shard does not have."""
        kind = said.kind
        with self._lock:
            flow = self.flows[lane.flow]
            then = PHASES[role][lane.phases[role]].get(kind)
            if then is None or not self._may_follow(role, kind) or (kind in _OF_FLOWS and kind not in flow):
                raise self._out_of_turn(lane, role, said)
            if isinstance(said, OfShard):
                self._turn_of_shard(lane, role, said)
            elif kind in _OF_SHARDS:
                raise TypeError(f"{kind.name} as a frame, which does not say of which shard")
            lane.enter(role, then)

    def _may_follow(self, role: Role, kind: FrameKind) -> bool:
        """Return whether the receiving side and the shards are as a frame of this kind requires."""
        if (kind is K.SCANNED and self.shards) or (kind is K.FEWER and self._contents is not Contents.BUNDLES):
            return False
        needed = NOT_BEFORE[role].get(kind)
        other = self.peer if role is self.role else self.role
        return needed is None or self._lanes[0].phases[other] in needed

    def _turn_of_shard(self, lane: Lane, role: Role, message: OfShard) -> None:
        kind, number = message.kind, message.id
        shard = self.shards.get(number)
        if isinstance(message, Shard) and shard is None and number == self._offered + 1:
            self._require_room(role)
            shard = _Shard(len(message.entries), message.size)
        allowed = self._steps[shard.step] if shard is not None else {}
        if shard is None or kind not in allowed:
            raise self._out_of_turn(lane, role, message)
        if (kind is K.END or shard.step is ShardStep.ENDED) and number != lane.carried:  # it is on another connection
            raise self._out_of_turn(lane, role, message)
        if role is self.peer:
            message.check(shard.count)
        shard.step = allowed[kind]
        if kind is K.SHARD:
            self.shards[number], self._offered = shard, number
        elif shard.step is None:
            del self.shards[number]
        flow = self.flows[lane.flow]
        if kind in flow and (kind is not K.SENT or number == lane.carried):
            lane.carry(flow[kind], number)

    def _require_room(self, role: Role) -> None:
        if role is self.peer and not has_room([shard.size for shard in self.shards.values()], self._window):
            raise FrameError("more shards arrived than may be under way")

    def _out_of_turn(self, lane: Lane, role: Role, said: Said) -> _OutOfTurn:
        name = said.kind.name
        if isinstance(said, Shard):
            name += f" {said.id}"
        elif isinstance(said, OfShard):
            name += f" of shard {said.id}" + ("" if said.id in self.shards else ", which is not under way,")
        due = [f"{kind.name} {self._offered + 1}" if kind is K.SHARD else kind.name for kind in self.due(lane, role)]
        return _OutOfTurn(name, " or ".join(due) or "nothing")

    def due(self, lane: Lane, role: Role) -> list[FrameKind]:
        """Return what an end may send on a connection now, but for what it may send at any time."""
        steps = {None, *(shard.step for shard in self.shards.values())}
        of_shards = {kind for step in steps for kind in self._steps[step]}
        return [
            kind
            for kind in PHASES[role][lane.phases[role]]
            if kind not in _ANY_TIME
            and self._may_follow(role, kind)
            and (kind not in _OF_SHARDS or kind in of_shards)
            and (kind not in _OF_FLOWS or kind in self.flows[lane.flow])
        ]


class Lane:
    """One connection of a conversation. One thread may receive and one send at the same time."""

    def __init__(
        self, conversation: Conversation, phase: LanePhase, encoder: FrameEncoder, decoder: FrameDecoder
    ) -> None:
        self._conversation, self._encoder, self._decoder = conversation, encoder, decoder
        self.phases = dict.fromkeys(Role, phase)
        self.flow = Flow.IDLE
        self.carried = 0  # the shard whose contents flow
        self._free_to_send = self._free_to_receive = _NOTHING  # contents, by which nothing changes
        self.is_refused = False  # what the peer sends
        self.idle_pings = 0  # of a peer that waits

    def enter(self, role: Role, phase: LanePhase) -> None:
        """Let an end be in a phase."""
        if phase is not self.phases[role]:
            self.phases[role] = phase
            if phase in _OVER and role is Role.SOURCE:
                self.flow, self._free_to_send, self._free_to_receive = Flow.IDLE, _NOTHING, _NOTHING

    def carry(self, flow: Flow, shard: int) -> None:
        """Let the contents of a shard flow, or end."""
        self.flow, self.carried = flow, shard
        free = DATA_TYPES & self._conversation.flows[flow].keys()
        if self._conversation.role is Role.SOURCE:
            self._free_to_send = free
        else:
            self._free_to_receive = free

    @property
    def is_over(self) -> bool:
        """Whether this end has nothing more to send."""
        return self.phases[self._conversation.role] in _OVER

    def send(self, said: Said) -> bytes:
        """Return the bytes of a message; raises Defect, and TransferFailed where this end has sent its last."""
        return b"".join(self.parts(said))

    def parts(self, said: Said) -> tuple[bytes, Payload, bytes]:
        """Return the bytes in parts, as ``FrameEncoder.parts`` does."""
        if said.kind in self._free_to_send:
            return self._encoder.parts(said.kind, said.dump())
        if self.is_over:
            raise TransferFailed("the conversation is over")
        payload = said.dump()
        try:
            self._conversation.turn(self, self._conversation.role, said)
        except _OutOfTurn as error:
            raise Defect("{} was about to be sent where {} was due: this is a defect".format(*error.args)) from error
        return self._encoder.parts(said.kind, payload)

    def receive(self, data: bytes) -> Iterator[Said]:
        """Take bytes, in whatever pieces they arrive, and yield what they say.

        Raises DamagedFrame if they are no frames. Any other FrameError is the peer's fault and not the connection's:
        it can still be read, and only the peer's last words are yielded from then on.
        """
        return self._read(self._decoder.feed(data))

    def get_buffer(self) -> memoryview:
        """Return the place for the next bytes, as ``FrameDecoder`` does."""
        return self._decoder.get_buffer()

    def buffer_updated(self, count: int) -> Iterator[Said]:
        """Do what ``receive`` does for so many bytes that are in the buffer."""
        return self._read(self._decoder.buffer_updated(count))

    def reuse(self, payload: Payload) -> None:
        """Take back the payload of a frame, as ``FrameDecoder`` does."""
        self._decoder.reuse(payload)

    def _read(self, frames: Iterator[Frame]) -> Iterator[Said]:
        for frame in frames:
            kind = frame.kind
            if self.is_refused:
                if kind in _LAST_WORDS:
                    yield _PARSERS[kind](frame.payload)
            elif kind in self._free_to_receive:
                yield frame
            else:
                said = self._check_frame(frame)
                if not isinstance(said, messages.Ping):
                    yield said
                elif not said.works:
                    self.idle_pings += 1

    def _check_frame(self, frame: Frame) -> Said:
        conversation = self._conversation
        try:
            said = _PARSERS[frame.kind](frame.payload) if frame.kind in _PARSERS else frame
            conversation.turn(self, conversation.peer, said)
        except _OutOfTurn as error:
            self.is_refused = True
            raise FrameError("{} arrived where {} was due".format(*error.args)) from error
        except FrameError:
            self.is_refused = True
            raise
        return said
