# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which local owner a file gets: the same numbers, or the ids of the same names. Private to the collection."""

from __future__ import annotations

import contextlib
import grp
import pwd
import struct
from typing import Callable, Mapping

_ACL_HEADER = struct.Struct("<I")
_ACL_ENTRY = struct.Struct("<HHI")
ACL_USER, ACL_GROUP = 0x02, 0x08  # tags whose entry names an id; <linux/posix_acl_xattr.h>


def user_name(uid: int) -> str:
    """Give the name of a local user, or an empty text where the number has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return ""


def group_name(gid: int) -> str:
    """Give the name of a local group, or an empty text where the number has none."""
    try:
        return grp.getgrgid(gid).gr_name
    except (KeyError, OverflowError):
        return ""


def acl_ids(value: bytes) -> tuple[list[int], list[int]]:
    """Give the uids and gids that a POSIX ACL names (the value of ``system.posix_acl_*``)."""
    uids = [ident for tag, _permissions, ident in acl_entries(value) if tag == ACL_USER]
    gids = [ident for tag, _permissions, ident in acl_entries(value) if tag == ACL_GROUP]
    return uids, gids


class IdMap:
    """Maps the source's uids and gids to local ones.

    Made without names it maps every number to itself. With the source's ``{uid: name}`` and ``{gid: name}`` a
    number whose name exists here becomes the local number of that name; other numbers, and root, stay.
    """

    def __init__(self, users: Mapping[int, str] | None = None, groups: Mapping[int, str] | None = None) -> None:
        self._users = users or {}
        self._groups = groups or {}
        self._known_uids: dict[int, int] = {0: 0}
        self._known_gids: dict[int, int] = {0: 0}

    def uid(self, number: int) -> int:
        """Give the local uid for the source's uid."""
        known = self._known_uids.get(number)
        if known is None:
            known = _mapped(number, self._users, self._known_uids, lambda name: pwd.getpwnam(name).pw_uid)
        return known

    def gid(self, number: int) -> int:
        """Give the local gid for the source's gid."""
        known = self._known_gids.get(number)
        if known is None:
            known = _mapped(number, self._groups, self._known_gids, lambda name: grp.getgrnam(name).gr_gid)
        return known

    def acl(self, value: bytes) -> bytes:
        """Give a POSIX ACL with the ids in it mapped."""
        found = acl_entries(value)
        if not found or not (self._users or self._groups):
            return value
        entries = []
        for tag, permissions, ident in found:
            if tag == ACL_USER:
                ident = self.uid(ident)
            elif tag == ACL_GROUP:
                ident = self.gid(ident)
            entries.append((tag, permissions, ident))
        # By tag and then by id, as setfacl writes them: two equal lists shall be equal bytes.
        entries.sort(key=lambda entry: (entry[0], entry[2]))
        return value[: _ACL_HEADER.size] + b"".join(_ACL_ENTRY.pack(*entry) for entry in entries)


def _mapped(number: int, names: Mapping[int, str], known: dict[int, int], look_up: Callable[[str], int]) -> int:
    known[number] = number
    if names.get(number):
        with contextlib.suppress(KeyError):  # no such name here: the number stays
            known[number] = look_up(names[number])
    return known[number]


def acl_entries(value: bytes) -> list[tuple[int, int, int]]:
    if len(value) < _ACL_HEADER.size or (len(value) - _ACL_HEADER.size) % _ACL_ENTRY.size:
        return []
    return list(_ACL_ENTRY.iter_unpack(value[_ACL_HEADER.size :]))
