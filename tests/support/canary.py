# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What must stay as it is, whatever a hostile peer does: all around the root of a transfer, and its older copies."""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from pathlib import Path
from typing import NamedTuple


class _Seen(NamedTuple):
    """All that can be told of one name, but for when it was read last."""

    inode: tuple[int, int]
    mode: int
    owner: tuple[int, int]
    size: int
    device: int
    modified: int
    changed: int  # ctime: it gives away what was changed and put back
    names: int
    content: str  # a digest, or the target of a symlink
    attributes: tuple[tuple[str, bytes], ...]


class Canary:
    """Everything in a folder, but for what is below ``root`` in it.

    Files of ``older`` may get names below the root, as with link_dest: their link count and ctime follow from that, and
    nothing else of them may change.
    """

    def __init__(self, folder: Path, root: Path, older: Path) -> None:
        self._folder, self._root, self._older = folder, root, older
        self._before = self._look()

    def _look(self) -> dict[Path, _Seen]:
        found = {self._folder: _see(self._folder)}
        for top, folders, files in os.walk(self._folder):
            for name in (*folders, *files):
                path = Path(top, name)
                if path != self._root:
                    found[path] = _see(path)
            folders[:] = [name for name in folders if Path(top, name) != self._root]
        return found

    def changes(self) -> list[str]:
        """Return a line for each difference from how it was."""
        now = self._look()
        linked = Counter(_see(Path(top, name)).inode for top, _folders, files in os.walk(self._root) for name in files)
        lines = [f"{path} is gone" for path in self._before if path not in now]
        lines += [f"{path} is new" for path in now if path not in self._before]
        for path, before in self._before.items():
            after = now.get(path, before)
            if self._older in path.parents and not stat.S_ISDIR(before.mode):
                own = sum(one.inode == before.inode for at, one in now.items() if self._older in at.parents)
                after = after._replace(changed=before.changed, names=after.names - linked[before.inode])
                before = before._replace(names=own)
            lines += [
                f"{path}: {field} was {old!r} and is {new!r}"
                for field, old, new in zip(_Seen._fields, before, after)
                if old != new
            ]
        return lines


def _see(path: Path) -> _Seen:
    found = path.lstat()
    content = ""
    if stat.S_ISREG(found.st_mode):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    elif stat.S_ISLNK(found.st_mode):
        content = os.readlink(path)
    names = os.listxattr(path, follow_symlinks=False)
    return _Seen(
        (found.st_dev, found.st_ino),
        found.st_mode,
        (found.st_uid, found.st_gid),
        found.st_size,
        found.st_rdev,
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_nlink,
        content,
        tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in sorted(names)),
    )
