# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measurements of a pair of hosts, and conclusions from them, as plain typed data. Pure.

Rates are bytes a second, times are seconds; a rate of 0 means "not measured", and ``gaps`` say why.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class LinkRates:
    """One direction of the line, measured by the collection's own stream without disks."""

    one_stream: float = 0.0
    several_streams: float = 0.0
    streams: int = 1  # of several_streams
    encrypted: float = 0.0  # with TLS, by ``streams`` connections


@dataclass(frozen=True)
class LinkMeasurement:
    """The line between the two hosts."""

    forth: LinkRates = field(default_factory=LinkRates)  # from the source to the destination
    back: LinkRates = field(default_factory=LinkRates)
    connect: str = ""  # "push" or "pull": which end could connect to the other
    round_trip: float = 0.0
    loss: float = 0.0  # share of the segments that were sent again, 0 to 1
    path_mtu: int = 0
    window: int = 0  # bytes: the most that may be under way by the limits of both hosts' buffers
    congestion: str = ""  # of the source: cubic, bbr
    interfaces: dict[str, float] = field(default_factory=dict)  # by side: what the interface carries
    bonds: dict[str, str] = field(default_factory=dict)  # by side: bonding mode, absent without one


@dataclass(frozen=True)
class DiskMeasurement:
    """The disk of one side: read at the source, written with sync at the destination, past the caches."""

    large: float = 0.0  # of large files, bytes a second
    small: float = 0.0  # small files a second
    entries: float = 0.0  # entries a second, looked at without their contents
    compared: float = 0.0  # read and hashed at the same time, bytes a second
    kernel: bool = True  # counted by the kernel; else by the time spent in calls (FUSE, NFS)
    busy: float = 0.0  # share of the time that the device was busy, 0 to 1
    note: str = ""  # a ZFS pool's state and fill, a network file system


@dataclass(frozen=True)
class ProcessorMeasurement:
    """Work of one core of a host in a second, on a sample of the user's data."""

    cores: int = 1
    load: float = 0.0  # share of all cores that others used meanwhile, 0 to 1
    ciphers: dict[str, float] = field(default_factory=dict)  # ssh's names, and "tls"
    hashes: dict[str, float] = field(default_factory=dict)
    compression: dict[str, float] = field(default_factory=dict)  # "zlib-1", "zstd-3": bytes of input a second


@dataclass(frozen=True)
class TreeMeasurement:
    """The tree that is to move: counted in full, or estimated from the part that the budget allowed."""

    entries: int = 0
    files: int = 0
    bytes_apparent: int = 0
    bytes_on_disk: int = 0
    large_bytes: int = 0  # of bytes_on_disk, in files of at least 1 MiB
    is_complete: bool = True
    ratio: float = 1.0  # of a sample, compressed by plain


@dataclass(frozen=True)
class PairMeasurement:
    """Everything that was measured of a pair."""

    source: str = ""  # names in the inventory
    dest: str = ""
    at: float = 0.0  # seconds since the epoch
    seconds: float = 0.0  # what the measurement took
    bytes_sent: int = 0
    link: LinkMeasurement = field(default_factory=LinkMeasurement)
    disks: dict[str, DiskMeasurement] = field(default_factory=dict)  # by side
    processors: dict[str, ProcessorMeasurement] = field(default_factory=dict)  # by side
    tree: TreeMeasurement = field(default_factory=TreeMeasurement)
    gaps: tuple[str, ...] = ()  # what could not be measured, and why, one sentence each
    execution: float = 0.0  # seconds that Ansible takes to ask the slower host something; 0: not measured
    is_one_machine: bool = False  # both hosts are, as containers, and share its processors


@dataclass(frozen=True)
class Candidate:
    """One way to move the tree between these two hosts."""

    method: str
    variant: str = ""  # "TLS", "plain", "aes128-gcm@openssh.com", "zstd"
    plain: float = 0.0  # top speed of data that cannot be compressed
    compressed: float = 0.0  # top speed of this tree's data, compressed on its way; 0: cannot
    first_byte: float = 0.0
    processor: dict[str, float] = field(default_factory=dict)  # by side: cores used at top speed
    resumes: str = ""  # "range", "file", "no"
    encrypted: bool = False
    allowed: bool = True
    refused: str = ""  # why it is not allowed or cannot run
    derived: bool = True  # from the measured parts; else the method itself ran
    limited_by: str = ""  # name of the bottleneck, see transfer/bottleneck


@dataclass(frozen=True)
class Prediction:
    """A time with its range, in seconds."""

    seconds: float
    low: float
    high: float


@dataclass(frozen=True)
class Recommendation:
    """The method to use for this pair, and how long it takes."""

    method: str
    variant: str
    streams: int
    compress: str
    connect: str
    reason: str
    first_copy: Prediction
    unchanged: Prediction  # a pass without changes
    comparison: Prediction  # of both trees by content


@dataclass(frozen=True)
class BenchmarkResult:
    """The result of the benchmark of one pair, as it is kept."""

    measurement: PairMeasurement
    candidates: tuple[Candidate, ...]
    recommendation: Recommendation | None  # None: nothing can run, and ``candidates`` say why
    bottleneck: str = ""  # one sentence
    advice: str = ""
    src: str = ""  # path of the tree, as it was given; empty: only the line and the processors were measured
    dest: str = ""  # ... and where it is to go
