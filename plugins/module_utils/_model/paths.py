# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Paths below a root: which are acceptable from a peer, and how they are printed."""

from __future__ import annotations

import re

NAME_MAX = 255  # bytes of one component, as in <limits.h>
PATH_LIMIT = 1 << 20  # bytes; a path may be longer than PATH_MAX, but not without end

STAGING = b".longhaul-"  # begins the name of a transfer's own folder below a destination, before 16 hex digits
_STAGING_NAME = re.compile(rb"(?:^|/)\.longhaul-[0-9a-f]{16}(?:/|$)")
_ESCAPED = re.compile(r"\\#([0-7]{3})")
_LOOKS_ESCAPED = re.compile(r"\\(?=#[0-9]{3})")


def components(path: bytes) -> list[bytes]:
    """Split a path below a root into its components; the root itself (``b""``) has none.

    Raises ValueError for whatever could lead outside the root or name the same thing twice: an absolute
    path, ``.`` or ``..`` or nothing as a component, a NUL byte, and lengths no file system has.
    """
    if not path:
        return []
    if len(path) > PATH_LIMIT:
        raise ValueError(f"a path of {len(path)} bytes is longer than the {PATH_LIMIT} that are accepted")
    parts = path.split(b"/")
    # This runs several times for every entry: what needs no loop comes first.
    if b"" in parts or b"." in parts or b".." in parts or b"\0" in path or len(path) > NAME_MAX:
        for part in parts:
            check_name(part, path)
    return parts


def check_path(path: bytes) -> None:
    """Raise ValueError for a path that ``components`` would refuse; quicker, where nothing but that is asked."""
    # Whatever is refused shows in one of these, which harmless paths hardly ever do.
    around = b"/" + path + b"/"
    if b"/." in around or b"//" in around or b"\0" in path or len(path) > NAME_MAX:
        components(path)


def check_name(name: bytes, path: bytes = b"") -> None:
    """Raise ValueError unless the name is one that a directory can hold."""
    if name in (b"", b".", b"..") or b"/" in name or b"\0" in name or len(name) > NAME_MAX:
        shown = escape((path or name)[:200])
        raise ValueError(
            f"the path '{shown}' is refused: it must be relative, of names of 1 to {NAME_MAX} bytes,"
            " without '.', '..' and NUL, or it could lead outside the root"
        )


def is_staging(path: bytes) -> bool:
    """Return whether a path is that of a transfer's own folder, or leads into one."""
    return STAGING in path and _STAGING_NAME.search(path + b"/") is not None


def join(parent: bytes, name: bytes) -> bytes:
    """Return the path of a name in a directory below the root."""
    return parent + b"/" + name if parent else name


def order(path: bytes) -> bytes:
    """Return the sort key of a path in walk order: a directory right before its contents, names in byte order."""
    return path.replace(b"/", b"\0")


def escape(path: bytes) -> str:
    r"""Return a path as printable text in the way of rsync: what cannot be printed becomes ``\#ooo`` (octal).

    Characters of UTF-8 that can be printed stay. A backslash that would read as the start of an escape
    becomes ``\#134``, so that :func:`unescape` gives the same bytes back.
    """
    text = _LOOKS_ESCAPED.sub(r"\\#134", path.decode("utf-8", "surrogateescape"))
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else "".join(f"\\#{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))
        for char in text
    )


def unescape(text: str) -> bytes:
    """Return the path that :func:`escape` (or rsync) printed."""
    parts = _ESCAPED.split(text)
    plain = [part.encode("utf-8", "surrogateescape") for part in parts[0::2]]
    special = [bytes([int(digits, 8) & 0xFF]) for digits in parts[1::2]] + [b""]
    return b"".join(before + byte for before, byte in zip(plain, special))
