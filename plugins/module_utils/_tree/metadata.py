# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Owner, mode, ACLs, xattrs and times: what differs, and how it is set. Private to the collection.

The order is owner, mode, xattrs and ACLs (the capability last of them), times: chown takes away setuid and the
capability, and everything else changes the times. A directory's times come after its contents.
"""

from __future__ import annotations

import errno
import os
import time
from typing import Callable, NamedTuple

from .._model.entry import SYMLINK, Entry
from .._model.ids import NUMERIC, IdMap
from .._model.paths import escape
from . import xattr
from .inode import Inode

FIELDS = ("owner", "group", "mode", "times", "xattrs", "acls")  # as differences() names them

# What a destination loses when the source has it not. Others in security.* and system.* belong to the host
# (SELinux labels, IMA hashes), and its policy sets them.
_REMOVABLE = (b"user.", b"trusted.", xattr.CAPABILITY)


class Withheld(str):
    """Something that was left out on purpose: no error, and no difference for the next run either."""


SETID_WITHHELD = Withheld(
    "setuid or setgid is not set, since the owner or the group here is another than at the source"
)
CAPABILITY_WITHHELD = Withheld("capabilities are not set, since the owner here is another than at the source")
TRUST_WITHHELD = Withheld(
    "extended attributes of the namespaces trusted and security (other than capabilities) are not set, since trust is "
    "none"
)
GROUP_WITHHELD = Withheld("the group is not kept, since the user here is not a member of it")


class Powers(NamedTuple):
    """What the process may do to files: root everything, others only what their ids allow.

    ``trusts_source``: or root not what only programs of the host itself read and believe (overlayfs, SELinux, IMA).
    """

    uid: int
    groups: frozenset[int]
    trusts_source: bool = True

    @classmethod
    def of_this_process(cls, trusts_source: bool = True) -> Powers:
        """Ask the kernel, once."""
        return cls(os.geteuid(), frozenset([os.getegid(), *os.getgroups()]), trusts_source)

    @property
    def all(self) -> bool:
        """Whether it is root."""
        return self.uid == 0

    def may_give_to_group(self, gid: int) -> bool:
        """Return whether own files can be given to the group."""
        return self.all or gid in self.groups

    def may_set_xattr(self, name: bytes) -> bool:
        """Return whether own files can get this attribute, and lose it."""
        if name.startswith((b"user.", xattr.ACL_PREFIX)):
            return True
        return self.all and (self.trusts_source or name == xattr.CAPABILITY)


ROOT_POWERS = Powers(0, frozenset())

# What every file system can store: 32 bits of seconds. Beyond, the kernel silently stores the nearest that there is.
EARLIEST_NS = -(2**31) * 10**9
LATEST_NS = 2**31 * 10**9 - 1


def differences(
    wanted: Entry,
    found: Entry,
    preserve: frozenset[str],
    ids: IdMap = NUMERIC,
    powers: Powers = ROOT_POWERS,
) -> frozenset[str]:
    """Name what of :data:`FIELDS` must be set on ``found``, of the same type, to be as ``wanted``.

    ``preserve`` is what the settings call ``owner group permissions times acls xattrs``. What the process has
    not the power to set is no difference, or every run would try again.
    """
    differ = set()
    same_owner, same_group = found.uid == ids.uid(wanted.uid), found.gid == ids.gid(wanted.gid)
    if "owner" in preserve and powers.all and not same_owner:
        differ.add("owner")
    if "group" in preserve and powers.may_give_to_group(ids.gid(wanted.gid)) and not same_group:
        differ.add("group")
    # Linux has no mode for a symlink of its own.
    mode = _safe_mode(wanted, same_owner or "owner" in differ, same_group or "group" in differ)
    if "permissions" in preserve and wanted.type != SYMLINK and found.mode != mode:
        differ.add("mode")
    if "times" in preserve and found.mtime_ns != wanted.mtime_ns:
        differ.add("times")
    if wanted.xattrs or found.xattrs:
        for field, is_acl in (("acls", True), ("xattrs", False)):
            lends = not (same_owner or "owner" in differ)
            if field in preserve and any(_xattr_changes(wanted, found, is_acl, ids, powers, lends)):
                differ.add(field)
    return frozenset(differ)


def apply(
    parent_fd: int,
    name: bytes,
    wanted: Entry,
    found: Entry | None,
    preserve: frozenset[str],
    ids: IdMap = NUMERIC,
    *,
    powers: Powers | None = None,
) -> list[str]:
    """Make the name in the open directory have what ``wanted`` has, as far as ``preserve`` says so.

    ``found`` is what is there, with its xattrs, and None if it was just made: then it is looked at. Nothing
    is followed; the directory itself is the name ``b"."``. See :func:`dress` for the result.

    Raises OSError, before anything is changed, if the name stands for something other than ``found``.
    """
    with Inode(parent_fd, name, found) as inode:
        return dress(inode, wanted, found, preserve, ids, powers=powers)


def dress(
    inode: Inode,
    wanted: Entry,
    found: Entry | None,
    preserve: frozenset[str],
    ids: IdMap = NUMERIC,
    *,
    powers: Powers | None = None,
) -> list[str]:
    """Make what is held have what ``wanted`` has, as :func:`apply` does.

    Gives what could not be set, as texts without the path. It never leaves something out silently: what
    the process has not the power to set is among them.
    """
    powers = powers or Powers.of_this_process()
    work = _Work(inode, wanted, preserve, ids, powers)
    chowned = work.owner(found)
    if found is None or chowned:
        found = work.look(found)
    if found is not None:
        work.stale_acls(found)
        # Setting an ACL or losing one changes the mode's group bits, so the mode is set in between.
        work.mode(found, always=work.changed_acl)
        work.xattrs(found)
    if "times" in preserve:
        work.times()
    return work.problems


def chmod(parent_fd: int, name: bytes, mode: int, found: Entry | None = None) -> None:
    """Set the permission bits of a name in an open directory, which must stand for ``found``, if that is given.

    A symlink is refused, not followed (OSError).
    """
    with Inode(parent_fd, name, found) as inode:
        inode.chmod(mode)


class _Work:
    """One call of apply: what it works on, and what went wrong so far."""

    def __init__(self, inode: Inode, wanted: Entry, preserve: frozenset[str], ids: IdMap, powers: Powers) -> None:
        self.inode = inode
        self.wanted = wanted
        self.preserve = preserve
        self.ids = ids
        self.powers = powers
        self.problems: list[str] = []
        self.changed_acl = False

    def look(self, before: Entry | None) -> Entry | None:
        """Return what is there now, or ``before`` if that cannot be read."""
        with_xattrs = "acls" in self.preserve or "xattrs" in self.preserve
        try:
            return self.inode.entry(self.wanted.path, with_xattrs)
        except OSError as error:
            self.problems.append(f"cannot be looked at: {error.strerror}")
            return before

    def owner(self, found: Entry | None) -> bool:
        """Set owner and group; says whether a chown was made."""
        uid, gid = self.ids.uid(self.wanted.uid), self.ids.gid(self.wanted.gid)
        new_uid = uid if "owner" in self.preserve and (found is None or found.uid != uid) else -1
        new_gid = gid if "group" in self.preserve and (found is None or found.gid != gid) else -1
        if not self.powers.all:
            if new_uid not in (-1, self.powers.uid):
                self.problems.append(f"owner {uid} not set: only root may give files away")
            new_uid = -1  # own files are own files already
            if new_gid != -1 and not self.powers.may_give_to_group(gid):
                self.problems.append(GROUP_WITHHELD)
                new_gid = -1
        if new_uid == new_gid == -1:
            return False
        self._try(f"owner {uid}:{gid}", lambda: self.inode.chown(new_uid, new_gid))
        return True

    def stale_acls(self, found: Entry) -> None:
        """Remove the ACLs that the source has not."""
        if "acls" not in self.preserve:
            return
        for key, value in _xattr_changes(self.wanted, found, True, self.ids, self.powers):
            if value is None:
                self.changed_acl = True
                self._remove("ACL", key)

    def mode(self, found: Entry, always: bool) -> None:
        """Set the permission bits."""
        if "permissions" not in self.preserve or self.wanted.type == SYMLINK:
            return
        same_owner = found.uid == self.ids.uid(self.wanted.uid)
        mode = _safe_mode(self.wanted, same_owner, found.gid == self.ids.gid(self.wanted.gid))
        if mode != self.wanted.mode:
            self.problems.append(SETID_WITHHELD)
        if always or found.mode != mode:
            self._try(f"mode {mode:04o}", lambda: self.inode.chmod(mode))

    def xattrs(self, found: Entry) -> None:
        """Set and remove extended attributes; set the ACLs."""
        for field, is_acl in (("xattrs", False), ("acls", True)):
            if field not in self.preserve:
                continue
            lends = found.uid != self.ids.uid(self.wanted.uid)
            changes = _xattr_changes(self.wanted, found, is_acl, self.ids, self.powers, lends)
            if (
                lends
                and not is_acl
                and self.powers.all
                and any(key == xattr.CAPABILITY for key, _value in self.wanted.xattrs)
            ):
                self.problems.append(CAPABILITY_WITHHELD)
            # Writing other attributes leaves the capability alone, but it comes last all the same: it must
            # not be there while anything else of the file is still wrong.
            changes.sort(key=lambda change: change[0] == xattr.CAPABILITY)
            if is_acl or self.powers.all:
                self._write(changes)
            elif changes:
                self._write_as_owner(changes)
            left_out = [
                key
                for key, _value in self.wanted.xattrs
                if key.startswith(xattr.ACL_PREFIX) == is_acl and not self.powers.may_set_xattr(key)
            ]
            if left_out and not self.powers.trusts_source:
                self.problems.append(TRUST_WITHHELD)
                left_out = [] if self.powers.all else [key for key in left_out if key == xattr.CAPABILITY]
            self.problems += [f"xattr {escape(key)} not set: only root may" for key in left_out]

    def _write_as_owner(self, changes: list[tuple[bytes, bytes | None]]) -> None:
        """Write user.* attributes of a file that its mode may forbid even the owner to write."""
        mode = self.inode.entry(self.wanted.path).mode
        if mode & 0o200 or self.wanted.type == SYMLINK:
            self._write(changes)
            return
        self._try(f"mode {mode | 0o200:04o}", lambda: self.inode.chmod(mode | 0o200))
        self._write(changes)
        self._try(f"mode {mode:04o}", lambda: self.inode.chmod(mode))

    def _write(self, changes: list[tuple[bytes, bytes | None]]) -> None:
        for key, value in changes:
            self._xattr(key, value)

    def _xattr(self, key: bytes, value: bytes | None) -> None:
        kind = "ACL" if key.startswith(xattr.ACL_PREFIX) else "xattr"
        if value is not None:
            self._try(f"{kind} {escape(key)}", lambda: self.inode.set_xattr(key, value))
        elif kind == "xattr":  # stale ACLs went before
            self._remove(kind, key)

    def _remove(self, kind: str, key: bytes) -> None:
        self._try(f"removal of {kind} {escape(key)}", lambda: self.inode.remove_xattr(key))

    def times(self) -> None:
        """Set the modification time; the access time becomes now, as rsync leaves it."""
        wanted = self.wanted.mtime_ns
        self._try("time", lambda: self.inode.set_times(time.time_ns(), wanted))
        if not EARLIEST_NS <= wanted <= LATEST_NS and not self.problems:
            stored = self.inode.status().st_mtime_ns
            if stored // 10**9 != wanted // 10**9:
                self.problems.append(
                    f"time {wanted // 10**9} (since 1970) not set: the file system cannot store it; give it another "
                    "time at the source (touch)"
                )

    def _try(self, what: str, call: Callable[[], None]) -> None:
        try:
            call()
        except OSError as error:
            hint = ": the file system has none" if error.errno == errno.ENOTSUP else f": {error.strerror}"
            self.problems.append(f"{what} not set{hint}")
        except OverflowError:
            self.problems.append(f"{what} not set: out of the range that the system can store")


def _safe_mode(wanted: Entry, same_owner: bool, same_group: bool) -> int:
    """Return the mode, without setuid and setgid if they would grant the rights of a different owner."""
    mode = wanted.mode
    if not same_owner:
        mode &= ~0o4000
    if not same_group:
        mode &= ~0o2000
    return mode


def _xattr_changes(
    wanted: Entry, found: Entry, is_acl: bool, ids: IdMap, powers: Powers, lends: bool = False
) -> list[tuple[bytes, bytes | None]]:
    """Name what must be set (name, value) or removed (name, None).

    ``lends``: the owner is another than at the source, so the capability would lend the rights of somebody else.
    """
    want = {
        key: ids.acl(value) if is_acl else value
        for key, value in wanted.xattrs
        if key.startswith(xattr.ACL_PREFIX) == is_acl
        and powers.may_set_xattr(key)
        and not (lends and key == xattr.CAPABILITY)
    }
    have = {key: value for key, value in found.xattrs if key.startswith(xattr.ACL_PREFIX) == is_acl}
    changes: list[tuple[bytes, bytes | None]] = [(key, value) for key, value in want.items() if have.get(key) != value]
    removable = (xattr.ACL_PREFIX,) if is_acl else _REMOVABLE
    changes += [
        (key, None) for key in have if key not in want and key.startswith(removable) and powers.may_set_xattr(key)
    ]
    return changes
