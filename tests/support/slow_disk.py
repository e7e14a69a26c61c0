# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A disk of a testbed's host that is as slow as it is told to be: ext4 on a loop device, throttled by blkio.

What is written goes to the device before the call returns, since the throttle sees nothing of a cache. Needs root, and
the blkio controller of cgroup v1 (``why_not`` says what is missing).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Iterator, Sequence

from ansible_collections.longhaul.fleet.tests.testbed import Testbed

_THROTTLE = Path("/sys/fs/cgroup/blkio/blkio.throttle.{}_bps_device")
_MOUNT = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
os.makedirs(sys.argv[2], exist_ok=True)
device = f"/proc/self/fd/{sys.argv[1]}".encode()  # the host's own /dev has no such node
if libc.mount(device, os.fsencode(sys.argv[2]), b"ext4", 16, None):  # MS_SYNCHRONOUS
    sys.exit(os.strerror(ctypes.get_errno()))
"""


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
        image = held.enter_context(tempfile.NamedTemporaryFile(dir="/dev/shm"))
        os.truncate(image.name, size)
        _run(["mkfs.ext4", "-q", "-E", "nodiscard", image.name])
        device = _run(["losetup", "--find", "--show", image.name]).strip()
        held.callback(_run, ["losetup", "--detach", device])
        fd = os.open(device, os.O_RDONLY)
        held.callback(os.close, fd)
        _run(bed.argv(host, ["python3", "-c", _MOUNT, str(fd), path]), fd)
        held.callback(_run, bed.argv(host, ["umount", path]))
        number = os.stat(device).st_rdev
        for kind in ("read", "write"):
            held.callback(_throttle, kind, number, 0)
            _throttle(kind, number, rate)
        yield bed.root(host) / path.lstrip("/")


def _throttle(kind: str, device: int, rate: int) -> None:
    """Let a device move so many bytes a second, or any number (0)."""
    Path(str(_THROTTLE).format(kind)).write_text(f"{os.major(device)}:{os.minor(device)} {rate}", encoding="ascii")


def _run(argv: Sequence[str | bytes], *passed: int) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True, pass_fds=passed).stdout
