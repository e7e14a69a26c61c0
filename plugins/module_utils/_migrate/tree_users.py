# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the processes that use a tree: files that they have open or mapped, and their current folder. Reads /proc only.

Each process shows paths as its own mount namespace has them. One in a container has the tree at another path, so what
counts there is the file system and the place in it, by the namespace's mountinfo. A deleted file is in no tree.
"""

from __future__ import annotations

import os
import pwd
import time
from typing import TYPE_CHECKING, Callable, Iterator, NamedTuple

from .._core.mounts import is_on, unescaped

if TYPE_CHECKING:
    from typing import TypedDict

    class UserFacts(TypedDict):
        """A process that uses a tree."""

        pid: int
        name: str
        user: str
        path: str  # one file or folder, relative to the tree
        writes: bool  # it has a file open for writing, or mapped so

    class UsersFound(TypedDict):
        """The processes that use a tree, those that write first."""

        users: list[UserFacts]
        unseen: str  # why there may be others; empty: there are none


MOST = 20  # processes in an answer
_SECONDS = 5.0  # for all processes: one may have a million sockets open
_MOST_MAPS = 4 * 2**20  # bytes of a table of maps or mounts
_LONGEST = 300  # characters of a path
_DELETED = " (deleted)"
_ACCESS, _READS = 0o3, 0o0  # of flags in fdinfo, which are octal


class DevicePath(NamedTuple):
    """A folder by the file system that it is on and its path in that."""

    device: str  # major:minor
    path: str


Locate = Callable[[str], str]  # the path in the tree ("." for itself) of a path in a namespace; empty: not in there


def find_tree_users(tree: str, proc: str = "/proc", own: int = 0) -> UsersFound:
    """Return the processes that use ``tree``, an absolute path without links, but for this one and those above it.

    ``own`` is the process that does not count, 0 this one. Those of other users are visible to root alone.
    """
    if not os.path.isdir(os.path.join(proc, "self")):
        return {"users": [], "unseen": "this system has no /proc"}
    until = time.monotonic() + _SECONDS
    left_out = set(_above(proc, own or os.getpid()))
    here, spaces = _read_link(f"{proc}/self/ns/mnt"), _Namespaces(proc, tree)
    found: list[UserFacts] = []
    unseen = ""
    for entry in os.listdir(proc):
        if not entry.isdigit() or int(entry) in left_out:
            continue
        try:
            space = _read_link(f"{proc}/{entry}/ns/mnt")
            locate = spaces.inside if space == here else spaces.of(entry, space)
            used = _find_use(f"{proc}/{entry}", locate, until)
            if used is not None:
                found.append(_describe(proc, int(entry), *used))
        except OSError as error:  # it has ended, or hides even from root what it has mapped
            if isinstance(error, PermissionError) and str(error.filename).endswith("/fd"):
                unseen = f"user id {os.geteuid()} may not look at all processes (run this as root)"
        if time.monotonic() > until:
            return _answer(found, f"a look at the processes took longer than {_SECONDS:g} s")
    return _answer(found, unseen)


def _answer(found: list[UserFacts], unseen: str) -> UsersFound:
    found.sort(key=lambda one: (not one["writes"], one["pid"]))
    return {"users": found[:MOST], "unseen": unseen}


class _Namespaces:
    """Where the tree is, in this mount namespace and in others."""

    def __init__(self, proc: str, tree: str) -> None:
        self._proc, self._tree = proc, tree
        self._places: list[tuple[DevicePath, str]] = []  # of the tree, and of the file systems that are mounted inside
        self._known: dict[str, Locate] = {}

    def inside(self, path: str) -> str:
        """Locate a path of this namespace."""
        return os.path.relpath(path, self._tree) if is_on(path, self._tree) else ""

    def of(self, entry: str, space: str) -> Locate:
        """Return what locates the paths of the namespace of a process."""
        if space not in self._known:
            if not self._places:
                self._places = self._find_places()
            mounts = list(_parse_places(_read(f"{self._proc}/{entry}/mountinfo")))
            points = self._points_in(mounts)
            self._known[space] = lambda path: (
                self._find(_place_of(path, mounts)) if any(is_on(path, point) for point in points) else ""
            )
        return self._known[space]

    def _find_places(self) -> list[tuple[DevicePath, str]]:
        mounts = list(_parse_places(_read(f"{self._proc}/self/mountinfo")))
        inside = [(one, point) for point, one in mounts if point != self._tree and is_on(point, self._tree)]
        return [(_place_of(self._tree, mounts), self._tree), *inside]

    def _points_in(self, mounts: list[tuple[str, DevicePath]]) -> list[str]:
        """Return the paths of a namespace below which the tree, or a part of it, is seen.

        They are few, so each open file is compared with these first.
        """
        found = []
        for point, mounted in mounts:
            for place, _point in self._places:
                if mounted.device != place.device:
                    continue
                if is_on(place.path, mounted.path):
                    below = os.path.relpath(place.path, mounted.path)
                    found.append(os.path.normpath(os.path.join(point, below)))
                elif is_on(mounted.path, place.path):
                    found.append(point)
        return found

    def _find(self, place: DevicePath) -> str:
        for one, point in self._places:
            if place.device == one.device and is_on(place.path, one.path):
                below = os.path.join(point, os.path.relpath(place.path, one.path))
                return os.path.relpath(os.path.normpath(below), self._tree)
        return ""


def _parse_places(mountinfo: str) -> Iterator[tuple[str, DevicePath]]:
    """Yield each mount point and what is mounted there."""
    for line in mountinfo.splitlines():
        words = line.split(" ")
        if len(words) > 5:
            yield unescaped(words[4]), DevicePath(words[2], unescaped(words[3]))


def _place_of(path: str, mounts: list[tuple[str, DevicePath]]) -> DevicePath:
    """Return where a path is; of mounts on the same point the last one counts."""
    best, place = "", DevicePath("", "/")
    for point, one in mounts:
        if is_on(path, point) and len(point) >= len(best):
            best, place = point, one
    return DevicePath(place.device, os.path.normpath(os.path.join(place.path, os.path.relpath(path, best or "/"))))


def _find_use(process: str, locate: Locate, until: float) -> tuple[str, bool] | None:
    """Return a path in the tree that a process uses, and whether it writes to it; None if it uses none."""
    read_only = ""
    for number in os.listdir(f"{process}/fd"):
        path = _locate_link(f"{process}/fd/{number}", locate)
        if path and _is_open_for_writing(f"{process}/fdinfo/{number}"):
            return path, True
        read_only = read_only or path
        if time.monotonic() > until:
            break
    for line in _read(f"{process}/maps").split("\n"):
        words = line.split(None, 5)  # address, permissions, offset, device, inode, path
        if len(words) < 6 or not words[5].startswith("/") or words[5].endswith(_DELETED):
            continue
        writes = words[1][1:2] == "w" and words[1][3:4] == "s"
        if writes or not read_only:
            path = locate(words[5])
            if path and writes:
                return path, True
            read_only = read_only or path
    read_only = read_only or _locate_link(f"{process}/cwd", locate)
    return (read_only, False) if read_only else None


def _locate_link(link: str, locate: Locate) -> str:
    path = _read_link(link)
    return locate(path) if path.startswith("/") and not path.endswith(_DELETED) else ""


def _is_open_for_writing(fdinfo: str) -> bool:
    """Return whether a descriptor can be written to, which that of a folder never can."""
    try:
        lines = _read(fdinfo).split("\n")
    except OSError:  # closed meanwhile, which says nothing about the others
        return False
    for line in lines:
        if line.startswith("flags:"):
            return int(line.split()[1], 8) & _ACCESS != _READS
    return False


def _above(proc: str, pid: int) -> Iterator[int]:
    """Yield a process and those that it descends from: the shell, sudo and sshd of this very execution."""
    while pid > 1:
        yield pid
        try:
            pid = int(_read(f"{proc}/{pid}/stat").rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return


def _describe(proc: str, pid: int, path: str, writes: bool) -> UserFacts:
    uid = os.stat(f"{proc}/{pid}").st_uid
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    return {
        "pid": pid,
        "name": _read(f"{proc}/{pid}/comm").strip(),
        "user": user,
        "path": os.fsencode(path).decode(errors="replace")[:_LONGEST],
        "writes": writes,
    }


def _read_link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as stream:
        return stream.read(_MOST_MAPS)
