# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kernel counts on a testbed host: bytes on a link, memory of processes, room on a disk."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ansible_collections.longhaul.fleet.tests.support.control_node import ticks_of, used_here
from ansible_collections.longhaul.fleet.tests.testbed import Process, Testbed, network

if TYPE_CHECKING:
    from typing import Self

HEADERS = 66  # bytes of each TCP packet that are not payload: Ethernet 14, IPv4 20, TCP with time stamps 32
MTU_FRAME, MTU_PAYLOAD = 1514, 1448  # bytes of a full packet on Ethernet as shaping counts it, and of its payload
_TICKS = os.sysconf("SC_CLK_TCK")


class Wire(NamedTuple):
    """What a link has carried since the host came up, both ways together: bytes, and packets."""

    count: int
    packets: int

    def since(self, before: Wire) -> Wire:
        """Return what was carried after ``before``."""
        return Wire(self.count - before.count, self.packets - before.packets)

    @property
    def payload(self) -> int:
        """The bytes without the packets' headers; what the kernel sends as one large packet has one header here."""
        return self.count - self.packets * HEADERS


def parse_net_dev(text: str, interface: str) -> Wire:
    """Read the counters of an interface from the text of ``/proc/net/dev``. Raise KeyError if it is not there."""
    for line in text.splitlines():
        name, colon, counters = line.partition(":")
        if colon and name.strip() == interface:
            numbers = [int(word) for word in counters.split()]
            return Wire(numbers[0] + numbers[8], numbers[1] + numbers[9])
    raise KeyError(interface)


def parse_private(text: str) -> int:
    """Return the bytes of a process's own pages from the text of its ``smaps_rollup``."""
    return sum(int(kib) << 10 for kib in re.findall(r"^Private_(?:Clean|Dirty):\s+(\d+) kB", text, re.M))


def wire(bed: Testbed, host: str = "alpha") -> Wire:
    """Return the traffic of a host's link to the data network, and of a long line that is in its place."""
    text = Path(f"/proc/{bed.pid(host)}/net/dev").read_text()
    direct = parse_net_dev(text, "eth1")
    try:
        far = parse_net_dev(text, network.LONG)
    except KeyError:
        return direct
    return Wire(direct.count + far.count, direct.packets + far.packets)


def used(bed: Testbed, host: str = "beta", path: str = "data") -> int:
    """Return the bytes that are in use on the file system of a host's ``path``, relative to its root."""
    found = os.statvfs(bed.root(host) / path)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def processor(bed: Testbed) -> float:
    """Return the processor seconds so far of what this process started and of all hosts, also of what has ended."""
    return used_here() + used_by_hosts(bed)


def used_by_hosts(bed: Testbed) -> float:
    """Return the processor seconds so far of all processes of all hosts, those that ended included."""
    folders = (folder for host in bed.hosts for folder in (bed.root(host) / "proc").glob("[0-9]*"))
    return sum(ticks_of(folder, waited=True) for folder in folders)


def private_memory(bed: Testbed, host: str) -> int:
    """Return the bytes of the own pages of all processes on a host, without the testbed's own and sshd's."""
    total = 0
    for process in bed.processes(host):
        with contextlib.suppress(OSError):
            total += parse_private((bed.root(host) / f"proc/{process.pid}/smaps_rollup").read_text())
    return total


def earliest_start(bed: Testbed, host: str, names: tuple[str, ...]) -> float | None:
    """Return when the first process with one of these words in its argv began, on CLOCK_BOOTTIME."""
    found = []
    for process in bed.processes(host):
        if any(os.path.basename(word) in names for word in process.argv):
            with contextlib.suppress(OSError):
                found.append(began(bed, host, process))
    return min(found, default=None)


def stat_fields(bed: Testbed, host: str, process: Process) -> list[str]:
    """Return the fields of a process's ``stat`` from its state on. Raise OSError if it is gone."""
    return (bed.root(host) / f"proc/{process.pid}/stat").read_text().rpartition(")")[2].split()


def began(bed: Testbed, host: str, process: Process) -> float:
    """Return when a process began, on CLOCK_BOOTTIME. Raise OSError if it is gone."""
    return int(stat_fields(bed, host, process)[19]) / _TICKS


def first_file(bed: Testbed, host: str = "beta") -> float | None:
    """Return when the first file with contents appeared (its change time, on CLOCK_REALTIME)."""
    looked = ["find", "/data/out", "-type", "f", "-size", "+0", "-printf", "%C@\\n"]
    return min((float(line) for line in bed.exec(host, looked, timeout=600).stdout.split()), default=None)


class Onlooker:
    """Watch from a separate thread for the duration of a block."""

    def __init__(self, bed: Testbed) -> None:
        self._bed = bed
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_ended: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        raise NotImplementedError


class Watch(Onlooker):
    """Watch something while it runs: peak memory of both hosts, and when it began.

    ``peak`` has the peaks by host, in bytes. ``first`` gives the seconds from the start of the sending process until
    the first file with contents was at the destination; None if there was no such process, or no such file. Both
    times are the kernel's, so that they are right however late this looks.
    """

    _PAUSE, _UNTIL_BEGUN = 0.2, 0.02  # seconds from one look to the next

    def __init__(self, bed: Testbed, names: tuple[str, ...]) -> None:
        super().__init__(bed)
        self._names = names
        self.peak = dict.fromkeys(bed.hosts, 0)
        self._begun: float | None = None

    def first(self) -> float | None:
        arrived = first_file(self._bed)
        if self._begun is None or arrived is None:
            return None
        booted = time.clock_gettime(time.CLOCK_REALTIME) - time.clock_gettime(time.CLOCK_BOOTTIME)
        return max(0.0, arrived - booted - self._begun)

    def _look(self) -> None:
        while True:
            if self._begun is None:
                self._begun = earliest_start(self._bed, "alpha", self._names)
            for host in self._bed.hosts:
                self.peak[host] = max(self.peak[host], private_memory(self._bed, host))
            if self._over.wait(self._PAUSE if self._begun else self._UNTIL_BEGUN):
                return
