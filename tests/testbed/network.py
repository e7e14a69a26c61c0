# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the testbed's network is made of: addresses, and lines for ``ip -batch``. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

SLOW = 16_000_000  # bits per second, and less

# With BBR, which some machines have as their default, the first of several connections on a slow line starves the
# rest. A network of its own may always have Reno.
FAIR = "reno"
LONG = "long0"  # the device of a host at the end of a long line


class Addresses(NamedTuple):
    """Where a host is reached on one of the two networks."""

    ipv4: str
    ipv6: str


def management(number: int, index: int) -> Addresses:
    """Return the addresses of host ``index`` (from 0) of testbed ``number`` for Ansible."""
    return Addresses(f"10.99.{number}.{index + 1}", f"fd99:{number}::{index + 1}")


def data(number: int, index: int) -> Addresses:
    """Return the addresses of host ``index`` (from 0) of testbed ``number`` for the other hosts."""
    return Addresses(f"10.99.{number}.{index + 129}", f"fd99:{number}:1::{index + 1}")


def machine_lines(number: int, hub_pid: int) -> list[str]:
    """Return the commands that connect the machine to the hub."""
    link = f"lh{number}"
    return [
        f"link add {link} type veth peer name machine netns {hub_pid}",
        f"addr add 10.99.{number}.126/25 dev {link}",
        f"addr add fd99:{number}::ffff/64 dev {link} nodad",
        f"link set {link} up",
    ]


def hub_lines(host_pids: list[int]) -> list[str]:
    """Make the two bridges, and a cable from each to each host; ``data0`` is the data port of the first host."""
    lines = ["link set lo up"]
    for bridge in ("mgmt", "data"):
        lines += [f"link add {bridge} type bridge", f"link set {bridge} up"]
    for index, pid in enumerate(host_pids):
        for bridge, interface in (("mgmt", "eth0"), ("data", "eth1")):
            lines += [
                f"link add {bridge}{index} type veth peer name {interface} netns {pid}",
                f"link set {bridge}{index} master {bridge} up",
            ]
    return [*lines, "link set machine master mgmt up"]


def host_lines(number: int, index: int) -> list[str]:
    """Return the commands that set the addresses of a host."""
    lines = ["link set lo up"]
    for interface, addresses in (("eth0", management(number, index)), ("eth1", data(number, index))):
        lines += [
            f"addr add {addresses.ipv4}/25 dev {interface}",
            f"addr add {addresses.ipv6}/64 dev {interface} nodad",
            f"link set {interface} up",
        ]
    return lines


def congestion(algorithm: str) -> list[str]:
    """Return the command by which new connections of a host get a congestion control by default."""
    return ["sh", "-c", f"echo {algorithm} >/proc/sys/net/ipv4/tcp_congestion_control"]


def long_lines(number: int, index: int, other: int) -> list[str]:
    """Return the commands that send over the long line what host ``index`` sends to the data addresses of another."""
    here, there = data(number, index), data(number, other)
    return [
        f"link set {LONG} mtu 1500 txqueuelen 10000 addrgenmode none up",
        f"route add {there.ipv4}/32 dev {LONG} src {here.ipv4}",
        f"route add {there.ipv6}/128 dev {LONG} src {here.ipv6}",
    ]


def shaping(interface: str, rate: str | None) -> list[str]:
    """Return the arguments of ``tc`` that limit an interface's outgoing rate (``100mbit``), or remove the limit."""
    if rate is None:
        return ["qdisc", "del", "dev", interface, "root"]
    # Slow lines get a queue of whole packets for several connections: of two large bursts, one connection has both.
    queue = ["burst", "128kb", "latency", "50ms"] if bits(rate) > SLOW else ["burst", "16kb", "limit", "128kb"]
    return ["qdisc", "replace", "dev", interface, "root", "tbf", "rate", rate, *queue]


def bits(rate: str) -> int:
    """Return the bits per second of a rate as ``tc`` writes it: ``800kbit``, ``1mbit``, ``2gbit``."""
    found = re.fullmatch(r"(\d+)([kmg])bit", rate)
    if found is None:
        raise ValueError(f"{rate!r} is no rate like 800kbit or 1mbit")
    return int(found[1]) * 1000 ** (" kmg".index(found[2]))
