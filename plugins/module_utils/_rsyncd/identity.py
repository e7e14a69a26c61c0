# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rights of a module's user in a directory of this host, tried as that user. Private to the collection."""

from __future__ import annotations

import errno
import grp
import json
import os
import pwd
from typing import Callable, NamedTuple, Sequence, TypeVar, cast

T = TypeVar("T")
ROOT = ("root", "0")


class UnknownAccount(Exception):
    """A user or group that this host does not have; the text says which."""


class Ids(NamedTuple):
    """Who a module's processes are."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]


def find_ids(user: str, groups: Sequence[str]) -> Ids:
    """Resolve ``uid`` and ``gid`` of a module; a first ``*`` means all groups of the user. Raise UnknownAccount."""
    try:
        entry = pwd.getpwuid(int(user)) if user.isdigit() else pwd.getpwnam(user)
        uid, own_gid, name = entry.pw_uid, entry.pw_gid, entry.pw_name
    except KeyError:
        if not user.isdigit():
            raise UnknownAccount(
                f"the user {user} (uid) does not exist on this host. Create it, or name another"
            ) from None
        uid, own_gid, name = int(user), int(user), user
    found: list[int] = []
    for group in groups or ("*",):
        if group == "*":
            found += os.getgrouplist(name, own_gid) if name != user or not user.isdigit() else [own_gid]
            found.insert(0, own_gid)
        elif group.isdigit():
            found.append(int(group))
        else:
            try:
                found.append(grp.getgrnam(group).gr_gid)
            except KeyError:
                hint = " (here it is nogroup)" if group == "nobody" and _has_group("nogroup") else ""
                hint = " (here it is wheel)" if group == "root" and _has_group("wheel") else hint
                raise UnknownAccount(
                    f"the group {group} (gid) does not exist on this host{hint}. Name another"
                ) from None
    unique = tuple(dict.fromkeys(found))
    return Ids(name, uid, unique[0], unique)


def _has_group(name: str) -> bool:
    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True


def as_user(ids: Ids, action: Callable[[], T], start: str = "/") -> T:
    """Run ``action`` in a child process as this user, in the directory ``start`` that root enters first.

    Gives what it returns (plain data); raises OSError as the child did. Only root can become another user; where this
    process is not root the action runs as it is.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:  # pragma: no cover, in the child
        code = 1
        try:
            os.close(reading)
            answer = _in_child(ids, action, start)
            os.write(writing, json.dumps(answer).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        said = stream.read()
    os.waitpid(child, 0)
    if not said:
        raise OSError(errno.EIO, f"a process as {ids.name} ended without an answer")
    answer = json.loads(said)
    if "errno" in answer:
        raise OSError(answer["errno"], os.strerror(answer["errno"]), answer["path"])
    return cast(T, answer["value"])


def _in_child(ids: Ids, action: Callable[[], T], start: str) -> dict[str, T | int | str | None]:
    try:
        os.chdir(start)
        if os.geteuid() == 0:
            os.setgroups(list(ids.groups))
            os.setgid(ids.gid)
            os.setuid(ids.uid)
        return {"value": action()}
    except OSError as error:
        return {"errno": error.errno, "path": error.filename if isinstance(error.filename, str) else start}


def enters(ids: Ids, path: str) -> bool:
    """Return whether the user may list and pass ``path`` once the daemon has brought it there."""

    def list_folder() -> bool:
        os.stat("./.")
        os.listdir(".")
        return True

    try:
        return bool(as_user(ids, list_folder, path))
    except PermissionError:
        return False


def may_make_files(ids: Ids, path: str) -> bool:
    """Return whether the user's permissions let it make files in ``path``. Says nothing about read-only mounts."""

    def may_write() -> bool:
        return os.access(".", os.W_OK | os.X_OK) or _read_only(".")

    try:
        return bool(as_user(ids, may_write, path))
    except PermissionError:
        return False


def _read_only(path: str) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def first_blocked(ids: Ids, path: str) -> str:
    """Return the first directory of ``path`` (itself included) that the user cannot enter; empty if none."""

    def walk() -> str:
        parts = [part for part in path.split("/") if part]
        for number in range(len(parts) + 1):
            prefix = "/" + "/".join(parts[:number])
            try:
                os.stat(os.path.join(prefix, "."))
            except PermissionError:
                return prefix
        return ""

    return str(as_user(ids, walk))


def describe(path: str) -> str:
    """Return the owner and mode of a path, for messages: ``root:root 0700``."""
    found = os.stat(path)
    try:
        owner = pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        owner = str(found.st_uid)
    try:
        group = grp.getgrgid(found.st_gid).gr_name
    except KeyError:
        group = str(found.st_gid)
    return f"{owner}:{group} {found.st_mode & 0o7777:04o}"


def foreign_symlink(path: str, uid: int) -> str:
    """Return the first symlink on the way that neither root nor ``uid`` owns: rsync 3.5.0 does not follow it."""
    parts = [part for part in path.split("/") if part]
    for number in range(1, len(parts) + 1):
        prefix = "/" + "/".join(parts[:number])
        try:
            found = os.lstat(prefix)
        except OSError:
            return ""
        if os.path.islink(prefix) and found.st_uid not in (0, uid):
            return prefix
    return ""
