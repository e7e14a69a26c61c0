# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of users and groups in this host's name service."""

from __future__ import annotations

import grp
import pwd


def user_name(uid: int) -> str:
    """Return the name of a local user, or an empty string where the number has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return ""


def group_name(gid: int) -> str:
    """Return the name of a local group, or an empty string where the number has none."""
    try:
        return grp.getgrgid(gid).gr_name
    except (KeyError, OverflowError):
        return ""


def user_id(name: str) -> int | None:
    """Return the number of a local user, or None if no user has the name."""
    try:
        return pwd.getpwnam(name).pw_uid
    except (KeyError, ValueError):  # a name with a NUL is no name
        return None


def group_id(name: str) -> int | None:
    """Return the number of a local group, or None if none has the name."""
    try:
        return grp.getgrnam(name).gr_gid
    except (KeyError, ValueError):
        return None
