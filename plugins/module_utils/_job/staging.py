# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of the destination that belongs to a transfer while it runs. Private to the collection.

``<root>/.longhaul-<id>/tmp`` takes files on their way, ``partial`` what an interrupted run left of them. Neither its
making nor its end may show: the root keeps its times, so that a rerun that has nothing to do changes nothing.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Callable, Iterator


@contextlib.contextmanager
def times_kept(folder: bytes) -> Iterator[None]:
    """Give the folder back the times it had, whatever is made or removed in it meanwhile."""
    before = os.stat(folder)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))


def make_root(root: bytes) -> list[bytes]:
    """Make the root and its parents where they are missing; give what was made, the root first. Raises OSError."""
    made, folder = [], root
    while not os.path.lexists(folder):
        made.append(folder)
        folder = os.path.dirname(folder)
    os.makedirs(root, exist_ok=True)
    return made


def take_back(made: list[bytes]) -> None:
    """Remove what ``make_root`` made, as far as nothing arrived in it."""
    with contextlib.suppress(OSError):
        for folder in made:
            os.rmdir(folder)


def prepare(root: bytes, staging: bytes, adopt: Callable[[bytes], Any] | None = None) -> bool:
    """Make the staging folders, and say whether an interrupted run left partial files in them.

    ``adopt(staging)`` is the method's own way to make partial files of what is in ``tmp``; what it leaves there goes.
    """
    temporary, partial = os.path.join(staging, b"tmp"), os.path.join(staging, b"partial")
    with times_kept(root):
        for folder in (staging, temporary, partial):
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, 0o700)
            if os.path.islink(folder) or not os.path.isdir(folder):
                raise NotADirectoryError(20, "not a directory of this transfer", os.fsdecode(folder))
    if adopt is not None:
        adopt(staging)
    with os.scandir(temporary) as left:
        for entry in left:
            if entry.is_dir(follow_symlinks=False):
                _remove(entry.path)
            else:
                os.unlink(entry.path)
    return bool(os.listdir(partial))


def settle(root: bytes, staging: bytes, keep_partial: bool) -> None:
    """Remove the staging folders; with ``keep_partial`` only where they hold nothing of use to a rerun."""
    if not os.path.isdir(staging) or os.path.islink(staging):
        return
    if keep_partial and any(files for _folder, _folders, files in os.walk(staging)):
        return
    with times_kept(root):
        _remove(staging)


def _remove(folder: bytes) -> None:
    import shutil  # here, since it takes its time to import, and the source needs it never

    shutil.rmtree(folder, ignore_errors=True)
