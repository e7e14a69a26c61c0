# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Landlock rules: what a process of a transfer may still write, at a source still read, and reach. Pure.

Landlock restricts what is opened, made, moved and removed from then on; what is open stays so. It restricts neither
chmod, chown and utime nor extended attributes, wherever a file is. It has no right for connecting to a socket that has
a path (/run/docker.sock): such sockets stay within reach of everyone whom their modes let connect, so of root.
"""

from __future__ import annotations

import os
from typing import Iterable, Sequence, Tuple, Union

Where = Union[str, bytes, int]  # an open descriptor, too
Allowed = Tuple[Where, int]  # what may be done to a file, or to a directory and all that is below it

# <linux/landlock.h>
WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK = 1 << 6, 1 << 7, 1 << 8, 1 << 9, 1 << 10, 1 << 11
MAKE_SYM, REFER, TRUNCATE = 1 << 12, 1 << 13, 1 << 14
OF_FILES = WRITE_FILE | READ_FILE | TRUNCATE  # what a rule for something that is no directory may have
OLDEST = 2  # version 1 refuses every move and link from one directory to another
_TRUNCATES = 3  # the first version that knows TRUNCATE

# Of processes and Unix sockets: no signal to a process, and no connection to an abstract socket, that is not confined
# by the same rules. What the process itself starts is.
ABSTRACT_SOCKETS, SIGNALS = 1 << 0, 1 << 1
SCOPES = ABSTRACT_SOCKETS | SIGNALS
_SCOPES_SINCE = 6  # the first version that knows them

READ = READ_FILE | READ_DIR
DEVICES = MAKE_CHAR | MAKE_BLOCK
WRITE = (
    *(WRITE_FILE, TRUNCATE, REMOVE_DIR, REMOVE_FILE, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_SYM, REFER),
    *(MAKE_CHAR, MAKE_BLOCK),
)
ALL_WRITE = sum(WRITE)

_NULL = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")
# Programs, their libraries and settings, the name service, what the kernel shows. Not here: /home, /root, /srv, /mnt,
# /media, and nearly all of /var.
_SYSTEM = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/opt", "/nix", "/gnu", "/snap"),
    *("/etc", "/proc", "/sys", "/dev", "/run", "/var/run"),
    *("/var/lib/sss", "/var/lib/samba", "/var/lib/extrausers", "/var/cache/nscd", "/var/db", "/var/yp"),
)


class Ruleset:
    """``handled`` is withheld everywhere but where something is ``allowed``.

    ``required``: the places without which nothing would work; the others may be missing. A plain class: to make another
    kind takes a job a millisecond.
    """

    def __init__(self, handled: int, allowed: Sequence[Allowed], required: Sequence[Where]) -> None:
        self.handled, self.allowed, self.required = handled, allowed, required

    @property
    def reads(self) -> bool:
        """Whether reading is restricted, too."""
        return bool(self.handled & READ)

    @property
    def writes(self) -> bool:
        """Whether writing is restricted."""
        return bool(self.handled & ALL_WRITE)


def anywhere() -> Ruleset:
    """Return the rules for a process whose files are not restricted; scopes need rules, too."""
    return Ruleset(0, (), ())


def writing(
    root: Where | None, state: str, devices: bool = False, made: Iterable[bytes] = (), memory: str = ""
) -> Ruleset:
    """Return the rules for a process that writes below ``root`` (None: below no root) and in its state folder.

    ``devices``: it may make devices. ``made``: directories, the deepest first, that it takes back where it fails.
    ``memory``: a folder for files that are on no disk.
    """
    allowed: list[Allowed] = [(state, ALL_WRITE & ~DEVICES)]
    allowed += [(path, WRITE_FILE | TRUNCATE) for path in _NULL]
    # The lock on the destination, which is removed at the end: see destination_lock.
    allowed.append((os.path.join(os.path.dirname(os.path.dirname(state)), "locks"), REMOVE_FILE))
    if root is not None:
        allowed.append((root, ALL_WRITE if devices else ALL_WRITE & ~DEVICES))
    made = list(made)
    if made:
        allowed.append((os.path.dirname(made[-1]), REMOVE_DIR))
    if memory:
        allowed.append((memory, WRITE_FILE | TRUNCATE | MAKE_REG | REMOVE_FILE))
    return Ruleset(ALL_WRITE, allowed, [state] if root is None else [state, root])


def reading(rules: Ruleset, root: Where, state: str, code: Iterable[str], programs: Iterable[str]) -> Ruleset:
    """Return ``rules`` for a process that reads nothing but ``root``, its state folder and what it runs.

    ``code``: files and folders from which Python imports. ``programs``: the folders in which programs are looked for.
    """
    places: list[Where] = [root, state, *_SYSTEM]
    places += [path for path in dict.fromkeys([*code, *map(_installation, programs)]) if _is_outside(path)]
    allowed = [*rules.allowed, *((place, READ) for place in places)]
    return Ruleset(rules.handled | READ, allowed, [*rules.required, root])


def unpacking(folder: int) -> Ruleset:
    """Return the rules for a program that writes regular files below an open folder, and nothing else."""
    rights = WRITE_FILE | TRUNCATE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | REFER
    return Ruleset(ALL_WRITE, [(folder, rights), ("/dev/null", WRITE_FILE | TRUNCATE)], [folder])


def for_version(rights: int, version: int) -> int:
    """Return the rights that a version of Landlock knows."""
    return rights if version >= _TRUNCATES else rights & ~TRUNCATE


def scopes_of(version: int) -> int:
    """Return the scopes that a version of Landlock knows."""
    return SCOPES if version >= _SCOPES_SINCE else 0


def _is_outside(path: str) -> bool:
    return path.startswith("/") and not any(f"{path}/".startswith(f"{known}/") for known in _SYSTEM)


def _installation(folder: str) -> str:
    """Return where the libraries of a folder of programs are: beside it; of a person's own, the folder alone."""
    above, name = os.path.split(folder.rstrip("/"))
    is_own = above.count("/") < 2 or os.path.dirname(above) == "/home"  # /root/bin, /srv/bin
    return above if name in ("bin", "sbin") and not is_own else folder
