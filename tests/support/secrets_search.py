# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Look for what nobody may see: in processes, files and logs of testbed hosts and of the control node."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from ..testbed import Testbed
from .beside import beside

# What one transfer is given: a private key in OpenSSH's format, a token of 256 bits in hexadecimal
SECRET = re.compile(
    rb"OPENSSH PRIVATE KEY-----(?:\s|\\[nr])+[A-Za-z0-9+/]{20}|(?<![0-9a-fA-F])[0-9a-f]{64}(?![0-9a-fA-F])"
)
FOLDERS = ("var/lib/longhaul", "var/log", "run", "tmp", "var/tmp", "dev/shm", "root", "home")
LARGEST = 32 << 20  # bytes; our files are smaller, but for those that a test moves


def in_processes(root: Path, of: Path | None = None) -> list[str]:
    """Search the arguments and the environment of all processes below a host's root.

    Below the machine's root there are other programs too: with ``of``, the record of a run (``Running.record``), only
    those are searched that this run started.
    """
    mark = os.fsencode(f"LONGHAUL_TEST_RECORD={of}\0") if of else b""
    found = []
    for process in (root / "proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            held = {name: (process / name).read_bytes() for name in ("cmdline", "environ")}
            if mark in held["environ"]:
                words = held["cmdline"].replace(b"\0", b" ")[:80]
                found += [f"{name} of process {process.name}: {words!r}" for name in held if SECRET.search(held[name])]
    return found


def in_files(root: Path, without: tuple[str, ...] = ()) -> list[str]:
    """Search the files where something could be left; ``without`` are beginnings of paths below the root."""
    return [
        f"file: {path.relative_to(root)}"
        for folder in FOLDERS
        for path in _files(root / folder)
        if not str(path.relative_to(root)).startswith(without) and _holds(path)
    ]


def _files(folder: Path) -> Iterator[Path]:
    for path, _names, files in os.walk(folder):
        yield from (Path(path, name) for name in files)


def _holds(path: Path) -> bool:
    with contextlib.suppress(OSError):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST:
            return bool(SECRET.search(path.read_bytes()))
    return False


@contextlib.contextmanager
def system_log(bed: Testbed, host: str) -> Iterator[Path]:
    """Be the system's log on a host for the time of a block; gives the file that it writes."""
    path = "/var/log/longhaul-test-syslog"
    code = (
        "import os, socket\n"
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "s.bind('/dev/log')\n"
        "os.chmod('/dev/log', 0o666)\n"
        f"log = open({path!r}, 'ab', 0)\n"
        "while True: log.write(s.recv(65536) + b'\\n')\n"
    )
    with beside(bed, host, ["/usr/bin/python3", "-c", code]):
        until = time.monotonic() + 20
        while not (bed.root(host) / path.lstrip("/")).exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        try:
            yield bed.root(host) / path.lstrip("/")
        finally:
            bed.exec(host, ["rm", "-f", "/dev/log", path])
