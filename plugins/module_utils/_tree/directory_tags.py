# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that leave out the contents of the directory they are in, such as CACHEDIR.TAG. Private to the collection.

The directory itself and its tags are kept, as with tar --exclude-tag, so a copy shows why the rest is not there.
Source of the signature: the Cache Directory Tagging Specification, bford.info/cachedir.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import NamedTuple, Sequence

from .._model.paths import NAME_MAX
from .descent import DIRECTORY_FLAGS

CACHE_TAG = b"CACHEDIR.TAG"
_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class DirectoryTags(NamedTuple):
    """Names of files that leave out the rest of their directory."""

    names: frozenset[bytes] = frozenset()  # whatever the file holds
    caches: bool = False  # CACHEDIR.TAG, if it has the signature

    @classmethod
    def parse(cls, names: Sequence[str], caches: bool) -> DirectoryTags:
        """Return the tags of the options exclude_if_present and exclude_caches. Raises ValueError for a bad name."""
        for name in names:
            if name in ("", ".", "..") or "/" in name or "\0" in name or len(os.fsencode(name)) > NAME_MAX:
                raise ValueError(f"'{name}' is not the name of a file: write a name without slashes, such as .nobackup")
        return cls(frozenset(map(os.fsencode, names)), caches)

    def __bool__(self) -> bool:
        return self.caches or bool(self.names)

    def may_be(self, name: bytes) -> bool:
        """Return whether a file of this name can be a tag."""
        return name in self.names or (self.caches and name == CACHE_TAG)

    def find(self, parent: int, name: bytes) -> list[bytes]:
        """Return the tags in a directory, sorted; none if it cannot be opened."""
        try:
            fd = os.open(name, DIRECTORY_FLAGS, dir_fd=parent)
        except OSError:
            return []
        try:
            found = {tag for tag in self.names if _is_file(fd, tag)}
            if self.caches and _has_signature(fd):
                found.add(CACHE_TAG)
            return sorted(found)
        finally:
            os.close(fd)


def _is_file(folder: int, name: bytes) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _has_signature(folder: int) -> bool:
    if not _is_file(folder, CACHE_TAG):  # an open FIFO or device could do something
        return False
    with contextlib.suppress(OSError), open(os.open(CACHE_TAG, _FILE_FLAGS, dir_fd=folder), "rb", buffering=0) as file:
        return file.read(len(_SIGNATURE)) == _SIGNATURE
    return False
