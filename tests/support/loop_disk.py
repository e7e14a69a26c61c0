# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A disk of testbed hosts: a file system on a loop device. Needs root."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Iterator, Sequence

from ansible_collections.longhaul.fleet.tests.support.disk_image import MKFS
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

_SYNCHRONOUS = 16  # MS_SYNCHRONOUS
_MOUNT = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
fd, path, kind, flags = sys.argv[1:]
os.makedirs(path, exist_ok=True)
device = f"/proc/self/fd/{fd}".encode()  # the host's own /dev has no such node
if libc.mount(device, os.fsencode(path), kind.encode(), int(flags), None):
    sys.exit(os.strerror(ctypes.get_errno()))
"""


@contextlib.contextmanager
def loop_disk(
    bed: Testbed,
    kind: str,
    folder: str | Path,
    size: int,
    *places: tuple[str, str],
    synchronous: bool = False,
    direct: bool = False,
) -> Iterator[str]:
    """Mount one disk of so many bytes, whose image lies in ``folder``, at paths of hosts, and yield its device.

    ``synchronous``: what is written goes to the device before the call returns. ``direct``: the machine's own cache
    holds nothing of the image. Raises subprocess.CalledProcessError where that cannot be made.
    """
    with contextlib.ExitStack() as held:
        image = held.enter_context(tempfile.NamedTemporaryFile(dir=folder))
        if direct:
            os.posix_fallocate(image.fileno(), 0, size)
        os.truncate(image.name, size)
        _run([*MKFS[kind], *(["-E", "nodiscard"] if kind.startswith("ext4") else []), image.name])
        options = ["--direct-io=on"] if direct else []
        device = _run(["losetup", *options, "--find", "--show", image.name]).strip()
        held.callback(_run, ["losetup", "--detach", device])
        fd = os.open(device, os.O_RDONLY)
        held.callback(os.close, fd)
        for host, path in places:
            flags = str(_SYNCHRONOUS if synchronous else 0)
            _run(bed.argv(host, ["python3", "-c", _MOUNT, str(fd), path, kind.partition("-")[0], flags]), fd)
            held.callback(_run, bed.argv(host, ["umount", path]))
        yield device


def _run(argv: Sequence[str | bytes], *passed: int) -> str:
    """Run a program, with descriptors passed to it, and return what it says."""
    return subprocess.run(argv, check=True, capture_output=True, text=True, pass_fds=passed).stdout
