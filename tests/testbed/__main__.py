# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The testbed by hand: ``python -m tests.testbed up``, look around, ``python -m tests.testbed down``."""

from __future__ import annotations

import argparse
import os
import sys
import time

from . import network
from .bed import Testbed
from .line import Line
from .on_hosts import ENVIRONMENT, TestbedError


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.testbed", description=__doc__)
    parser.add_argument("--number", type=int, help="which testbed; default: the newest")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="bring up hosts that stay")
    up.add_argument("hosts", nargs="*", default=["alpha", "beta"])
    up.add_argument("--data-size", default="4g")
    commands.add_parser("down", help="take a testbed down")
    commands.add_parser("list", help="show what is up")
    run = commands.add_parser("exec", help="run a program on a host")
    run.add_argument("host")
    run.add_argument("argv", nargs=argparse.REMAINDER)
    line = commands.add_parser("line", help="put a long line between the first two hosts")
    line.add_argument("--off", action="store_true", help="remove it, and show what became of the packets")
    line.add_argument("--rtt", type=float, default=100, help="round-trip time in milliseconds (100)")
    line.add_argument("--rate", default="20mbit", help="as tc writes it (20mbit)")
    line.add_argument("--loss", type=float, default=0, help="percent of the packets (0)")
    line.add_argument("--burst", type=float, default=1, help="packets lost in a row, on average (1)")
    line.add_argument("--jitter", type=float, default=0, help="milliseconds (0)")
    line.add_argument("--reorder", type=float, default=0, help="percent of the packets (0)")
    line.add_argument("--queue", type=int, default=0, help="bytes (what the line carries in a round trip)")
    line.add_argument("--congestion", default=network.FAIR, help=f"the hosts' congestion control ({network.FAIR})")
    given = parser.parse_args()
    try:
        if given.command == "up":
            return bring_up(given.hosts, given.data_size)
        if given.command == "list":
            print(*Testbed.numbers(), sep="\n")
            return 0
        numbers = [given.number] if given.number else Testbed.numbers()[-1:]
        if not numbers:
            raise TestbedError("no testbed is up")
        bed = Testbed.attach(numbers[0])
        if given.command == "down":
            bed.close()
            return 0
        if given.command == "line":
            set_line(bed, given)
            return 0
        argv = bed.argv(given.host, given.argv)
        os.execvpe(argv[0], argv, {**ENVIRONMENT, "TERM": os.environ.get("TERM", "dumb")})
    except TestbedError as error:
        print(error, file=sys.stderr)
        return 1


def set_line(bed: Testbed, given: argparse.Namespace) -> None:
    """Put a long line between the hosts, or remove it."""
    if given.off:
        for host, counts in zip(bed.hosts, bed.shorten(), strict=False):
            print(f"from {host}: {', '.join(f'{name} {count}' for name, count in counts.items())}")
        return
    bed.set_congestion(given.congestion)
    bed.lengthen(
        Line(
            rtt=given.rtt / 1000,
            rate=network.bits(given.rate),
            loss=given.loss / 100,
            burst=given.burst,
            jitter=given.jitter / 1000,
            reorder=given.reorder / 100,
            queue=given.queue,
        )
    )


def bring_up(hosts: list[str], data_size: str) -> int:
    """Bring a testbed up, and say how to use it."""
    begun = time.monotonic()
    bed = Testbed(hosts, data_size=data_size, keep=True).up()
    inventory = bed.inventory(bed.folder / "inventory.yml")
    print(f"testbed {bed.number} is up after {time.monotonic() - begun:.2f} s")
    print(f"  ansible -i {inventory} all -m ansible.builtin.ping")
    print(f"  python -m tests.testbed --number {bed.number} exec {hosts[0]} bash")
    print(f"  python -m tests.testbed --number {bed.number} down")
    return 0


if __name__ == "__main__":
    sys.exit(main())
