# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Predictions and recommendations of ``longhaul.fleet.benchmark``, compared with transfers that really run.

For each case a pair is measured, the tree is copied as recommended, copied again without changes, and compared by
content; each time is compared with its prediction. Then every other method that is allowed copies the tree, too, and
the recommended one must be the fastest or take at most a tenth longer. Trees are such that a copy takes some seconds.
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ansible_collections.longhaul.fleet.tests.bench import memory
from ansible_collections.longhaul.fleet.tests.support import leftovers
from ansible_collections.longhaul.fleet.tests.support.collections_folder import collections_folder
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files, remove_tree
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.slow_disk import slow_disk, why_not
from ansible_collections.longhaul.fleet.tests.testbed import Line, Testbed

from .scale import Say

MIB = 1 << 20
NEAR = 0.3  # share by which a prediction may miss
AS_FAST = 1.1  # times the fastest method's seconds
_SOURCE, _DEST = "/data/tree", "/data/out"
_HOSTS = ("alpha", "beta")
_SLOW_DISK = 30 * MIB  # bytes a second
_COMPRESSES = 1.2  # a tree whose sample compresses by this is copied with compression, too
_SLOW_FILES = ("scp", "sftp")  # take round trips for each file
_MEMORY = 2 << 30  # bytes
_TICK = os.sysconf("SC_CLK_TCK")
_SPIN = "exec >/dev/null 2>&1; while :; do :; done"
Make = Callable[[Path], None]


def _large(mebibytes: int) -> Make:
    return lambda root: _ignore(make_big_files(root, mebibytes * MIB, 4))


def _small(files: int, size: int = 6000) -> Make:
    def make(root: Path) -> None:
        content = random.Random(files).randbytes(2 * size)
        for number in range(files):
            folder = root / f"folder-{number // 100}"
            if number % 100 == 0:
                folder.mkdir(parents=True)
            (folder / f"file-{number}").write_bytes(content[: number % (2 * size)])

    return make


def _text(mebibytes: int) -> Make:
    def make(root: Path) -> None:
        root.mkdir()
        words, chosen = [f"word{number:04x}" for number in range(5000)], random.Random(mebibytes)
        for number in range(8):
            block = " ".join(chosen.choices(words, k=MIB // 9)).encode()
            with open(root / f"log-{number}", "wb") as file:
                for part in range(mebibytes // 8):
                    file.write(block[part * 997 :] + block[: part * 997])

    return make


def _mixed(mebibytes: int, files: int) -> Make:
    def make(root: Path) -> None:
        _small(files)(root / "small")
        _large(mebibytes)(root / "large")

    return make


def _sparse(mebibytes: int) -> Make:
    def make(root: Path) -> None:
        root.mkdir()
        with open(root / "image", "wb") as file:
            file.truncate(mebibytes * 8 * MIB)
            for number in range(mebibytes):
                file.seek(number * 8 * MIB)
                file.write(random.Random(number).randbytes(MIB))

    return make


def _ignore(_made: object) -> None:
    """Drop what a maker returns."""


class Case(NamedTuple):
    """One tree between two hosts. ``line``: fast, slow (300 Mbit/s) or long (60 ms, 200 Mbit/s)."""

    name: str
    make: Make
    line: str = "fast"
    encryption: str = "auto"
    slow_disk: str = ""  # of this host
    compares: bool = True  # the methods, too
    has_small_files: bool = False  # which take several round trips each by scp and sftp, many times what others take


CASES = (
    Case("large files, fast", _large(1000)),
    Case("large files, fast, plain", _large(1600), encryption="none"),
    Case("small files, fast", _small(20000), has_small_files=True),
    Case("small files, fast, plain", _small(20000), encryption="none", has_small_files=True),
    Case("text, slow", _text(240), "slow"),
    Case("text, fast, plain", _text(600), encryption="none"),
    Case("mixed, fast", _mixed(400, 8000), has_small_files=True),
    Case("mixed, slow, plain", _mixed(80, 4000), "slow", "none", has_small_files=True),
    Case("large files, long", _large(60), "long"),
    Case("small files, long, plain", _small(4000), "long", "none", has_small_files=True),
    Case("sparse, fast", _sparse(400), compares=False),
    Case("large files, slow disk at the destination", _large(100), slow_disk="beta", compares=False),
    Case("text, long", _text(120), "long", compares=False),
    Case("small files, slow", _small(8000), "slow", compares=False, has_small_files=True),
)


class Check(NamedTuple):
    """One prediction and what came."""

    step: str
    predicted: float
    low: float
    high: float
    took: float

    @property
    def is_near(self) -> bool:
        """Whether the prediction missed by at most 30 per cent."""
        return abs(self.predicted - self.took) <= NEAR * self.took

    @property
    def is_within(self) -> bool:
        """Whether the range contained reality."""
        return self.low <= self.took <= self.high

    def __str__(self) -> str:
        said = (
            f"{self.step}: predicted {self.predicted:.1f} s ({self.low:.1f} to {self.high:.1f}), took {self.took:.1f} s"
        )
        wrong = "" if self.is_near else " FAR"
        return f"{said}, ratio {self.predicted / self.took:.2f}{wrong}{'' if self.is_within else ' OUTSIDE'}"


@dataclass
class Tally:
    """What was seen of all cases."""

    checks: list[Check] = field(default_factory=list)
    recommended: list[bool] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the counts."""
        for step in dict.fromkeys(one.step for one in self.checks):
            found = [one for one in self.checks if one.step == step]
            near, within = sum(one.is_near for one in found), sum(one.is_within for one in found)
            yield f"{step}: {near} of {len(found)} within {NEAR:.0%}, {within} of {len(found)} within the range"
        if self.recommended:
            yield f"recommended is the fastest or near it: {sum(self.recommended)} of {len(self.recommended)}"

    def is_good(self, busy: bool) -> bool:
        """Return whether enough of all is right: three of four predictions, nine of ten recommendations."""
        right = [one.is_within if busy else one.is_near for one in self.checks]
        return 4 * sum(right) >= 3 * len(right) and 10 * sum(self.recommended) >= 9 * len(self.recommended)


def run(only: Sequence[str], count: int, compares: bool, busy: bool, say: Say) -> Tally:
    """Compare predictions with reality in so many cases, or with ``compares`` all methods with the recommended one.

    ``busy``: beside programs that use both hosts' processors.
    """
    tally = Tally()
    able = [case for case in CASES if case.compares or not compares]
    chosen = [case for case in able if not only or any(one in case.name for one in only)][:count]
    with memory.kept(_MEMORY), Testbed(data_size="8g") as bed, tempfile.TemporaryDirectory() as folder:
        inventory = bed.inventory(Path(folder) / "inventory.yml", extra={"ansible_pipelining": True})
        trial = _Trial(bed, Playbooks(inventory, Path(folder), collections_folder()), say, tally)
        for case in chosen:
            if case.slow_disk and why_not():
                say(f"{case.name}: cannot be made here: {why_not()}")
                continue
            with _ground(bed, case), _load(bed, busy):
                trial.run(case, compares)
            for host, path in zip(_HOSTS, (_SOURCE, _DEST)):
                remove_tree(bed.root(host) / path[1:])
    return tally


@contextlib.contextmanager
def _ground(bed: Testbed, case: Case) -> Iterator[None]:
    with contextlib.ExitStack() as held:
        if case.slow_disk:
            held.enter_context(slow_disk(bed, case.slow_disk, _DEST, 400 * MIB, _SLOW_DISK))
        if case.line == "long":
            bed.lengthen(Line(rtt=0.06, rate=200_000_000))
            held.callback(bed.restore)
        elif case.line == "slow":
            for host in _HOSTS:
                bed.shape(host, "300mbit")
            held.callback(bed.restore)
        case.make(bed.root("alpha") / _SOURCE[1:])
        yield


@contextlib.contextmanager
def _load(bed: Testbed, busy: bool) -> Iterator[None]:
    """Let both hosts run a program that does nothing else than use a processor."""
    pids = [bed.exec(host, ["sh", "-c", f"sh -c {_SPIN!r} & echo $!"]).stdout.strip() for host in _HOSTS if busy]
    try:
        yield
    finally:
        for host, pid in zip(_HOSTS, pids):
            bed.exec(host, ["kill", pid])


class _Trial:
    """Runs the cases on one pair of hosts."""

    def __init__(self, bed: Testbed, playbooks: Playbooks, say: Say, tally: Tally) -> None:
        self._bed, self._playbooks, self._say, self._tally = bed, playbooks, say, tally
        self._phases = ""  # of the last copy

    def run(self, case: Case, compares: bool) -> None:
        """Measure, copy as recommended, copy again, and compare both trees; or copy by every method."""
        found = self._benchmark(case)
        best, best_options = found["recommendation"], _recommended(found["recommendation"])
        self._say(f"{case.name}: {_way_text(best_options, best['variant'])}; {found['bottleneck']}")
        took = self._copy(case, best_options)
        self._say(f"  phases of the first copy: {self._phases}")
        checks = [_check("first copy", best["first_copy"], took)]
        if not compares:
            checks += [
                _check("without changes", best["unchanged"], self._copy(case, best_options)),
            ]
            self._say(f"  phases of the pass without changes: {self._phases}")
            checks += [
                _check("comparison", best["comparison"], self._task("verify", {})["duration"]),
            ]
        self._tally.checks += checks
        for check in checks:
            self._say(f"  {check}")
        if compares:
            self._compare(case, found, best_options, took)

    def _benchmark(self, case: Case) -> Mapping[str, Any]:
        before = {host: leftovers.snapshot(self._bed, host) for host in _HOSTS}
        began, used = time.monotonic(), _busy_seconds()
        found = self._task("benchmark", {"encryption": case.encryption})
        seconds, used = time.monotonic() - began, _busy_seconds() - used
        left = [f"{host}: {one}" for host in _HOSTS for one in leftovers.snapshot(self._bed, host) - before[host]]
        measured = found["measurement"]
        self._say(
            f"{case.name}: the benchmark took {measured['seconds']:.1f} s, {seconds:.1f} s with ansible-playbook, "
            f"{used:.1f} s of processors, sent {measured['bytes_sent'] / MIB:.0f} MiB, left {left or 'nothing'}"
            f"{'; gaps: ' if measured['gaps'] else ''}{' '.join(measured['gaps'])}"
            f"\n  disks {measured['disks']}, processors {measured['processors']}, execution {measured['execution']}"
        )
        return found

    def _compare(self, case: Case, found: Mapping[str, Any], best: Mapping[str, Any], took: float) -> None:
        """Copy by every other way; where the recommended one seems slow, it and the fastest run twice more."""
        seen: list[tuple[float, Mapping[str, Any]]] = [(took, best)]
        for options in _other_ways(case, found):
            if options == best:
                continue
            self._remove_copy()
            seen.append((self._copy(case, options), options))
        fastest, way = min(seen, key=lambda one: one[0])
        if took > fastest * AS_FAST:
            again: dict[bool, list[float]] = {True: [took], False: [fastest]}
            for _round in range(2):
                for is_best, chosen in ((True, best), (False, way)):
                    self._remove_copy()
                    again[is_best].append(self._copy(case, chosen))
            took, fastest = (sorted(again[is_best])[1] for is_best in (True, False))
        good = took <= fastest * AS_FAST
        self._tally.recommended.append(good)
        self._say(
            "  " + ", ".join(f"{_way_text(options)} {seconds:.1f} s" for seconds, options in sorted(seen, key=_seconds))
        )
        told = f"recommended {took:.1f} s, fastest {fastest:.1f} s ({_way_text(way)})"
        self._say(f"  {told}{'' if good else ' WRONG'}")

    def _copy(self, case: Case, options: Mapping[str, Any]) -> float:
        made = self._task("transfer", {"encryption": case.encryption, **options})
        self._phases = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in made["phases"].items() if seconds)
        return float(made["duration"])

    def _remove_copy(self) -> None:
        remove_tree(self._bed.root("beta") / _DEST[1:])

    def _task(self, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        ends = {"src_host": "alpha", "src": f"{_SOURCE}/", "dest_host": "beta", "dest": _DEST}
        task = {"name": "Work", f"longhaul.fleet.{module}": {**ends, **options}}
        return self._playbooks.run([task], hosts="alpha", timeout=300).expect_success().result("Work")


def _recommended(best: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recommendation as options of transfer."""
    options = _way(best["method"], best["variant"], best["compress"])
    return {**options, "streams": best["streams"]} if best["method"] == "stream" else options


def _way(method: str, variant: str, compress: str) -> dict[str, Any]:
    options: dict[str, Any] = {"method": method, "compress": compress}
    if method == "stream":
        options["encryption"] = "none" if variant == "plain" else "required"
    if method == "rsync" and variant:
        options["ssh_ciphers"] = [variant]
    return options


def _other_ways(case: Case, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the options of each candidate that is allowed, plain and where it may pay compressed."""
    ratio, best = found["measurement"]["tree"]["ratio"], found["recommendation"]
    for one in found["candidates"]:
        if not one["allowed"] or (one["method"] in _SLOW_FILES and case.has_small_files):
            continue
        ways = ["none"]
        if one["compressed"] and ratio > _COMPRESSES:
            ways.append({"stream": "auto", "rsync": "zstd", "rsyncd": "zstd"}.get(one["method"], "zlib"))
        for compress in ways:
            options = _way(one["method"], one["variant"], compress)
            yield {**options, "streams": best["streams"]} if one["method"] == "stream" == best["method"] else options


def _way_text(options: Mapping[str, Any], variant: str = "") -> str:
    known = variant or {"none": "plain"}.get(options.get("encryption", ""), "".join(options.get("ssh_ciphers", ())))
    said = [str(options["method"]), known, "" if options["compress"] == "none" else str(options["compress"])]
    return " ".join(one for one in said if one)


def _check(step: str, predicted: Mapping[str, float], took: float) -> Check:
    return Check(step, predicted["seconds"], predicted["low"], predicted["high"], took)


def _seconds(one: tuple[float, object]) -> float:
    return one[0]


def _busy_seconds() -> float:
    """Return the seconds that this machine's processors have worked."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _idle, _waited, irq, softirq = (int(one) for one in file.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / _TICK
