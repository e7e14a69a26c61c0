# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Include lines of ssh_config and sshd_config, and the speed of AES on this processor. Private to the collection.

Source of the former: ssh_config(5) and sshd_config(5), keyword Include: patterns as a shell expands them, relative ones
below the folder of the system's configuration; a line inside a Host or Match block counts only where that block does.
Pure functions.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
import shlex
from typing import Callable, Iterable, NamedTuple

_LINE = re.compile(r"^\s*(?P<keyword>[A-Za-z0-9]+)(?:\s*=\s*|\s+)(?P<value>.*\S)\s*$")
# Names for `openssl speed -evp`, and the ciphers of ssh that stand or fall with them.
MEASURED = ("aes-128-gcm", "chacha20-poly1305")


def includes(text: str, path: str, folder: str) -> str:
    """Return whether a configuration includes the file at ``path``: ``yes``, ``late`` or ``no``.

    ``late``: the line that does stands after a Host or Match line, so it counts for some hosts only, and what stands
    before it wins. ``folder`` is where relative patterns begin, such as /etc/ssh.
    """
    conditional = False
    for line in text.splitlines():
        keyword, value = _split(line)
        if keyword in ("host", "match"):
            conditional = True
        elif keyword == "include" and any(fnmatch.fnmatchcase(path, one) for one in _patterns(value, folder)):
            return "late" if conditional else "yes"
    return "no"


def without(text: str, path: str, folder: str, expand: Callable[[str], Iterable[str]]) -> str:
    """Return the configuration as it would be without the file at ``path``, for ``ssh -F``.

    Include lines name their files one by one, since ssh takes relative patterns in a file that is given with -F from
    the user's folder. ``expand`` gives the files that a pattern matches.
    """
    lines = []
    for line in text.splitlines():
        keyword, value = _split(line)
        if keyword == "include":
            files = [name for pattern in _patterns(value, folder) for name in sorted(expand(pattern)) if name != path]
            line = f"Include {' '.join(_quoted(name) for name in files)}" if files else "# nothing to include"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _split(line: str) -> tuple[str, str]:
    found = _LINE.match(line)
    return (found["keyword"].lower(), found["value"]) if found else ("", "")


def _patterns(value: str, folder: str) -> list[str]:
    try:
        words = shlex.split(value, comments=True)
    except ValueError:  # a quotation mark without its partner: ssh refuses the file anyway
        return []
    return [posixpath.join(folder, word) for word in words]


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name


class AesSupport(NamedTuple):
    """Whether a processor is quick at AES, and the ``reason`` for that. ``known`` is False if it is a guess."""

    aes: bool
    reason: str
    known: bool


def aes_by_flags(cpuinfo: str) -> AesSupport | None:
    """Judge by /proc/cpuinfo; None if it has no list of flags, as on POWER and s390x.

    x86 names the list ``flags`` and Arm ``Features``; both call the instructions ``aes``.
    """
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    if not found:
        return None
    if "aes" in found.group(1).split():
        return AesSupport(True, "the processor has AES instructions", True)
    return AesSupport(False, "the processor has no AES instructions", True)


def parse_speed(output: str) -> float | None:
    """Return bytes a second from what ``openssl speed -mr -bytes N -evp NAME`` prints; None if there is no figure.

    The line is ``+F:22:AES-128-GCM:10710752748.05``.
    """
    found = re.findall(r"^\+F:\d+:[^:\n]+:([0-9.]+)$", output, re.MULTILINE)
    return float(found[-1]) if found and float(found[-1]) > 0 else None


def aes_by_speed(speeds: dict[str, float]) -> AesSupport | None:
    """Judge by bytes a second of both of MEASURED; None if one is missing."""
    if not all(speeds.get(name) for name in MEASURED):
        return None
    aes, chacha = (speeds[name] / 1e6 for name in MEASURED)
    word = "quicker" if aes > chacha else "slower"
    return AesSupport(
        aes > chacha, f"measured with openssl, AES is {word}: {aes:.0f} MB/s, chacha20-poly1305 {chacha:.0f} MB/s", True
    )


def assess_aes(cpuinfo: str | None, speeds: dict[str, float]) -> AesSupport:
    """Judge by a measurement where there is one, else by the flags, else take it that there are AES instructions."""
    return (
        aes_by_speed(speeds)
        or (aes_by_flags(cpuinfo) if cpuinfo is not None else None)
        or AesSupport(True, "nothing tells whether the processor has AES instructions; nearly all do", False)
    )
