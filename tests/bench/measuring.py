# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How figures come about: the tools take turns, so that noise hits all of them, and the median of each counts."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Sample = dict[str, float]  # what one run gave: "seconds", "task", "wire" ... by name


class Tool(NamedTuple):
    """Something that is measured in a part of the benchmark. ``run`` returns what one run gave."""

    name: str
    run: Callable[[], Sample]
    is_ours: bool = False  # so that an earlier version of the collection can do the same

    def adding(self, more: Callable[[Sample], Sample]) -> Tool:
        """Return it with runs that give more: what ``more`` makes of what they gave so far."""

        def run() -> Sample:
            found = self.run()
            return {**found, **more(found)}

        return self._replace(run=run)


@dataclass
class Figure:
    """What a tool gave in a part; ``failed`` says why it has no further runs."""

    part: str
    tool: str
    runs: list[Sample] = field(default_factory=list)
    failed: str = ""

    @property
    def median(self) -> Sample:
        """The median of each quantity that every run gave."""
        names = set.intersection(*(set(run) for run in self.runs)) if self.runs else set()
        return {name: statistics.median(run[name] for run in self.runs) for name in sorted(names)}

    @property
    def spread(self) -> float:
        """How far apart the runs are: the slowest over the fastest, 1.0 where there is one only."""
        seconds = [run["seconds"] for run in self.runs if run.get("seconds")]
        return max(seconds) / min(seconds) if seconds else 1.0

    def as_json(self) -> dict[str, Any]:
        """Return its form in the report."""
        return {"part": self.part, "tool": self.tool, "runs": self.runs, "median": self.median, "failed": self.failed}


def figure_from_json(read: dict[str, Any]) -> Figure:
    """Return the figure that ``as_json`` wrote."""
    return Figure(read["part"], read["tool"], read["runs"], read["failed"])


def turn(tools: Sequence[Tool], number: int) -> list[Tool]:
    """Return the order of the tools in round ``number``: each round begins with another one."""
    start = number % len(tools) if tools else 0
    return [*tools[start:], *tools[:start]]


def interleaved(
    part: str,
    tools: Sequence[Tool],
    repeat: int,
    prepare: Callable[[], None],
    say: Callable[[str], None],
) -> list[Figure]:
    """Run every tool ``repeat`` times, in turns, each run after ``prepare``; give their figures in the tools' order.

    A tool that fails is told about, and has no further turn; the others go on.
    """
    figures = {tool.name: Figure(part, tool.name) for tool in tools}
    for number in range(repeat):
        for tool in turn(tools, number):
            figure = figures[tool.name]
            if figure.failed:
                continue
            prepare()
            try:
                sample = tool.run()
            except Exception as error:  # whatever a program or a playbook does wrong, the other tools are measured
                figure.failed = f"{type(error).__name__}: {error}"
                say(f"{part}: {tool.name} failed: {figure.failed}")
                continue
            figure.runs.append(sample)
            said = ", ".join(f"{name} {value:.3g}" for name, value in sample.items())
            say(f"{part} {number + 1}/{repeat}: {tool.name}: {said}")
    return list(figures.values())
