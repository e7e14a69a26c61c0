# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real file system in a file, for what tmpfs cannot do. Mounting needs root, and loop devices."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Iterator

MKFS = {
    "btrfs": ["mkfs.btrfs", "-q"],
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "ext4-128": ["mkfs.ext4", "-q", "-F", "-I", "128"],  # whose times are whole seconds
    "xfs": ["mkfs.xfs", "-q", "-m", "reflink=1"],
}
SHARES_EXTENTS = ("btrfs", "xfs")
_PATH = os.environ["PATH"] + ":/usr/local/sbin:/usr/sbin:/sbin"


@contextlib.contextmanager
def disk_image(folder: Path, kind: str, size: int = 1 << 30) -> Iterator[Path]:
    """Make a file system of a kind and mount it below ``folder`` for the time of a block, which gets the mount point.

    Raises CannotMount if this machine cannot do that.
    """
    image, mounted = folder / f"{kind}.img", folder / kind
    mounted.mkdir()
    with image.open("wb") as file:
        file.truncate(size)
    try:
        _run([*MKFS[kind], str(image)])
        _run(["mount", "-o", "loop", str(image), str(mounted)])
    except (OSError, subprocess.CalledProcessError) as error:
        image.unlink()
        raise CannotMount(f"{kind} cannot be made or mounted: {getattr(error, 'stderr', '') or error}") from error
    try:
        yield mounted
    finally:
        _run(["umount", str(mounted)])
        image.unlink()


class CannotMount(Exception):
    """This machine cannot mount such a file system."""


def used(mounted: Path) -> int:
    """Return the bytes that are in use, after all was written."""
    _run(["sync", "-f", str(mounted)])
    space = os.statvfs(mounted)
    return (space.f_blocks - space.f_bfree) * space.f_frsize


def _run(argv: list[str]) -> None:
    subprocess.run(argv, check=True, capture_output=True, text=True, env={**os.environ, "PATH": _PATH})
