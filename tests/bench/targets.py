# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the project wants to reach, as ratios of figures of one run, and whether it does. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ansible_collections.longhaul.fleet.tests.bench.measuring import Figure

MIB = 1 << 20
SSH = ("rsync -aHAX ssh", "scp", "sftp", "transfer rsync", "transfer scp", "transfer sftp")
DAEMON_ALL, TAR_ALL = ("rsync -aHAX daemon",), ("tar nc all attributes",)
DAEMONS, TARS = ("rsync -a daemon", *DAEMON_ALL), ("tar nc", *TAR_ALL)
TEXT_AUTO, TEXT_NONE = "stream TLS compress auto", ("stream TLS compress none",)
CHANGED = ("rsync -aHAX ssh", *DAEMON_ALL)
LINK_DEST = ("rsync --link-dest ssh", "rsync --link-dest daemon")
CLEAN = "long line: 100 ms"
TLS, PLAIN = "transfer stream TLS", "transfer stream plain"


class Target(NamedTuple):
    """One thing to reach.

    With ``against`` the figure is how many times as fast ``tool`` is as the fastest of these; without it is ``metric``
    itself, divided by ``scale``. ``least`` and ``aim`` are the figures to reach, None if there is none; with
    ``low`` less is better.
    """

    what: str
    part: str
    tool: str
    against: tuple[str, ...] = ()
    metric: str = "seconds"
    least: float | None = None
    aim: float | None = None
    low: bool = False
    scale: float = 1
    unit: str = ""


class Seen(NamedTuple):
    """A target and what was seen of it. ``value`` is None if it was not measured.

    ``phase`` and ``task`` are the same ratio with the seconds of the phase, and of the whole task, in it.

    ``verdict`` is "aim", "at least", "missed", "" for a target without figures to reach, or "not measured".
    """

    target: Target
    value: float | None
    phase: float | None
    task: float | None
    verdict: str


SHARE, CHANGE, GROWTH = "share of the wire", "times the change", "growth by change"
MEMORY = {"least": 150, "aim": 80, "low": True, "scale": MIB, "unit": " MiB"}


def _both(
    what: str, part: str, against: tuple[str, ...], metric: str = "seconds", *, least: float, aim: float
) -> tuple[Target, ...]:
    """Return the same target for the stream engine without and with encryption."""
    tools = {"plain": PLAIN, "TLS": TLS}
    return tuple(Target(what.format(how), part, tool, against, metric, least, aim) for how, tool in tools.items())


def _long_line(line: str, *, least: float, aim: float) -> Target:
    """Return the target for a line, whose source offers BBR."""
    return Target(f"long line, {line}: share of the wire", f"long line: {line}", TLS, (), SHARE, least, aim)


TARGETS = (
    Target("large files, plain, against the rsync daemon", "large", PLAIN, DAEMONS, least=1.4, aim=2),
    Target("large files, plain, against iperf3", "large", PLAIN, ("iperf3",), aim=0.8),
    Target("large files, plain, against tar over nc", "large", PLAIN, TARS, least=2.5, aim=4),
    Target("large files, TLS, against the best ssh method", "large", TLS, SSH, least=1.7, aim=2.5),
    Target("large files, TLS, against the plain rsync daemon", "large", TLS, DAEMONS, least=0.85, aim=1.2),
    *_both("small files, {}, against the rsync daemon -aHAX", "small", DAEMON_ALL, least=1.4, aim=2.5),
    *_both("small files, {}, against tar over nc, all attributes", "small", TAR_ALL, least=1.1, aim=1.5),
    *_both("nothing changed, {}, against the rsync daemon -aHAX", "warm", DAEMON_ALL, least=1, aim=2),
    *_both("large files at 1 Gbit/s, {}: share of the wire", "gigabit", (), SHARE, least=0.96, aim=0.99),
    Target("very many entries: first byte of a file", "entries", TLS, (), "first byte", 1, 0.3, low=True, unit=" s"),
    Target("very many entries: memory of the source", "entries", TLS, metric="memory source", **MEMORY),
    Target("very many entries: memory of the destination", "entries", TLS, metric="memory dest", **MEMORY),
    Target("1 % changed in place: bytes sent by bytes changed", "changed", TLS, (), CHANGE, 2, 1.1, low=True),
    *_both("1 % changed in place, {}, against rsync", "changed", CHANGED, least=1, aim=2),
    Target("image backup: bytes sent by bytes changed", "image backup", TLS, (), CHANGE, 1.2, 1.1, low=True),
    *_both("image backup, {}, against rsync --link-dest", "image backup", LINK_DEST, least=1, aim=2),
    Target("image backup, XFS: growth by bytes changed", "image backup: xfs", TLS, (), GROWTH, 1.2, 1.05, low=True),
    Target("image backup, btrfs: growth by bytes changed", "image backup: btrfs", TLS, (), GROWTH, 1.2, 1.05, low=True),
    Target("killed at half: sent again, by one range a stream", "killed", TLS, (), "ranges again", 1, 0, low=True),
    _long_line("100 ms, 1 %, 20 Mbit/s", least=0.85, aim=0.95),
    _long_line("200 ms, 2 %, 40 Mbit/s", least=0.85, aim=0.95),
    _long_line("300 ms, 5 %, 20 Mbit/s", least=0.80, aim=0.90),
    _long_line("100 ms, 0.1 %, 200 Mbit/s", least=0.80, aim=0.90),
    _long_line("100 ms, 0 %, 200 Mbit/s", least=0.90, aim=0.97),
    Target("100 ms: share of a download beside it", f"{CLEAN}, a download beside", TLS, (), SHARE, least=0.35),
    *_both("small files at 100 ms, {}, against the daemon", f"{CLEAN}, small files", DAEMON_ALL, least=1.3, aim=2),
    *_both("no change at 100 ms, {}, against the daemon", f"{CLEAN}, nothing changed", DAEMON_ALL, least=1.2, aim=2),
    *_both("disk to disk, small files, {}, against the daemon", "disk: ext4, small", DAEMON_ALL, least=1.3, aim=2),
    *_both("disk to disk, large files, {}, against the daemon", "disk: ext4, large", DAEMON_ALL, least=1, aim=2),
    Target("text at 1 Gbit/s, TLS: compress auto against none", "text", TEXT_AUTO, TEXT_NONE, least=1.8, aim=3),
    Target("backup, nothing changed, against rsync --link-dest", "backup", "backup", ("rsync --link-dest ssh",)),
    Target("prune of one snapshot, against rm -r", "prune", "prune", ("rm -r",)),
)  # fmt: skip


def judge(figures: Iterable[Figure], targets: Iterable[Target] = TARGETS) -> list[Seen]:
    """Compare the figures with each target."""
    medians = {(figure.part, figure.tool): figure.median for figure in figures if figure.runs and not figure.failed}
    return [_seen(target, medians) for target in targets]


def _seen(target: Target, medians: Mapping[tuple[str, str], Mapping[str, float]]) -> Seen:
    ours = medians.get((target.part, target.tool), {})
    if not target.against:
        value = ours[target.metric] / target.scale if target.metric in ours else None
        return Seen(target, value, None, None, verdict(target, value))
    theirs = [medians[target.part, name]["seconds"] for name in target.against if (target.part, name) in medians]
    if not theirs or not ours.get("seconds"):
        return Seen(target, None, None, None, verdict(target, None))
    value, phase, task = (min(theirs) / ours[name] if ours.get(name) else None for name in ("seconds", "phase", "task"))
    return Seen(target, value, phase, task, verdict(target, value))


def verdict(target: Target, value: float | None) -> str:
    """Return which target a value reaches."""
    if value is None:
        return "not measured"
    if target.least is None and target.aim is None:
        return ""
    for name, wanted in (("aim", target.aim), ("at least", target.least)):
        if wanted is not None and (value <= wanted if target.low else value >= wanted):
            return name
    return "missed"


def as_json(seen: Seen) -> dict[str, Any]:
    """Return its form in the report."""
    target = seen.target
    return {
        "what": target.what,
        "part": target.part,
        "at_least": target.least,
        "aim": target.aim,
        "seen": seen.value,
        "seen_phase": seen.phase,
        "seen_whole_task": seen.task,
        "verdict": seen.verdict,
    }
