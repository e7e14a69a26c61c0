# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The dialects of netcat: which one a host has, and what to type. Pure.

One process carries one connection both ways, from its standard input to the peer and from there to its standard
output. Its exit code proves nothing (a receiver whose sender was killed ends with 0), so nothing here reads it: the
frames inside say what arrived. No argv has a time limit (``-w``, ``-i``): they cut streams that merely pause. All end
when their input ends, so that no process outlives a job that was killed; ncat and busybox do so by themselves.
"""

from __future__ import annotations

OPENBSD, TRADITIONAL, NCAT, BUSYBOX, FREEBSD, BUILTIN = (
    "openbsd",
    "traditional",
    "ncat",
    "busybox",
    "freebsd",
    "builtin",
)
DIALECTS = (OPENBSD, TRADITIONAL, NCAT, BUSYBOX, FREEBSD, BUILTIN)

_MARKS = (
    ("OpenBSD netcat", OPENBSD),
    ("[v1.10-", TRADITIONAL),
    ("Ncat ", NCAT),
    ("BusyBox v", BUSYBOX),
)


def detect(help_text: str, system: str = "Linux") -> str:
    """Name the dialect by what ``nc -h`` prints (both streams) and ``uname -s``; empty for one whose flags are unknown.

    FreeBSD's nc is of the OpenBSD family but does not say so; its help begins with ``usage: nc [-``.
    """
    for line in help_text.splitlines():
        for mark, dialect in _MARKS:
            if line.startswith(mark):
                return dialect
    if system == "FreeBSD" and "usage: nc [-" in help_text:
        return FREEBSD
    return ""


def connect_argv(dialect: str, address: str, port: int, program: str = "nc") -> list[str]:
    """Return the argv that connects to an address (numeric) and port.

    busybox has no flag against resolving names, and needs none for numbers.
    """
    if dialect in (OPENBSD, FREEBSD):
        return [program, *_family(address), "-n", "-N", address, str(port)]
    if dialect == TRADITIONAL:
        return [program, "-n", "-q", "0", address, str(port)]
    if dialect == NCAT:
        return [program, *_family(address), "-n", address, str(port)]
    if dialect == BUSYBOX:
        return [program, address, str(port)]
    raise ValueError(f"there is no argv for the netcat dialect {dialect!r}")


def speaks_ipv6(dialect: str) -> bool:
    """Return whether the dialect reaches IPv6 addresses at all."""
    return dialect != TRADITIONAL


def _family(address: str) -> list[str]:
    return ["-6"] if ":" in address else ["-4"]
