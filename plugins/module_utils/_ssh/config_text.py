# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading ssh_config and sshd_config for their Include lines. Private to the collection.

Source: ssh_config(5) and sshd_config(5), keyword Include: patterns as a shell expands them, relative ones below the
folder of the system's configuration; a line inside a Host or Match block counts only where that block does. Pure
functions.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
import shlex
from typing import Callable, Iterable

_LINE = re.compile(r"^\s*(?P<keyword>[A-Za-z0-9]+)(?:\s*=\s*|\s+)(?P<value>.*\S)\s*$")


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
