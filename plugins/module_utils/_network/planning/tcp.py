# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""TCP settings for fast links.

ESnet's advice, fasterdata.es.net/host-tuning/linux, as perfSONAR's packages apply it.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Sequence

from ..host import Host

# Where the kernel says what TCP uses now, below /proc/sys/net/ipv4.
KERNEL_VALUES = ("tcp_rmem", "tcp_wmem", "tcp_available_congestion_control")

# Speed in Mbit/s from which they count, largest socket buffer (rmem_max, wmem_max), largest that TCP takes by itself
_BUFFERS = (
    (40000, 536870912, 268435456),
    (10000, 268435456, 134217728),
    (0, 67108864, 33554432),
)
JUMBO = 1500  # above this MTU a black hole on the way is more likely


def tcp_settings(
    speed: int, mtu: int, current: Mapping[str, str], congestion_control: str = "", qdisc: str = "fq"
) -> tuple[dict[str, str], list[str]]:
    """Return the settings by key, and what is wrong with what was asked.

    ``speed`` in Mbit/s is that of the fastest link that is wanted, ``mtu`` the largest MTU. ``current`` holds
    ``tcp_rmem``, ``tcp_wmem`` (three numbers each, of which the first two are kept) and
    ``tcp_available_congestion_control``. Empty ``congestion_control`` or ``qdisc``: it is left alone.
    """
    available = current.get("tcp_available_congestion_control", "").split()
    problems = []
    if congestion_control and congestion_control not in available:
        problems.append(
            f"nic_tcp_congestion_control: this kernel has no {congestion_control}; it has "
            f"{', '.join(available) or 'none'}. Load its module (modprobe tcp_{congestion_control}), or leave it out"
        )
    _least, largest, automatic = next(row for row in _BUFFERS if speed >= row[0])
    settings = {"net.core.rmem_max": str(largest), "net.core.wmem_max": str(largest)}
    for name in ("tcp_rmem", "tcp_wmem"):
        fields = current.get(name, "").split()
        if len(fields) != 3:
            problems.append(
                f"net.ipv4.{name} was read as {current.get(name)!r}, and not as three numbers; nothing is set"
            )
            continue
        settings[f"net.ipv4.{name}"] = " ".join([*fields[:2], str(max(automatic, int(fields[2])))])
    settings["net.ipv4.tcp_no_metrics_save"] = "1"
    if qdisc:
        settings["net.core.default_qdisc"] = qdisc
    if mtu > JUMBO:
        settings["net.ipv4.tcp_mtu_probing"] = "1"
    if congestion_control:
        settings["net.ipv4.tcp_congestion_control"] = congestion_control
    return settings, problems


def sysctl_file(settings: Mapping[str, str], header: str) -> str:
    """Return the text of a file in /etc/sysctl.d."""
    lines = [f"{key} = {value}" for key, value in sorted(settings.items())]
    return "\n".join([*([header.rstrip()] if header.strip() else []), *lines]) + "\n"


def fastest(speeds: Sequence[int | None], given: int) -> int:
    """Return the speed that counts: what was given, else the fastest that a link reports."""
    return given or max((speed for speed in speeds if speed), default=0)


class Tuning(NamedTuple):
    """What is asked of TCP."""

    congestion_control: str = ""  # empty: it is left alone
    qdisc: str = "fq"  # likewise
    speed: int = 0  # Mbit/s that count instead of those of the links; 0: theirs


def plan_tcp(
    host: Host, mtus: Mapping[str, int], current: Mapping[str, str], tuning: Tuning, header: str = ""
) -> tuple[str, list[str]]:
    """Return the text of a file in /etc/sysctl.d, and what is wrong with what was asked.

    ``mtus`` are those that are wanted, by link: the links that are named count, all where none is. ``current`` are the
    kernel's values.
    """
    if host.system != "Linux":
        return "", [
            "nic_tcp_tuning is for Linux; FreeBSD tunes its buffers by itself. Set nic_tcp_tuning: false for this host"
        ]
    chosen = [link for name, link in host.links.items() if name in mtus] or list(host.links.values())
    speed = fastest([link.speed for link in chosen], tuning.speed)
    largest = max([*mtus.values(), *(link.mtu or 0 for link in chosen if link.kind != "loopback")], default=0)
    settings, problems = tcp_settings(speed, largest, current, tuning.congestion_control, tuning.qdisc)
    return sysctl_file(settings, header), problems
