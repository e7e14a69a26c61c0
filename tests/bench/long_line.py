# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines with a long round trip, most of which lose packets.

Which share of them one large file uses, what it leaves to a download that begins beside it, and how long many small
files take.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from typing import NamedTuple

from ansible_collections.longhaul.fleet.tests.bench import data, interruption
from ansible_collections.longhaul.fleet.tests.bench.interruption import Kind
from ansible_collections.longhaul.fleet.tests.bench.measuring import Sample, Tool
from ansible_collections.longhaul.fleet.tests.bench.ours import STREAMS
from ansible_collections.longhaul.fleet.tests.bench.peers import PORT, Peer, kill_all
from ansible_collections.longhaul.fleet.tests.bench.stage import Stage
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.testbed import Line

PART = "long line"
PAYLOAD = 1448 / 1500  # of a full packet, as the line counts it
SECONDS = 60  # that the file takes on the full line
SHORT = 20  # the same where programs are measured, too, that use a tenth of the line
PLAIN = "16 plain connections"
_FIRST_SECONDS, _DOWNLOAD_SECONDS = 25, 40  # for which the line has been full when a download begins, and of that
PEERS = ("rsync -aHAX ssh", "rsync -aHAX daemon", "scp", "sftp")
OURS = STREAMS[0]  # with TLS

ORDINARY = ("cubic", "reno")  # what hosts have by default: the first that the kernel lets a testbed's hosts have


class Case(NamedTuple):
    """A line. ``peers``: the other programs are measured there, too."""

    name: str
    line: Line
    peers: bool = False

    @property
    def seconds(self) -> int:
        """What the file of this case takes on the full line."""
        return SHORT if self.peers else SECONDS


def _case(rtt: float, loss: float, megabits: int, peers: bool = False) -> Case:
    name = f"{PART}: {rtt:.0f} ms, {loss:g} %, {megabits} Mbit/s"
    return Case(name, Line(rtt=rtt / 1000, loss=loss / 100, rate=megabits * 1_000_000), peers)


CASES = (
    _case(100, 1, 20, peers=True),
    _case(200, 2, 40),
    _case(300, 5, 20),
    _case(100, 0.1, 200),
    _case(100, 0, 200),
)
CLEAN = Line(rtt=0.1, rate=1_000_000_000)
SMALL, WARM = f"{PART}: 100 ms, small files", f"{PART}: 100 ms, nothing changed"
BESIDE = f"{PART}: 100 ms, a download beside"
TITLES = {
    **{case.name: "one large file to an empty destination over this line, nothing named" for case in CASES},
    BESIDE: f"what a download gets in {_DOWNLOAD_SECONDS} s, on a line that this has filled for {_FIRST_SECONDS} s",
    SMALL: "a fifth of the small files to an empty destination, over 1 Gbit/s without loss",
    WARM: "many small files, nothing changed, over 1 Gbit/s without loss",
}


def size_of(case: Case) -> int:
    """Return the bytes of the file of a case: what its line carries in some seconds, in whole MiB."""
    return (case.line.rate // 8 * case.seconds >> 20) << 20


SIZES = {**{case.name: size_of(case) for case in CASES}, BESIDE: size_of(CASES[-1])}


def measure(stage: Stage) -> None:
    """Measure each line in its turn."""
    congestion = next(name for name in ORDINARY if name in stage.bed.congestions())
    stage.notes.append(f"{PART}: the hosts' default congestion control was {congestion}")
    for case in CASES:
        make_big_files(stage.place("long"), size_of(case))
        with _lengthened(stage, case.line, congestion):
            stage.measure(case.name, [_with_share(tool, case) for tool in _tools(stage, case)], stage.empty)
    _measure_beside(stage, CASES[-1], congestion)
    _measure_small(stage, congestion)


def _measure_beside(stage: Stage, case: Case, congestion: str) -> None:
    """Measure what a download gets of a line that is full, with a connection like it and with a transfer."""
    make_big_files(stage.place("long"), case.line.rate // 8 * 2 * (_FIRST_SECONDS + _DOWNLOAD_SECONDS))
    other = _iperf3(stage, case, "iperf3", 1, 2 * (_FIRST_SECONDS + _DOWNLOAD_SECONDS))
    first = [interruption.of_transfer(stage, OURS, "long"), interruption.of_peer(stage, other, "long")]
    download = _iperf3(stage, case, "download", 1, _DOWNLOAD_SECONDS, PORT + 1)

    def beside(kind: Kind) -> Sample:
        with kind.started() as alive:
            time.sleep(_FIRST_SECONDS)
            found = stage.peers.run(download, "long")
            if not alive():
                raise RuntimeError("it ended before the download did")
            for host in stage.bed.hosts:
                kill_all(stage.bed, host)
        return found

    tools = [Tool(kind.name, lambda kind=kind: beside(kind), kind.is_ours) for kind in first]
    with _lengthened(stage, case.line, congestion):
        stage.measure(BESIDE, [_with_share(tool, case) for tool in tools], stage.empty)


def _measure_small(stage: Stage, congestion: str) -> None:
    """Measure what would take a round trip for each file if it were done file by file."""
    for name, count in ((SMALL, stage.options.files // 5), (WARM, stage.options.files)):
        data.make_small(stage.place("small"), count)
        if name == WARM:
            stage.fill("small")
        tools = [stage.peer("rsync -aHAX daemon", "small"), *(stage.transfer(tool, "small") for tool in STREAMS)]
        with _lengthened(stage, CLEAN, congestion):
            stage.measure(name, tools, stage.empty if name == SMALL else lambda: None)


@contextlib.contextmanager
def _lengthened(stage: Stage, line: Line, congestion: str) -> Iterator[None]:
    """Have a long line between hosts with this default for the time of a block, and empty hosts after it."""
    stage.bed.set_congestion(congestion)
    stage.bed.lengthen(line)
    try:
        yield
    finally:
        stage.bed.restore()
    stage.clear()


def _tools(stage: Stage, case: Case) -> Iterator[Tool]:
    yield stage.transfer(OURS, "long")
    yield stage.transfer(OURS, "long", f"{OURS} congestion none", congestion="none")
    yield stage.peer(_iperf3(stage, case, PLAIN, 16, case.seconds), "long")
    if case.peers:
        for name in PEERS:
            yield stage.peer(name, "long")


def _iperf3(stage: Stage, case: Case, name: str, count: int, seconds: int, port: int = PORT) -> Peer:
    """Return connections of iperf3 that send for some seconds; their time is what the file of the case would take."""
    argv = ["iperf3", "-c", stage.peers.address, "-p", str(port), "-P", str(count), "-t", str(seconds), "-J"]

    def needed(said: str) -> float:
        received = json.loads(said)["end"]["sum_received"]
        return size_of(case) * 8 / float(received["bits_per_second"])

    return Peer(name, lambda _tree: argv, ["iperf3", "-s", "-1", "-p", str(port)], "tcp6", port, seconds=needed)


def _with_share(tool: Tool, case: Case) -> Tool:
    """Add the share of the line that a tool used."""
    most = case.line.rate / 8 * PAYLOAD
    return tool.adding(lambda found: {"share of the wire": size_of(case) / found["seconds"] / most})
