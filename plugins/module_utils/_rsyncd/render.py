# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The text of rsyncd.conf and of the files beside it. Private to the collection. Pure."""

from __future__ import annotations

import re
from typing import Any, Mapping

from .options import NAMES, OF_A_MODULE, OPTIONS

MARK = "longhaul.fleet.rsyncd"
_FIRST = ("path", "comment", "read_only", "write_only", "use_chroot", "uid", "gid")
_BLOCK = r"(?ms)^# BEGIN longhaul\.fleet\.rsyncd {part}\n.*?^# END longhaul\.fleet\.rsyncd {part}\n"


def line(key: str, value: Any) -> str:
    """Write one option."""
    option = OPTIONS[key]
    if isinstance(value, bool):
        text = "yes" if value else "no"
    elif option.kind == NAMES and any(re.search(r"\s", word) for word in value):
        text = "," + ", ".join(value)  # a comma first: split at commas alone
    elif isinstance(value, tuple):
        text = " ".join(value)
    else:
        text = str(value)
    return f"{option.name} = {text}".rstrip()


def file_name(name: str) -> str:
    """Return the name of a module's own file; what is unusual in file names is written as %XX."""
    kept = "".join(c if re.match(r"[A-Za-z0-9._-]", c) else "".join(f"%{b:02X}" for b in c.encode()) for c in name)
    return ("%2E" + kept[1:] if kept.startswith(".") else kept) + ".conf"


def module_text(values: Mapping[str, Any], shared: Mapping[str, Any], header: str = "") -> str:
    """Write the file of one module: its options over the shared defaults. ``header`` is a comment."""
    options = {key: value for key, value in {**shared, **values}.items() if key in OF_A_MODULE}
    keys = [key for key in _FIRST if key in options] + sorted(key for key in options if key not in _FIRST)
    lines = _header(header) + [marker(values["name"]), f"[{values['name']}]"]
    return "\n".join(lines + [line(key, options[key]) for key in keys]) + "\n"


def marker(name: str) -> str:
    """Return the line by which the role recognizes its own files."""
    return f"# {MARK}: module {name}"


def is_ours(text: str) -> bool:
    """Return whether a module's file was written by the role."""
    return re.search(rf"^# {re.escape(MARK)}: module ", text, re.MULTILINE) is not None


def include_text(existing: str, daemon: Mapping[str, Any], folder: str, header: str = "") -> str:
    """Return rsyncd.conf with the role's two blocks in it and every other line as it was.

    A daemon takes port, pid file and the like only from what stands before the first module, so they come first; the
    modules come last, in a global part of their own, so that nothing of them reaches the modules that were there.
    """
    rest = without_blocks(existing)
    if not re.search(rf"(?m)^\s*&include\s+{re.escape(folder)}/?\s*$", rest):
        if rest and not rest.endswith("\n"):
            rest += "\n"
        if rest.endswith("\\\n"):
            rest += "\n"  # a continued line would swallow the block's first one
        rest += _block("modules", [*_header(header), "[global]", f"&include {folder}"])
    lines = [line(key, daemon[key]) for key in sorted(daemon)]
    return (_block("daemon", [*_header(header), *lines]) if lines else "") + rest


def whole_text(daemon: Mapping[str, Any], folder: str, header: str = "") -> str:
    """Write rsyncd.conf from nothing: the daemon's options, then the modules' files."""
    lines = [line(key, daemon[key]) for key in sorted(daemon)]
    return "\n".join([*_header(header), f"# {MARK}: the whole file", *lines, f"&include {folder}"]) + "\n"


def without_blocks(text: str) -> str:
    """Return the lines of rsyncd.conf that the role did not write."""
    for part in ("daemon", "modules"):
        text = re.sub(_BLOCK.format(part=part), "", text)
    return text


def redirected(text: str, folder: str, other: str) -> str:
    """Return the text with the directives for one directory naming another: for a trial beside the real files."""
    found = re.compile(rf"(?mi)^(\s*&(?:include|merge)\s+){re.escape(folder)}/?[ \t]*$")
    return found.sub(lambda match: match.group(1) + other, text)


def _header(header: str) -> list[str]:
    lines = [text.rstrip() for text in header.strip().splitlines()]
    return [text if text.startswith("#") else f"# {text}".rstrip() for text in lines]


def _block(part: str, lines: list[str]) -> str:
    return "\n".join([f"# BEGIN {MARK} {part}", *lines, f"# END {MARK} {part}"]) + "\n"
