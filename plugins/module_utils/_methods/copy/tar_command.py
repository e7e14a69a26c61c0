# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands that pack and unpack the files of a shard with GNU tar or bsdtar. Pure.

Only the contents of regular files go through tar. Everything else that makes an entry (type, links, owner, ACLs,
extended attributes) is sent as the entry itself, so that both flavours, in any pairing, lose nothing. Names come on
standard input, each behind ``./`` and before a zero byte: none is taken for an option, whatever it begins with.
"""

from __future__ import annotations

from typing import Iterable

GNU, BSD = "gnu", "bsd"
FLAVOURS = (GNU, BSD)

MAX_PATH = 3800
"""Bytes of a relative path that tar is handed; PATH_MAX is 4096 on Linux and holds the shard's folder too."""


def detect(version_text: str) -> str:
    """Name the flavour by what ``tar --version`` prints; empty for any other (busybox's reads no list of names)."""
    first = version_text.strip().partition("\n")[0]
    if "GNU tar" in first:
        return GNU
    if first.startswith("bsdtar"):
        return BSD
    return ""


def carries(path: bytes, flavours: Iterable[str]) -> bool:
    """Return whether both ends' tars can be trusted with a name; what they cannot take is sent beside them.

    bsdtar converts names between character sets and fails on those that its locale does not know; the locale of a
    job is not the user's, so that only ASCII is safe.
    """
    return len(path) <= MAX_PATH and (BSD not in flavours or path.isascii())


# GNU tar reads a backslash in a name, that of --directory included, as an escape (\n, \123) unless --no-unquote stands
# before it. bsdtar takes names as they are.


def create_argv(flavour: str, root: str, sparse: bool, program: str = "tar") -> list[str]:
    """Return the argv that packs the regular files named on standard input to standard output.

    ``root`` is where the names start. ``sparse``: holes are not packed (bsdtar never packs them). The modification
    times are sent in nanoseconds (posix format); access and change times would double each header for nothing. Hard
    links are the entries' business: where two names of one file are asked for, two files are wanted (bsdtar packs a
    link all the same, so it must not be given both).
    """
    if flavour == GNU:
        return [
            program,
            "--create",
            "--no-unquote",
            "--file=-",
            "--format=posix",
            "--pax-option=delete=atime,delete=ctime",
            "--numeric-owner",
            *(["--sparse"] if sparse else []),
            "--hard-dereference",
            f"--directory={root}",
            "--no-recursion",
            "--null",
            "--files-from=-",
        ]
    if flavour == BSD:
        return [
            program,
            "-c",
            "-f",
            "-",
            "--format=pax",
            "--numeric-owner",
            "--no-acls",
            "--no-xattrs",
            "--no-fflags",
            "-C",
            root,
            "-n",
            "--null",
            "-T",
            "-",
        ]
    raise ValueError(f"there is no argv for the tar flavour {flavour!r}")


def extract_argv(flavour: str, folder: str, owners: bool, program: str = "tar") -> list[str]:
    """Return the argv that unpacks standard input below ``folder``.

    ``owners``: take over the numeric owner and group, for which one must be root; a mode with setuid survives only so.
    """
    if flavour == GNU:
        return [
            program,
            "--extract",
            "--no-unquote",
            "--file=-",
            f"--directory={folder}",
            "--preserve-permissions",
            "--numeric-owner",
            "--same-owner" if owners else "--no-same-owner",
            "--warning=no-timestamp",
            "--warning=no-unknown-keyword",
        ]
    if flavour == BSD:
        return [
            program,
            "-x",
            "-f",
            "-",
            "-C",
            folder,
            "-p",
            "--numeric-owner",
            "--same-owner" if owners else "--no-same-owner",
            "--no-acls",
            "--no-xattrs",
            "--no-fflags",
        ]
    raise ValueError(f"there is no argv for the tar flavour {flavour!r}")


def name_list(paths: Iterable[bytes]) -> bytes:
    """Return what tar reads on standard input."""
    return b"".join(b"./" + path + b"\0" for path in paths)


def explain_exit(flavour: str, code: int) -> str:
    """Return why a tar that ended like this cannot be believed; empty if it said all that is to know.

    1 is "some files differ" and 2 "fatal for some files" to GNU tar, 1 is both to bsdtar: which files, the entries
    tell. Anything else ended it.
    """
    if code in ((0, 1, 2) if flavour == GNU else (0, 1)):
        return ""
    if code < 0:
        return f"tar was ended by signal {-code}"
    return f"tar ended with code {code}"
