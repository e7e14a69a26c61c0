# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The conversation's tables: every frame in every state that can be reached, at both ends, and what they agree on."""

from __future__ import annotations

import functools
import random
import re
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, NamedTuple

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire import conversation as tables
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire import messages
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.conversation import (
    Contents,
    Conversation,
    Defect,
    Flow,
    Lane,
    LanePhase,
    Role,
    Said,
    ShardStep,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.frames import (
    DATA_TYPES,
    DamagedFrame,
    Frame,
    FrameEncoder,
    FrameError,
    FrameKind,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.summary import Summary
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.tests.support.walkers import lie, message, walk

K = FrameKind
PAGE = Path(tables.__file__).parents[4] / "docs" / "stream-protocol.md"
LANES = {Contents.BUNDLES: 1, Contents.ARCHIVES: 2, Contents.PROGRAM: 1}
MANY = 1000  # shards that may be under way
FILE = Entry(b"a", "f", 0o644, 0, 0, 5, 1, 2, 3, 4, 1, 0, 0)


class State(NamedTuple):
    """What both ends know when nothing is on its way. One shard at most is under way; walks by chance have more."""

    phases: tuple[tuple[LanePhase, LanePhase], ...]  # of source and destination, on each connection
    step: ShardStep | None
    offered: int
    flow: tuple[Flow, ...]
    carried: tuple[int, ...]


class Ends:
    """Both ends, in a state."""

    def __init__(self, contents: Contents, state: State | None = None) -> None:
        self.contents = contents
        self.ends = {role: Conversation(role, contents, MANY) for role in Role}
        self.lanes = {
            role: [end.lane(checks=False) for _number in range(LANES[contents])] for role, end in self.ends.items()
        }
        if state is not None:
            for role in Role:
                self._set(role, state)

    def _set(self, role: Role, state: State) -> None:
        end = self.ends[role]
        end._offered = state.offered  # pylint: disable=protected-access
        if state.step is not None:
            end.shards[state.offered] = shard = tables._Shard(1, 0)  # pylint: disable=protected-access
            shard.step = state.step
        for number, lane in enumerate(self.lanes[role]):
            lane.phases.update(zip(Role, state.phases[number]))
            if state.flow[number] is Flow.FLOWING or state.carried[number]:
                lane.carry(state.flow[number], state.carried[number])

    def state(self, role: Role) -> State:
        """Return what one end knows."""
        end, lanes = self.ends[role], self.lanes[role]
        steps = [shard.step for shard in end.shards.values()]
        return State(
            tuple((lane.phases[Role.SOURCE], lane.phases[Role.DEST]) for lane in lanes),
            steps[0] if steps else None,
            end._offered,  # pylint: disable=protected-access
            tuple(lane.flow for lane in lanes),
            tuple(lane.carried for lane in lanes),
        )


def expected(contents: Contents, state: State, number: int, role: Role, kind: K, shard: int) -> State | None:
    """Return the state that the tables lead to; None if they do not allow a frame."""
    index, other = (0, 1) if role is Role.SOURCE else (1, 0)
    then = tables.PHASES[role][state.phases[number][index]].get(kind)
    if then is None or (kind is K.SCANNED and state.step) or (kind is K.FEWER and contents is not Contents.BUNDLES):
        return None
    needed = tables.NOT_BEFORE[role].get(kind)
    if needed is not None and state.phases[0][other] not in needed:
        return None
    flow, carried, step, offered = list(state.flow), list(state.carried), state.step, state.offered
    flows = tables.FLOWS[contents][flow[number]]
    if kind in DATA_TYPES | {K.RAW, K.BEGIN, K.END} and kind not in flows:
        return None
    if kind in {kind for steps in tables.STEPS[contents].values() for kind in steps} | tables._OF_SHARDS:
        known = step is not None and shard == offered
        if kind is K.SHARD and shard != offered + 1:
            return None
        if kind is not K.SHARD and not known:
            return None
        if kind not in tables.STEPS[contents][step]:
            return None
        if contents is Contents.ARCHIVES and kind in (K.END, K.SENT) and carried[number] != shard:
            return None
        step = tables.STEPS[contents][step][kind]
        offered = max(offered, shard)
        if kind in flows and (kind is not K.SENT or carried[number] == shard):
            flow[number], carried[number] = flows[kind], shard
    phases = [list(pair) for pair in state.phases]
    phases[number][index] = then
    if role is Role.SOURCE and then in (LanePhase.GONE, LanePhase.FAILED):
        flow[number] = Flow.IDLE
    return State(tuple(map(tuple, phases)), step, offered, tuple(flow), tuple(carried))


def tries(state: State) -> Iterator[tuple[int, Role, K, int]]:
    """Yield every frame on every connection from both ends, about the shard of the state and about another one."""
    of_shards = tables._OF_SHARDS  # pylint: disable=protected-access
    for number in range(len(state.phases)):
        for role in Role:
            for kind in FrameKind:
                another = state.offered + 1
                for shard in (state.offered, another) if kind in of_shards else (0,):
                    if kind is not K.SHARD or shard != another or state.step is None:
                        yield number, role, kind, shard


def reachable(contents: Contents) -> dict[State, list[tuple[tuple[int, Role, K, int], State | None]]]:
    """Return the states that the tables lead to from the beginning, with a shard or two, one at a time.

    Each has every try, and the state that it leads to.
    """
    shards = 2 if LANES[contents] == 1 else 1
    found: dict[State, list[tuple[tuple[int, Role, K, int], State | None]]] = {}
    left = [Ends(contents).state(Role.SOURCE)]
    while left:
        state = left.pop()
        if state not in found:
            found[state] = [(given, expected(contents, state, *given)) for given in tries(state)]
            left += [then for _given, then in found[state] if then is not None and then.offered <= shards]
    return found


@functools.lru_cache(maxsize=None)
def encoded(kind: K, shard: int) -> tuple[Said, bytes]:
    """Return a message of this kind, and its frame."""
    said = message(kind, shard)
    return said, FrameEncoder(checks=False).encode(kind, bytes(said.dump()))


def receive_all(lane: Lane, data: bytes) -> None:
    for _said in lane.receive(data):
        pass


def error_of(kind: type[Exception], call: Callable[..., None], *given: Any) -> Exception:
    """Return the error of this kind that a call raises: ``pytest.raises`` for tens of thousands of them."""
    try:
        call(*given)
    except kind as error:
        return error
    raise AssertionError("nothing was refused")


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("contents", Contents)
def test_every_frame_in_every_state(contents, step):
    """Each leads where the tables say, at both ends; or neither does an end send it, nor does its peer take it.

    Of so many states as ``step`` says, one is tried.
    """
    allowed = refused = 0
    states = reachable(contents)
    for state in list(states)[::step]:
        still = Ends(contents, state)
        for (number, role, kind, shard), then in states[state]:
            ends = still if then is None else Ends(contents, state)
            (said, data), peer = encoded(kind, shard), Role.DEST if role is Role.SOURCE else Role.SOURCE
            ours, theirs = ends.lanes[role][number], ends.lanes[peer][number]
            if then is not None:
                assert ours.send(said) == data, (state, number, role, said.kind)
                assert [got.dump() for got in theirs.receive(data)] == [said.dump()] * (kind is not K.PING)
                assert ends.state(role) == ends.state(peer) == then, (state, number, role, said.kind)
                allowed += 1
                continue
            is_over = state.phases[number][list(Role).index(role)] in (LanePhase.GONE, LanePhase.FAILED)
            raised = error_of(TransferFailed, ours.send, said)
            assert is_over != isinstance(raised, Defect)
            assert re.search("is over" if is_over else f"{kind.name}.* was due", str(raised))
            raised = error_of(FrameError, receive_all, theirs, data)
            assert re.search(f"^{kind.name}.* arrived where .+ was due$", str(raised))
            assert ends.state(role) == ends.state(peer) == state
            theirs.is_refused = False
            refused += 1
    walked = {(role, phases[index]) for state in states for phases in state.phases for index, role in enumerate(Role)}
    phases_of_one = {(role, phase) for role in Role for phase in tables.PHASES[role] if phase is not LanePhase.BESIDE}
    assert walked - {(role, LanePhase.BESIDE) for role in Role} == phases_of_one
    assert (LANES[contents] > 1) == ((Role.DEST, LanePhase.BESIDE) in walked)
    assert {state.step for state in states} == set(tables.STEPS[contents])
    assert allowed > 500 / step and refused > 10 * allowed


@pytest.mark.often(9)
@pytest.mark.parametrize("contents", Contents)
@pytest.mark.parametrize("seed", range(20))
def test_two_ends_that_talk_agree(contents, seed):
    """Whatever each may send next, over connections that cut bytes anywhere and are early or late."""
    ends = walk(contents, random.Random(seed), turns=600)
    source, dest = ends.source, ends.dest
    assert [lane.phases for lane in source.lanes] == [lane.phases for lane in dest.lanes]
    assert {n: shard.step for n, shard in source.end.shards.items()} == {n: s.step for n, s in dest.end.shards.items()}
    assert source.sent == dest.received and dest.sent == source.received


def test_walks_come_to_every_end():
    """Else the walk above would show little."""
    last: set[tuple[LanePhase, ...]] = set()
    for seed in range(60):
        ends = walk(Contents.BUNDLES, random.Random(seed), turns=600)
        last.add(tuple(ends.source.lanes[0].phases.values()))
        if (LanePhase.GONE, LanePhase.GONE) in last and any(LanePhase.FAILED in phases for phases in last):
            return
    raise AssertionError(last)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("contents", Contents)
def test_a_peer_that_lies_is_refused(contents, role):
    """And what it says until then is what was due."""
    refusals = [lie(contents, role, random.Random(seed), turns=60) for seed in range(100)]
    for part in ("was due", "cannot be read", "not under way"):
        assert any(part in refusal for refusal in refusals), part


def greeted(contents: Contents = Contents.BUNDLES) -> tuple[Lane, Lane]:
    """Return the two sides of a first connection whose ends have greeted each other."""
    source, dest = (Conversation(role, contents, MANY).lane() for role in Role)
    for ours, theirs in ((source, dest), (dest, source)):
        list(theirs.receive(ours.send(message(K.HELLO, 0))))
    return source, dest


def tell(ours: Lane, theirs: Lane, *said: Said) -> list[Said]:
    """Send messages to the other side, and return what it says that it got."""
    return [got for each in said for got in theirs.receive(ours.send(each))]


def test_a_shard_is_forgotten_when_it_is_accounted_for():
    source, dest = greeted()
    for number in range(1, 1001):
        tell(source, dest, messages.Shard(number, [FILE]))
        tell(dest, source, messages.Ack(number, 1, {}, 0))
    for lane in (source, dest):
        assert not lane._conversation.shards  # pylint: disable=protected-access
    with pytest.raises(FrameError, match="SHARD 1000 arrived where SHARD 1001 or TOTAL was due"):
        list(dest.receive(FrameEncoder().encode(K.SHARD, messages.Shard(1000, [FILE]).dump())))


@pytest.mark.parametrize(
    "said", [messages.Want(1, [1], {}, {}), messages.Hash(1, [-1]), messages.Ack(1, 1, {7: "why"}, 0)]
)
def test_entries_that_a_shard_does_not_have_change_nothing(said):
    source, dest = greeted()
    tell(source, dest, messages.Shard(1, [FILE]))
    with pytest.raises(FrameError, match="does not have"):
        tell(dest, source, said)
    (shard,) = source._conversation.shards.values()  # pylint: disable=protected-access
    assert shard.step is ShardStep.OFFERED


def test_contents_are_handed_on_as_they_are():
    source, dest = greeted()
    tell(source, dest, messages.Shard(1, [FILE]))
    tell(dest, source, messages.Want(1, [0], {}, {}))
    bundles = [Frame(K.DATA, b"first"), Frame(K.DEFLATED, b"x" * 200_000), Frame(K.ZSTD, b"third")]
    assert tell(source, dest, messages.Begin(1), *bundles)[1:] == bundles
    tell(source, dest, messages.Sent(1, {}, {}, 5))
    with pytest.raises(Defect, match="DATA was about to be sent where SHARD 2 or TOTAL was due"):
        source.send(bundles[0])


def test_contents_of_one_shard_flow_while_another_is_complete():
    source, dest = greeted()
    tell(source, dest, messages.Shard(1, [FILE]), messages.Shard(2, [FILE]))
    tell(dest, source, messages.Want(1, [0], {}, {}), messages.Want(2, [0], {}, {}))
    tell(source, dest, messages.Begin(1), messages.Begin(2), messages.Sent(1, {}, {}, 5))
    assert tell(source, dest, Frame(K.DATA, b"12345")) == [Frame(K.DATA, b"12345")]
    tell(source, dest, messages.Sent(2, {}, {}, 5))
    with pytest.raises(FrameError, match="DATA arrived"):
        list(dest.receive(FrameEncoder().encode(K.DATA, b"12345")))


def test_what_follows_a_refused_frame_is_dropped_but_for_the_last_word():
    source, dest = greeted()
    encoder = FrameEncoder()
    with pytest.raises(FrameError, match="SUMS of shard 7, which is not under way, arrived where SHARD 1 or TOTAL"):
        list(dest.receive(encoder.encode(K.SUMS, messages.Sums(7, {}).dump())))
    assert tell(source, dest, messages.Shard(1, [FILE])) == []
    (last,) = tell(source, dest, messages.FailedMessage("why"))
    assert isinstance(last, messages.FailedMessage) and last.reason == "why"


def test_damage_is_told_apart_from_what_a_peer_may_not_say():
    _source, dest = greeted()
    damaged = FrameEncoder().encode(K.SHARD, messages.Shard(1, [FILE]).dump())[:-1] + b"?"
    with pytest.raises(DamagedFrame):
        list(dest.receive(damaged))
    _source, dest = greeted()
    with pytest.raises(FrameError, match="cannot be read") as raised:
        list(dest.receive(FrameEncoder().encode(K.TOTAL, b"{")))
    assert not isinstance(raised.value, DamagedFrame)


def test_an_account_that_is_none_is_refused():
    with pytest.raises(FrameError, match="an account that cannot be read"):
        Summary.parse(b'{"errors": "none"}')
    assert vars(Summary.parse(Summary(Outcome(files_total=3)).dump()).outcome) == vars(Outcome(files_total=3))


def cell(now: Any, allowed: Mapping[K, Any]) -> str:
    """Return what may be sent, and what it leads to where that is something else."""
    said = ((kind, then) for kind, then in allowed.items() if kind not in (K.PING, K.PACE, K.FAILED))
    return ", ".join(kind.name if then is now else f"{kind.name} → {name(then)}" for kind, then in said)


def name(state: Any) -> str:
    """Return how the page names a state."""
    return "none" if state is None else state.value


def table(*rows: tuple[str, ...]) -> str:
    """Return a table as the page has it."""
    lines = [rows[0], ("---",) * len(rows[0]), *rows[1:]]
    return "\n".join(f"|{'|'.join(row)}|" if row[0] == "---" else f"| {' | '.join(row)} |" for row in lines)


def of_each(states: Mapping[Contents, Mapping[Any, Mapping[K, Any]]]) -> list[tuple[str, ...]]:
    """Return a row for each state, with a column for each manner in which contents are sent."""
    every = dict.fromkeys(state for known in states.values() for state in known)
    return [
        (name(state), *(cell(state, states[contents].get(state, {})) or "-" for contents in Contents))
        for state in every
    ]


def test_the_page_has_the_tables():
    methods = ("stream", "tar_nc", "scp, sftp")
    phases = [
        (role.value, phase.value, cell(phase, allowed) or "-")
        for role in Role
        for phase, allowed in tables.PHASES[role].items()
    ]
    before = [
        (kind.name, role.value, " or ".join(phase.value for phase in LanePhase if phase in needed - {LanePhase.FAILED}))
        for role in Role
        for kind, needed in tables.NOT_BEFORE[role].items()
    ]
    page = PAGE.read_text()
    for expected_table in (
        table(("end", "phase", "may send"), *phases),
        table(("frame", "sent by", "not before its receiver is"), *before),
        table(("shard", *methods), *of_each(tables.STEPS)),
        table(("contents", *methods), *of_each(tables.FLOWS)),
    ):
        assert expected_table in page, f"docs/stream-protocol.md lacks, or has otherwise:\n{expected_table}"


def test_no_more_shards_are_under_way_than_there_is_room_for():
    assert tables.window_for(Contents.ARCHIVES, 1) == 6 and tables.window_for(Contents.ARCHIVES, 8) == 20
    assert tables.window_for(Contents.BUNDLES, 8) == 8
    assert tables.has_room([], 1) and tables.has_room([1] * 5, 6)
    assert not tables.has_room([1] * 6, 6) and not tables.has_room([17 << 20], 6)


def test_a_destination_takes_no_more_shards_than_may_be_under_way():
    dest = Conversation(Role.DEST, Contents.BUNDLES, 2).lane(checks=False)
    encoder = FrameEncoder(checks=False)
    said = [messages.Hello(1, "x", False), *(messages.Shard(number, [FILE]) for number in (1, 2))]
    dest.send(messages.Hello(1, "x", False))
    assert len(list(dest.receive(b"".join(encoder.encode(one.kind, one.dump()) for one in said)))) == 3
    with pytest.raises(FrameError, match="more shards arrived than may be under way"):
        list(dest.receive(encoder.encode(K.SHARD, messages.Shard(3, [FILE]).dump())))
