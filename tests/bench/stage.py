# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two hosts with everything that the parts of the benchmark need: trees, tools, an empty or a filled destination."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.longhaul.fleet.tests.bench import counters, versions
from ansible_collections.longhaul.fleet.tests.bench.measuring import Figure, Sample, Tool, interleaved
from ansible_collections.longhaul.fleet.tests.bench.ours import TRANSFERS, Ours
from ansible_collections.longhaul.fleet.tests.bench.peers import Peer, Peers, kill_all
from ansible_collections.longhaul.fleet.tests.testbed import Testbed


@dataclass(frozen=True)
class Options:
    """How much is measured. ``only`` are names of tools, none for all; ``entries`` is 0 for no tree of that many."""

    mib: int = 2048
    files: int = 50_000
    entries: int = 0
    repeat: int = 3
    rate: str = "1gbit"
    only: frozenset[str] = frozenset()

    @property
    def large(self) -> int:
        """The bytes of the large files together."""
        return self.mib << 20


@dataclass
class Stage:
    """What a part runs on."""

    bed: Testbed
    options: Options
    peers: Peers
    ours: Ours
    say: Callable[[str], None]
    earlier: Ours | None = None  # an earlier version of the collection: then only the two of them are measured
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what was not measured, and why

    def place(self, tree: str, host: str = "alpha") -> Path:
        """Return the path of a tree as this machine sees it."""
        return self.bed.root(host) / "data" / tree

    def peer(self, peer: str | Peer, tree: str) -> Tool:
        """Return a raw program as a tool that moves a tree."""
        made = self.peers[peer] if isinstance(peer, str) else peer
        return Tool(made.name, lambda: self.counted(lambda: self.peers.run(made, tree)))

    def transfer(self, name: str, tree: str, label: str = "", **more: object) -> Tool:
        """Return one of the collection's transfers as a tool that moves a tree."""
        options = {**TRANSFERS[name], **more}
        return Tool(label or name, lambda: self.counted(lambda: self.ours.run(tree, **options)), is_ours=True)

    def counted(self, run: Callable[[], Sample]) -> Sample:
        """Add to what a run gives the bytes that the data network carried meanwhile, in both directions."""
        before = counters.wire(self.bed)
        found = run()
        return {**found, "wire": counters.wire(self.bed).since(before).count}

    def measure(self, part: str, tools: Sequence[Tool], prepare: Callable[[], None], repeat: int = 0) -> None:
        """Measure the tools that were asked for and are there, and keep their figures.

        ``repeat`` is how often; 0: as often as the options say.
        """
        lacking = self.peers.lacking()
        wanted = [tool for tool in tools if not self.options.only or tool.name in self.options.only]
        if self.earlier:
            wanted = [one for tool in wanted if tool.is_ours for one in (self._by_earlier(tool), tool)]
        for tool in wanted:
            if tool.name in lacking:
                self.notes.append(f"{part}: {tool.name} was not measured: {lacking[tool.name]}")
        there = [tool for tool in wanted if tool.name not in lacking]

        def alone() -> None:
            for host in self.bed.hosts:  # what a tool that failed may have left
                kill_all(self.bed, host)
            prepare()

        self.figures += interleaved(part, there, repeat or self.options.repeat, alone, self.say)

    def _by_earlier(self, tool: Tool) -> Tool:
        def run() -> Sample:
            today, self.ours = self.ours, self.earlier or self.ours
            try:
                return tool.run()
            finally:
                self.ours = today

        return Tool(versions.earlier_name(tool.name), run)

    def empty(self) -> None:
        """Empty the destination, and what a copy on one host left."""
        self.bed.exec("alpha", ["rm", "-rf", "/data/copy"], timeout=600)
        self.bed.exec("beta", ["rm", "-rf", "/data/out"], timeout=600)
        self.bed.exec("beta", ["mkdir", "/data/out"])

    def fill(self, tree: str) -> None:
        """Make the destination the same as a tree, by no tool that is measured."""
        self.empty()
        # Through this machine; the numbers and attributes are those of the source.
        source, dest = self.place(tree), self.place("out", "beta")
        copied = dest.with_name("filling")
        shutil.copytree(source, copied, symlinks=True)
        dest.rmdir()
        copied.rename(dest)

    def clear(self) -> None:
        """Create an empty /data on both hosts."""
        for host in self.bed.hosts:
            self.bed.empty_data(host)

    @contextlib.contextmanager
    def shaped(self) -> Iterator[None]:
        """Hold the wire to the slow rate for the time of a block."""
        self.bed.shape("alpha", self.options.rate)
        try:
            yield
        finally:
            self.bed.shape("alpha", None)
