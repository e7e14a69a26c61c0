# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A disk of a testbed's host that is as slow as it is told to be: ext4 on a loop device, throttled by blkio.

What is written goes to the device before the call returns, since the throttle sees nothing of a cache. Requests wait in
the throttle before the kernel counts the device as busy; a disk whose image lies on such a slow one is counted. Needs
root, and the blkio controller of cgroup v1 (``why_not`` says what is missing).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Iterator

from ansible_collections.longhaul.fleet.tests.support.loop_disk import loop_disk
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

_THROTTLE = Path("/sys/fs/cgroup/blkio/blkio.throttle.{}_bps_device")


def why_not() -> str:
    """Return what is missing for such a disk; empty if nothing is."""
    missing = [kind for kind in ("read", "write") if not Path(str(_THROTTLE).format(kind)).exists()]
    return "there is no blkio controller of cgroup v1" if missing else ""


@contextlib.contextmanager
def slow_disk(bed: Testbed, host: str, path: str, size: int, rate: int) -> Iterator[Path]:
    """Mount such a disk of so many bytes at a path of the host, and yield where it is seen from here.

    ``rate``: bytes a second.
    """
    with contextlib.ExitStack() as held:
        device = held.enter_context(loop_disk(bed, "ext4", "/dev/shm", size, (host, path), synchronous=True))
        number = os.stat(device).st_rdev
        for kind in ("read", "write"):
            held.callback(_throttle, kind, number, 0)
            _throttle(kind, number, rate)
        yield bed.root(host) / path.lstrip("/")


@contextlib.contextmanager
def counted_slow_disk(bed: Testbed, host: str, path: str, size: int, rate: int) -> Iterator[Path]:
    """Mount a disk as ``slow_disk`` does, of which the kernel counts how long it is busy."""
    with contextlib.ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        image, below = folder / "image", folder / "below"
        below.mkdir()
        image.touch()
        os.truncate(image, size + size // 4)
        _run("mkfs.ext4", "-q", "-F", str(image))
        device = _run("losetup", "--find", "--show", str(image))
        held.callback(_run, "losetup", "--detach", device)
        _run("mount", "-o", "sync", device, str(below))
        held.callback(_run, "umount", str(below))
        held.enter_context(loop_disk(bed, "ext4", below, size, (host, path), synchronous=True))
        number = os.stat(device).st_rdev
        for kind in ("read", "write"):
            held.callback(_throttle, kind, number, 0)
            _throttle(kind, number, rate)
        yield bed.root(host) / path.lstrip("/")


def _run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def _throttle(kind: str, device: int, rate: int) -> None:
    """Let a device move so many bytes a second, or any number (0)."""
    Path(str(_THROTTLE).format(kind)).write_text(f"{os.major(device)}:{os.minor(device)} {rate}", encoding="ascii")
