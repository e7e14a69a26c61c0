# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of the slowest part of a transfer, and one sentence on each: observation, numbers, remedy. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ..common.units import format_bytes, format_duration

SOURCE_DISK, SOURCE_CPU, NETWORK = "source_disk", "source_cpu", "network"
DEST_CPU, DEST_DISK, NONE = "destination_cpu", "destination_disk", "none"
DISKS, PROCESSORS = (SOURCE_DISK, DEST_DISK), (SOURCE_CPU, DEST_CPU)
CONTENTION, CIPHER = "contention", "cipher"  # causes of a slow processor
BWLIMIT, RECEIVE_WINDOW, SEND_BUFFER, LOSS, FULL = "bwlimit", "receive_window", "send_buffer", "loss", "full_line"

HOSTS = {SOURCE_DISK: "source", SOURCE_CPU: "source", DEST_CPU: "destination", DEST_DISK: "destination"}

_FASTER_DISK = "a faster disk there, or less other work for it (iostat -x), would help; more streams would not"
_LESS_TO_COMPUTE = (
    "compress: auto or none, more streams where cores are idle, and encryption: none if the network is trusted would "
    "help; a faster network would not"
)
_OTHER_WORK = (
    "let other work there wait (top shows it), or give the host more processors; fewer streams and less compression "
    "leave more to the rest"
)
_CHEAPER_CIPHER = (
    "encryption: none if the network is trusted, a processor with AES instructions, or more streams where cores are "
    "idle would help; a faster network would not"
)
_SLOW_NETWORK = (
    "look for loss, a small MTU, other traffic or a slow part of the way (role nic, ethtool, iperf3), and try compress "
    "or more streams; faster disks would not help"
)
ONLY_A_FASTER_LINE = "the line is full, so only compress, or a faster line, would help"
_REMEDIES = {
    **dict.fromkeys([(name, "") for name in DISKS], _FASTER_DISK),
    **dict.fromkeys([(name, "") for name in PROCESSORS], _LESS_TO_COMPUTE),
    **dict.fromkeys([(name, CONTENTION) for name in PROCESSORS], _OTHER_WORK),
    **dict.fromkeys([(name, CIPHER) for name in PROCESSORS], _CHEAPER_CIPHER),
    (NETWORK, ""): _SLOW_NETWORK,
    (NETWORK, BWLIMIT): "raise bwlimit if the network has more to give; nothing else would help",
    (NETWORK, FULL): ONLY_A_FASTER_LINE,
}


class SlowPart(NamedTuple):
    """The part of a transfer that the others wait for."""

    name: str
    cause: str  # of a network or a processor that is slow, as far as it is known; else empty
    sentence: str  # observation and remedy
    remedy: str  # the second half of the sentence


def slow_part(name: str, cause: str, observation: str, remedy: str = "") -> SlowPart:
    """Return a slow part with its sentence. ``observation`` is a clause with numbers, which begins in lower case.

    ``remedy`` is for causes that have none of their own, since it depends on numbers (``tcp_limits``).
    """
    remedy = remedy or _REMEDIES[name, cause]
    return SlowPart(name, cause, f"{capital(observation)}: {remedy}.", remedy)


def nothing_slow(observation: str, remedy: str = "") -> SlowPart:
    """Return that no part stands out, with the reason."""
    return SlowPart(NONE, "", f"{capital(observation)}{f': {remedy}' if remedy else ''}.", remedy)


def rate_text(rate: float) -> str:
    """Return ``18.0 MiB/s`` for a rate in bytes a second."""
    return f"{format_bytes(rate)}/s"


def time_text(seconds: float) -> str:
    """Return ``312 s``, and the hours and minutes of what takes longer than ten minutes."""
    return f"{seconds:.0f} s" if seconds < 600 else format_duration(seconds)


def percent_text(share: float) -> str:
    """Return ``94 %`` for 0.94."""
    return f"{100 * share:.0f} %"


def of_time(share: float, seconds: float) -> str:
    """Return ``94 % of 312 s``."""
    return f"{percent_text(share)} of {time_text(seconds)}"


def capital(clause: str) -> str:
    """Return a clause that begins with a capital letter."""
    return clause[:1].upper() + clause[1:]
