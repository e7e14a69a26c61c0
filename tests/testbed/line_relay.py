# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pass packets between TUN devices of two hosts as a long line does. A program; ``between_hosts.py`` starts it.

Its only argument is a JSON object: ``pids`` (the first processes of the two hosts), ``device`` (the name that the
device gets in both), ``line`` (arguments of Line), ``counts`` (a file). It prints a line when the devices are there. It
ends with either host, or with SIGTERM; then it writes to the file what became of the packets of each direction.

A packet is passed as the kernel wrote it, one by one: the devices take no large packets that stand for several.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import json
import os
import select
import signal
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from line import Line, Way  # type: ignore[import-not-found]  # run by its path, without the package

NEW_NET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
AT_ONCE = 64  # packets read from one side before the other has its turn
LARGEST = 65536
PRIORITY = -10  # what is late here would look like a longer line


def open_device(pid: int, name: str) -> int:
    """Make a TUN device in the network of a process, and return the descriptor of its other side."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/proc/{pid}/ns/net", "rb") as network:
        if libc.setns(network.fileno(), NEW_NET):
            raise OSError(ctypes.get_errno(), f"setns: {os.strerror(ctypes.get_errno())}")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return device


def relay(ends: tuple[int, int], ways: tuple[Way, Way], watched: list[int]) -> None:
    """Pass packets until one of the ``watched`` descriptors is readable."""
    waiting: list[tuple[float, int, int, bytes]] = []  # when a packet arrives, its number, where, and itself
    number = 0
    others = {ends[0]: (ends[1], ways[0]), ends[1]: (ends[0], ways[1])}
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _when, _number, where, packet = heapq.heappop(waiting)
            with suppress(OSError):  # the device is not up yet, or not any more
                os.write(where, packet)
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable = select.select([*ends, *watched], [], [], pause)[0]
        now = time.monotonic()
        for fd in readable:
            if fd in watched:
                return
            where, way = others[fd]
            for _packet in range(AT_ONCE):
                try:
                    packet = os.read(fd, LARGEST)
                except OSError:  # there is no more, or the device is down
                    break
                arrives = way.offer(now, len(packet))
                if arrives is not None:
                    number += 1
                    heapq.heappush(waiting, (arrives, number, where, packet))


def main() -> None:
    """Be the line."""
    spec: dict[str, Any] = json.loads(sys.argv[1])
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    line = Line(**spec["line"])
    ways = Way(line, 2 * line.seed), Way(line, 2 * line.seed + 1)
    watched = [os.pidfd_open(pid) for pid in spec["pids"]]
    first, second = (open_device(pid, spec["device"]) for pid in spec["pids"])
    signal.signal(signal.SIGTERM, lambda *_signal: sys.exit())
    try:
        print("ready", flush=True)
        relay((first, second), ways, watched)
    finally:
        Path(spec["counts"]).write_text(json.dumps([way.counts() for way in ways]), encoding="ascii")


if __name__ == "__main__":
    main()
