# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sizes that no other test has: millions of entries, a tebibyte with holes, a hundred connections that break.

Each makes what it needs in a folder of its own and removes it afterwards, whatever happened.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..unit.plugins.module_utils._engine.ends import Pair, settings

Say = Callable[[str], Any]
DISKS = ("tmpfs", "ext4")
_TMPFS_INODE = 1536  # bytes of memory, with the name
_EXT4_INODE = 256  # bytes on the disk
_EXT4_SPARE = 256 << 20  # bytes for folders and the journal


class Unexpected(Exception):
    """What was to hold at this size does not."""


@dataclass(frozen=True)
class Trees:
    """A source, a destination and a folder for the two jobs."""

    source: Path
    dest: Path
    work: Path

    def pair(self, **changes: Any) -> Pair:
        """Return the two ends of a transfer by stream, not started yet."""
        return Pair(self.work, self.source, self.dest, settings("stream", encrypt=False, **changes))


def expect(holds: object, text: str) -> None:
    """Raise Unexpected with the text unless something holds."""
    if not holds:
        raise Unexpected(text)


def expect_good(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of a transfer that must have succeeded."""
    expect(outcome.get("errors_total") == 0 and not outcome.get("failure"), f"the transfer failed: {outcome}")
    return outcome


@contextlib.contextmanager
def trees(folder: str | None = None) -> Iterator[Trees]:
    """Make empty trees for the time of a block."""
    with tempfile.TemporaryDirectory(prefix="scale-", dir=folder) as name:
        yield empty_trees(name)


def empty_trees(folder: str) -> Trees:
    """Make empty trees in a folder that the caller removes."""
    made = Trees(*(Path(folder, part) for part in ("source", "dest", "work")))
    made.source.mkdir()
    made.dest.mkdir()
    return made


@contextlib.contextmanager
def disk_for(entries: int, kind: str | None = None) -> Iterator[str]:
    """Mount a file system that has room for so many empty files, and give its folder.

    It is a tmpfs where that takes no more than half of the memory that is free, else an ext4 in an image file.
    """
    inodes = entries + 10_000
    if kind is None:
        kind = "tmpfs" if inodes * _TMPFS_INODE * 2 < _free_memory() else "ext4"
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        mounted = Path(name, "mounted")
        mounted.mkdir()
        if kind == "tmpfs":
            options = ["-t", "tmpfs", "-o", f"nr_inodes={inodes},size=50%", "longhaul-test"]
        else:
            image = Path(name, "image")
            size = inodes * _EXT4_INODE * 2 + _EXT4_SPARE
            free = shutil.disk_usage(name).free
            expect(size < free, f"{size >> 20} MiB are needed in {tempfile.gettempdir()}, and {free >> 20} are free")
            with open(image, "wb") as file:
                file.truncate(size)
            subprocess.run(["mkfs.ext4", "-q", "-F", "-N", str(inodes), str(image)], check=True)
            options = ["-t", "ext4", "-o", "loop,noatime", str(image)]
        subprocess.run(["mount", *options, str(mounted)], check=True)
        try:
            yield str(mounted)
        finally:
            if subprocess.run(["umount", str(mounted)], check=False).returncode:  # a process that ends is in there
                subprocess.run(["umount", "--lazy", str(mounted)], check=True)


def _free_memory() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))


def run(only: str | None, entries: int, size: int, cuts: int, say: Say = print) -> int:
    """Run all of them, or the one that is named; returns the exit code."""
    from . import scale_entries, scale_reconnects, scale_sparse

    parts: dict[str, Callable[[], object]] = {
        "sparse": lambda: scale_sparse.run(size, say),
        "reconnects": lambda: scale_reconnects.run(cuts, say),
        "entries": lambda: scale_entries.run(entries, say),
    }
    failed = 0
    for name, part in parts.items():
        if only in (None, name):
            try:
                part()
            except Unexpected as error:
                failed += 1
                say(f"{name}: FAILED: {error}")
    return int(bool(failed))
