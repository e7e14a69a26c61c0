# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Numbers of users and groups in POSIX ACLs, and what they become at the destination."""

from __future__ import annotations

import struct
from typing import Iterable, Mapping, Sequence

_ACL_HEADER = struct.Struct("<I")
_ACL_ENTRY = struct.Struct("<HHI")
ACL_USER, ACL_GROUP = 0x02, 0x08  # tags whose entry names an id; <linux/posix_acl_xattr.h>
ACL_OWNER, ACL_GROUP_OWNER, ACL_MASK, ACL_OTHER = 0x01, 0x04, 0x10, 0x20


def acl_ids(value: bytes) -> tuple[list[int], list[int]]:
    """Return the uids and gids that a POSIX ACL names (the value of ``system.posix_acl_*``)."""
    uids = [ident for tag, _permissions, ident in acl_entries(value) if tag == ACL_USER]
    gids = [ident for tag, _permissions, ident in acl_entries(value) if tag == ACL_GROUP]
    return uids, gids


class IdMap:
    """Maps the source's uids and gids to those of the destination. What the tables do not name keeps its number.

    The tables hold numbers alone: what a name is was asked before, and once (see ``owners``). So a chain or a swap of
    numbers is no matter: each number is mapped once.
    """

    def __init__(self, users: Mapping[int, int] | None = None, groups: Mapping[int, int] | None = None) -> None:
        self._users = dict(users or {})
        self._groups = dict(groups or {})

    @classmethod
    def of(cls, table: Mapping[str, Iterable[Sequence[int]]] | None) -> IdMap:
        """Make it of a plan's ``owner_map``: lists of pairs, ``users`` and ``groups``."""
        pairs = table or {}
        return cls(*({int(old): int(new) for old, new in pairs.get(kind, ())} for kind in ("users", "groups")))

    def as_table(self) -> dict[str, list[list[int]]]:
        """Return what ``of`` reads, plain data for JSON."""
        return {
            "users": [[old, new] for old, new in sorted(self._users.items())],
            "groups": [[old, new] for old, new in sorted(self._groups.items())],
        }

    def learn(self, users: Mapping[int, int], groups: Mapping[int, int]) -> None:
        """Add to the tables."""
        self._users.update(users)
        self._groups.update(groups)

    def uid(self, number: int) -> int:
        """Return the destination's uid for the source's uid."""
        return self._users.get(number, number)

    def gid(self, number: int) -> int:
        """Return the destination's gid for the source's gid."""
        return self._groups.get(number, number)

    def acl(self, value: bytes) -> bytes:
        """Return a POSIX ACL with the ids in it mapped.

        Where two ids become one, that one has what either had: an ACL must not name anybody twice.
        """
        if not (self._users or self._groups):
            return value
        entries: dict[tuple[int, int], int] = {}
        for tag, permissions, ident in acl_entries(value):
            if tag == ACL_USER:
                ident = self.uid(ident)
            elif tag == ACL_GROUP:
                ident = self.gid(ident)
            entries[tag, ident] = entries.get((tag, ident), 0) | permissions
        if not entries:
            return value
        # By tag and then by id, as setfacl writes them: two equal lists must be equal bytes.
        packed = (_ACL_ENTRY.pack(tag, permissions, ident) for (tag, ident), permissions in sorted(entries.items()))
        return value[: _ACL_HEADER.size] + b"".join(packed)


NUMERIC = IdMap()  # every number stays


def acl_mode(value: bytes) -> int:
    """Return the permission bits of a POSIX ACL: those of the owner, of the mask (or the group), and of others."""
    bits = {tag: permissions for tag, permissions, _ident in acl_entries(value)}
    group = bits.get(ACL_MASK, bits.get(ACL_GROUP_OWNER, 7))
    return bits.get(ACL_OWNER, 7) << 6 | group << 3 | bits.get(ACL_OTHER, 7)


def acl_entries(value: bytes) -> list[tuple[int, int, int]]:
    """Return the entries of a POSIX ACL: tag, permissions and id. What is no ACL has none."""
    if len(value) < _ACL_HEADER.size or (len(value) - _ACL_HEADER.size) % _ACL_ENTRY.size:
        return []
    return list(_ACL_ENTRY.iter_unpack(value[_ACL_HEADER.size :]))
