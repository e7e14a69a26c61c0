# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases of ``hard_tree.py``: times, modes, owners, ACLs, extended attributes, capabilities."""

from __future__ import annotations

import os
import struct

from .hard_maker import START_NS, Case, Maker, case

UNKNOWN_UID, UNKNOWN_GID = 54321, 54322  # in no passwd or group file


def _with_time(path: bytes, mtime_ns: int) -> Case:
    def make(maker: Maker) -> bytes:
        maker.times[path] = mtime_ns
        return maker.file(path)

    return make


case("mtime in nanoseconds")(_with_time(b"metadata/mtime-ns", START_NS // 10**9 * 10**9 + 1))
case("mtime of a whole second")(_with_time(b"metadata/mtime-second", START_NS // 10**9 * 10**9))
case("mtime 0")(_with_time(b"metadata/mtime-0", 0))
case("mtime before 1970")(_with_time(b"metadata/mtime-1969", -86400 * 10**9 + 123_456_789))
case("mtime after 2038")(_with_time(b"metadata/mtime-2040", 2_208_988_800 * 10**9 + 987_654_321))
case("mtime after 2262")(_with_time(b"metadata/mtime-2300", 10_413_792_000 * 10**9 + 123_456_789))


@case("directory's mtime before 1970")
def _directory_mtime(maker: Maker) -> bytes:
    maker.times[b"metadata/mtime-directory"] = -1_000_000_001
    maker.folder(b"metadata/mtime-directory")
    maker.file(b"metadata/mtime-directory/child")
    return b"metadata/mtime-directory"


@case("symlink's mtime")
def _symlink_mtime(maker: Maker) -> bytes:
    maker.times[b"metadata/mtime-symlink"] = START_NS - 7
    return maker.symlink(b"metadata/mtime-symlink", b"mtime-0")


def _with_mode(path: bytes, mode: int, folder: bool = False) -> Case:
    def make(maker: Maker) -> bytes:
        (maker.folder if folder else maker.file)(path)
        os.chmod(maker.at(path), mode)
        return path

    return make


case("setuid")(_with_mode(b"metadata/setuid", 0o4755))
case("setgid")(_with_mode(b"metadata/setgid", 0o2755))
case("sticky file")(_with_mode(b"metadata/sticky-file", 0o1644))
case("read-only file")(_with_mode(b"metadata/read-only", 0o444))
case("world-writable file")(_with_mode(b"metadata/world-writable", 0o666))
case("mode 000")(_with_mode(b"metadata/mode-000", 0))
case("sticky directory")(_with_mode(b"metadata/sticky-directory", 0o1777, folder=True))


@case("setgid directory")
def _setgid_directory(maker: Maker) -> bytes:
    path = maker.folder(b"metadata/setgid-directory")
    maker.file(path + b"/child")
    maker.folder(path + b"/folder")
    if os.geteuid() == 0:
        os.chown(maker.at(path), 0, UNKNOWN_GID)  # the children keep group 0, against what setgid would give them
    os.chmod(maker.at(path), 0o2775)
    os.chmod(maker.at(path + b"/folder"), 0o755)
    return path


@case("read-only directory with children")
def _read_only_directory(maker: Maker) -> bytes:
    path = maker.folder(b"metadata/read-only-directory")
    maker.file(path + b"/child")
    os.chmod(maker.at(path), 0o555)
    return path


@case("numeric ids without names")
def _numeric_ids(maker: Maker) -> bytes:
    path = maker.file(b"metadata/unknown-owner")
    os.chown(maker.at(path), UNKNOWN_UID, UNKNOWN_GID)
    return path


@case("owner and setuid")
def _owner_and_setuid(maker: Maker) -> bytes:
    path = maker.file(b"metadata/owner-setuid")
    os.chown(maker.at(path), 1, 2)
    os.chmod(maker.at(path), 0o6711)
    return path


@case("symlink's owner")
def _symlink_owner(maker: Maker) -> bytes:
    path = maker.symlink(b"metadata/owner-symlink", b"nowhere")
    os.lchown(maker.at(path), UNKNOWN_UID, UNKNOWN_GID)
    return path


@case("directory's owner")
def _directory_owner(maker: Maker) -> bytes:
    path = maker.folder(b"metadata/owner-directory")
    maker.file(path + b"/child of root")
    os.chown(maker.at(path), 1, UNKNOWN_GID)
    return path


_USER_OBJ, _USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER, _NO_ID = 1, 2, 4, 8, 16, 32, 0xFFFFFFFF


def _acl(*entries: tuple[int, int, int]) -> bytes:
    """Encode (tag, permissions, id) entries as the kernel's POSIX ACL xattr does (linux/posix_acl_xattr.h)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@case("ACL")
def _access_acl(maker: Maker) -> bytes:
    path = maker.file(b"metadata/acl")
    entries = ((_USER_OBJ, 6, _NO_ID), (_USER, 4, UNKNOWN_UID), (_GROUP_OBJ, 4, _NO_ID), (_GROUP, 6, 12345))
    return maker.xattr(path, "system.posix_acl_access", _acl(*entries, (_MASK, 4, _NO_ID), (_OTHER, 0, _NO_ID)))


@case("default ACL")
def _default_acl(maker: Maker) -> bytes:
    path = maker.folder(b"metadata/acl-directory")
    maker.file(path + b"/child without ACL")
    entries = ((_USER_OBJ, 7, _NO_ID), (_USER, 5, UNKNOWN_UID), (_GROUP_OBJ, 5, _NO_ID))
    maker.xattr(path, "system.posix_acl_access", _acl(*entries, (_MASK, 5, _NO_ID), (_OTHER, 5, _NO_ID)))
    return maker.xattr(path, "system.posix_acl_default", _acl(*entries, (_MASK, 7, _NO_ID), (_OTHER, 0, _NO_ID)))


@case("user xattr")
def _user_xattr(maker: Maker) -> bytes:
    path = maker.file(b"metadata/xattr-user")
    maker.xattr(path, "user.empty", b"")
    return maker.xattr(path, "user.long", bytes(range(256)) * 4)


@case("user xattr of a directory")
def _user_xattr_of_a_directory(maker: Maker) -> bytes:
    return maker.xattr(maker.folder(b"metadata/xattr-directory"), "user.note", b"kept")


@case("user xattr of a read-only file")
def _user_xattr_of_a_read_only_file(maker: Maker) -> bytes:
    path = maker.xattr(maker.file(b"metadata/xattr-read-only"), "user.note", b"kept")
    os.chmod(maker.at(path), 0o444)
    return path


@case("trusted xattr")
def _trusted_xattr(maker: Maker) -> bytes:
    return maker.xattr(maker.file(b"metadata/xattr-trusted"), "trusted.note", b"kept")


@case("trusted xattr of a symlink")
def _trusted_xattr_of_a_symlink(maker: Maker) -> bytes:
    return maker.xattr(maker.symlink(b"metadata/xattr-symlink", b"nowhere"), "trusted.note", b"kept")


@case("security xattr")
def _security_xattr(maker: Maker) -> bytes:
    return maker.xattr(maker.file(b"metadata/xattr-security"), "security.longhaul", b"kept")


@case("capability")
def _capability(maker: Maker) -> bytes:
    path = maker.file(b"metadata/capability")
    os.chmod(maker.at(path), 0o755)
    os.chown(maker.at(path), 1, 1)
    # struct vfs_cap_data, revision 2, effective: cap_net_raw (13) permitted (linux/capability.h)
    return maker.xattr(path, "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
