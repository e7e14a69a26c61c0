# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether this processor is quick at AES, by its flags or by a measurement. Private to the collection. Pure functions.

Why one question is enough: with AES instructions ssh spends 0.96 s of processor time for a GiB with aes128-gcm, and
1.39 with chacha20-poly1305; without them chacha20-poly1305 moves 288 MiB/s, aes128-ctr 135 and aes128-gcm 100. Either
way the distance is so large that noise does not turn the order around, so the answer is the same at every run.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# Names for `openssl speed -evp`, and the ciphers of ssh that stand or fall with them.
MEASURED = ("aes-128-gcm", "chacha20-poly1305")


class Verdict(NamedTuple):
    """``aes``: it is quick at AES. ``reason`` says how that is known. ``known`` is False if it is a guess."""

    aes: bool
    reason: str
    known: bool


def by_flags(cpuinfo: str) -> Verdict | None:
    """Judge by /proc/cpuinfo; None if it has no list of flags, as on POWER and s390x.

    x86 names the list ``flags`` and Arm ``Features``; both call the instructions ``aes``.
    """
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    if not found:
        return None
    if "aes" in found.group(1).split():
        return Verdict(True, "the processor has AES instructions", True)
    return Verdict(False, "the processor has no AES instructions", True)


def parse_speed(output: str) -> float | None:
    """Return bytes a second from what ``openssl speed -mr -bytes N -evp NAME`` prints; None if there is no figure.

    The line is ``+F:22:AES-128-GCM:10710752748.05``.
    """
    found = re.findall(r"^\+F:\d+:[^:\n]+:([0-9.]+)$", output, re.MULTILINE)
    return float(found[-1]) if found and float(found[-1]) > 0 else None


def by_speed(speeds: dict[str, float]) -> Verdict | None:
    """Judge by bytes a second of both of MEASURED; None if one is missing."""
    if not all(speeds.get(name) for name in MEASURED):
        return None
    aes, chacha = (speeds[name] / 1e6 for name in MEASURED)
    word = "quicker" if aes > chacha else "slower"
    return Verdict(
        aes > chacha, f"measured with openssl, AES is {word}: {aes:.0f} MB/s, chacha20-poly1305 {chacha:.0f} MB/s", True
    )


def judge(cpuinfo: str | None, speeds: dict[str, float]) -> Verdict:
    """Judge by a measurement where there is one, else by the flags, else take it that there are AES instructions."""
    return (
        by_speed(speeds)
        or (by_flags(cpuinfo) if cpuinfo is not None else None)
        or Verdict(True, "nothing tells whether the processor has AES instructions; nearly all do", False)
    )
