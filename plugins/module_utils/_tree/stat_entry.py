# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stat one name in an open directory. Private to the collection."""

from __future__ import annotations

import errno
import os
import stat

from .._model.entry import Entry, entry_from_stat
from . import xattr

_TYPE = 0o170000  # S_IFMT
_SYMLINK = stat.S_IFLNK


def stat_entry(parent_fd: int, name: bytes, path: bytes, xattrs: bool = False, here: object = None) -> Entry:
    """Stat one name in an open directory, without following it. Raise OSError if that fails.

    The directory itself is the name ``b"."``. For ``here`` see :func:`xattr.read`.
    """
    while True:
        found = os.stat(name, dir_fd=parent_fd, follow_symlinks=False)
        target = b""
        if found[stat.ST_MODE] & _TYPE == _SYMLINK:
            try:
                target = os.readlink(name, dir_fd=parent_fd)
            except OSError as error:
                if error.errno == errno.EINVAL:
                    continue  # no longer a symlink: look again
                raise
        return entry_from_stat(path, found, target, xattr.read(parent_fd, name, here) if xattrs else ())
