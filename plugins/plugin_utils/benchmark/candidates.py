# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Derive the speed of every method between two hosts from the measured parts of the way. Pure.

A method is a chain: the source's disk, a program there, the line, a program at the destination, its disk. Its speed is
that of the slowest part. Disks, line, ciphers and compression are measured on the pair itself; the programs' own costs
are those of this project's benchmarks, scaled by how fast the pair's processors hash, and for files by how fast the
destination looks at entries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from ..transfer.diagnosis import DEST_CPU, DEST_DISK, NETWORK, SOURCE_CPU, SOURCE_DISK
from ..transfer.plan import STREAMS_UNASKED
from .abilities import TLS, Ability, is_encrypted
from .measurement import Candidate, DiskMeasurement, PairMeasurement, ProcessorMeasurement

SIDES = ("source", "dest")
_PROCESSORS = {"source": SOURCE_CPU, "dest": DEST_CPU}
_DISKS = {"source": SOURCE_DISK, "dest": DEST_DISK}
_MB = 1e6  # bytes, as docs/benchmarks.md counts them
_MICROSECOND = 1e-6


class MethodCosts(NamedTuple):
    """Costs of one method on the reference machine, without ciphers, compression and disks."""

    program: float  # seconds a byte in its slowest program, on one connection
    processor: float  # seconds of processor time a byte at each end
    file: float  # seconds a file
    entry: float  # seconds an entry that did not change
    start: float  # seconds until the first byte of a file arrives
    start_trips: float  # round trips until then
    file_trips: float  # round trips a file that nothing else fills
    window: int = 0  # bytes under way at most by the program's own protocol; 0: by TCP's alone
    connections: bool = False  # several carry more


# From docs/benchmarks.md of 2026-11-27 (2 cores of an AMD EPYC for both hosts, files in memory, a line as fast as the
# memory). program: 1 / (2147 MB / (large - start)), less 1 / REFERENCE_CIPHER for ssh; stream: plain, twice for
# its two connections. processor: half of the processor seconds of "large" a byte (stream, tar_nc, scp, sftp, less the
# cipher), or the run time of the raw rsync daemon, whose two programs were never idle. file: (small - start - bytes) /
# 50,000; entry: (warm - start) / 50,500. sftp was not measured with small files: three times scp's. start: "start".
# Round trips are those of the protocols: TCP 1, TLS 1, the stream's handshake 2; ssh 8 and rsync 3; scp -O answers a
# file's name, time and end; sftp opens, sets and closes. window: ssh's channel of 2 MiB (channels.h,
# CHAN_SES_WINDOW_DEFAULT).
REFERENCE_CIPHER = 2200 * _MB  # bytes a second, AES-128-GCM on that machine
REFERENCE_HASH = 750 * _MB  # BLAKE2b on that machine
REFERENCE_LOOKS = 150_000  # entries a second, looked at in memory, on that machine
COMPARED = 20 * _MICROSECOND  # seconds an entry of the comparison by size: (whole task - phase) of "warm" and "start"
READ = 25 * _MICROSECOND  # seconds of a processor more for each file whose contents are compared
_SSH_WINDOW = 2 << 20
COSTS = {
    "stream": MethodCosts(0.84e-9, 0.38e-9, 26 * _MICROSECOND, 8 * _MICROSECOND, 0.08, 4, 0, 0, True),
    "rsync": MethodCosts(2.22e-9, 0.77e-9, 65 * _MICROSECOND, 16 * _MICROSECOND, 0.57, 11, 0, _SSH_WINDOW, True),
    "rsyncd": MethodCosts(1.44e-9, 0.77e-9, 51 * _MICROSECOND, 18 * _MICROSECOND, 0.32, 5, 0, 0, True),
    "tar_nc": MethodCosts(2.48e-9, 1.64e-9, 32 * _MICROSECOND, 10 * _MICROSECOND, 0.16, 4, 0, 0, True),
    "scp": MethodCosts(1.33e-9, 0.25e-9, 205 * _MICROSECOND, 6 * _MICROSECOND, 0.81, 10, 3, _SSH_WINDOW),
    "sftp": MethodCosts(1.41e-9, 0.20e-9, 615 * _MICROSECOND, 6 * _MICROSECOND, 0.80, 11, 4, _SSH_WINDOW),
}
# Speeds of ciphers by that of AES-GCM, where one was not measured (docs/benchmarks.md and _ssh/ciphers: 0.96 s a GiB
# for GCM, 1.39 for ChaCha20, 1.57 for CTR with its MAC).
_BY_GCM = (("gcm", 1.0), ("chacha20", 0.69), ("ctr", 0.61), ("", 0.5))
_SAME = 0.9  # of the plain rate: encryption that costs less is no different
_LEVELS = {"zstd": ("zstd-1", "zstd-3"), "zlib": ("zlib-1", "zlib-6")}  # the engine's level first


@dataclass(frozen=True)
class Parts:
    """Bytes of files a second that each part of the way can move, by the names of transfer/bottleneck; 0: not known."""

    rates: dict[str, float]

    @property
    def slowest(self) -> tuple[str, float]:
        """The part that holds the others up, and its rate; empty and 0 where nothing is known."""
        known = {name: rate for name, rate in self.rates.items() if rate > 0}
        name = min(known, key=lambda one: known[one], default="")
        return name, known.get(name, 0.0)


def list_candidates(measured: PairMeasurement, abilities: tuple[Ability, ...]) -> tuple[Candidate, ...]:
    """Return every method and variant with its derived speed; those that cannot run, or may not, say why."""
    return tuple(derive_candidate(measured, ability) for ability in abilities)


def derive_candidate(measured: PairMeasurement, ability: Ability) -> Candidate:
    """Return what one method can do between the hosts that were measured."""
    made = Candidate(
        method=ability.method,
        variant=ability.variant,
        resumes=ability.resumes,
        encrypted=is_encrypted(ability),
        allowed=ability.runs,
        refused=ability.obstacle or ability.refusal,
    )
    if ability.obstacle:  # then there is nothing to derive; one that is only not allowed is worth knowing
        return made
    parts = find_parts(measured, ability)
    if not parts.rates.get(NETWORK):
        return made
    name, plain = parts.slowest
    compressed = find_parts(measured, ability, compressed=True).slowest[1] if best_algorithm(measured, ability) else 0.0
    costs = COSTS[ability.method]
    first_byte = costs.start / _machine_speed(measured) + costs.start_trips * measured.link.round_trip
    used = {side: round(plain * _processor_seconds(measured, ability, side), 3) for side in SIDES}
    return replace(made, plain=plain, compressed=compressed, first_byte=first_byte, processor=used, limited_by=name)


def find_parts(measured: PairMeasurement, ability: Ability, compressed: bool = False) -> Parts:
    """Return how much each part of the way moves for a method; ``compressed``: of the tree's data, compressed."""
    ratio = max(1.0, measured.tree.ratio) if compressed else 1.0
    rates = {_DISKS[side]: disk_of(measured, side).large for side in SIDES}
    carried = _network(measured, ability)
    encrypted = measured.link.forth.encrypted if ability.variant == TLS else 0.0
    if encrypted >= carried * _SAME:
        carried = min(carried or encrypted, encrypted or carried)
    rates[NETWORK] = carried * ratio
    for side in SIDES:
        rates[_PROCESSORS[side]] = _processor(measured, ability, side, ratio if compressed else 0.0)
    if 0 < encrypted < carried * _SAME:  # without encryption the line carries more, so a processor is what it waits for
        slower = min(SIDES, key=lambda side: rates[_PROCESSORS[side]])
        rates[_PROCESSORS[slower]] = min(rates[_PROCESSORS[slower]], encrypted * ratio)
    return Parts(rates)


def best_algorithm(measured: PairMeasurement, ability: Ability) -> str:
    """Return the algorithm that a method would compress with, as the option of transfer names it; empty: none."""
    return _algorithm(measured, ability)[0]


def count_streams(measured: PairMeasurement, method: str) -> int:
    """Return the number of connections that carry most for a method: those that were measured, where they pay."""
    rates = measured.link.forth
    if not COSTS[method].connections or method != "stream":
        return 1
    least = min((processor.cores for processor in measured.processors.values()), default=1)
    if rates.several_streams > rates.one_stream * 1.1:
        return max(1, rates.streams)
    return max(1, min(STREAMS_UNASKED, least))


def _network(measured: PairMeasurement, ability: Ability) -> float:
    """Return what the line carries by the connections of a method."""
    link, costs = measured.link.forth, COSTS[ability.method]
    one = link.one_stream or link.several_streams / max(1, link.streams)
    if ability.method == "stream":
        carried = max(one, link.several_streams)
    else:
        carried = one
    if costs.window and measured.link.round_trip > 0:
        carried = min(carried, costs.window / measured.link.round_trip)
    return carried


def _processor(measured: PairMeasurement, ability: Ability, side: str, ratio: float) -> float:
    """Return what the programs of one side can move: each has one core, and all together have those that are idle.

    ``ratio``: by which the data is compressed; 0: it is not.
    """
    processor, costs = processor_of(measured, side), COSTS[ability.method]
    shrunk = max(1.0, ratio)
    cipher = _cipher(measured, ability, side) / shrunk
    packing = _packing(measured, ability, side) if ratio else 0.0
    speed = machine_speed(processor)
    alone = costs.program / speed + cipher + packing
    together = costs.processor / speed + cipher + packing
    idle = max(0.1, processor.cores * (1.0 - processor.load)) / (2 if measured.is_one_machine else 1)
    return min(count_streams(measured, ability.method) / alone, idle / together)


def _processor_seconds(measured: PairMeasurement, ability: Ability, side: str) -> float:
    """Return the seconds of processor time that a byte takes at one side."""
    speed = machine_speed(processor_of(measured, side))
    return COSTS[ability.method].processor / speed + _cipher(measured, ability, side)


def _cipher(measured: PairMeasurement, ability: Ability, side: str) -> float:
    """Return the seconds of one core that the cipher takes for a byte."""
    if not ability.cipher:
        return 0.0
    known = processor_of(measured, side).ciphers
    if known.get(ability.cipher):
        return 1.0 / known[ability.cipher]
    strongest = max(known.values(), default=0.0) or REFERENCE_CIPHER * machine_speed(processor_of(measured, side))
    share = next(share for mark, share in _BY_GCM if mark in ability.cipher)
    return 1.0 / (strongest * (1.0 if ability.cipher == "tls" else share))


def _packing(measured: PairMeasurement, ability: Ability, side: str) -> float:
    """Return the seconds of one core that compression takes for a byte; unpacking takes about a quarter of that."""
    rate = _algorithm(measured, ability)[1]
    if not rate:
        return 0.0
    return 1.0 / rate if side == "source" else 0.25 / rate


def _algorithm(measured: PairMeasurement, ability: Ability) -> tuple[str, float]:
    """Return the first of the method's algorithms that the source has measured, and its bytes of input a second.

    Return ``"", 0.0`` if it has measured none of them.
    """
    known = processor_of(measured, "source").compression
    for name in ability.algorithms:
        for level in _LEVELS[name]:
            if known.get(level):
                return name, known[level]
    return "", 0.0


def machine_speed(processor: ProcessorMeasurement) -> float:
    """Return how fast a core is by that of the reference machine, from what it hashes; 1 where that is not known."""
    rate = processor.hashes.get("blake2b", 0.0)
    return min(5.0, max(0.05, rate / REFERENCE_HASH)) if rate > 0 else 1.0


def file_speed(measured: PairMeasurement) -> float:
    """Return how fast the slower host works on files by that of the reference machine, from how it looks at entries.

    That of the source is not known apart from its disk's, so its processor counts.
    """
    looks = disk_of(measured, "dest").entries
    at_dest = min(5.0, max(0.05, looks / REFERENCE_LOOKS)) if looks > 0 else 5.0
    return min(at_dest, _machine_speed(measured))


def _machine_speed(measured: PairMeasurement) -> float:
    return min(machine_speed(processor_of(measured, side)) for side in SIDES)


def processor_of(measured: PairMeasurement, side: str) -> ProcessorMeasurement:
    """Return what was measured of a side's processor."""
    return measured.processors.get(side, ProcessorMeasurement())


def disk_of(measured: PairMeasurement, side: str) -> DiskMeasurement:
    """Return what was measured of a side's disk."""
    return measured.disks.get(side, DiskMeasurement())
