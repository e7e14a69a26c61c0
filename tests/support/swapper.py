# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A local user who owns a folder, and exchanges what is in it as fast as the machine permits (Linux, as root)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Iterator

USER = 4242
HAS_EXCHANGE = hasattr(ctypes.CDLL(None), "renameat2")
_PROGRAM = """
import ctypes, os, sys
folder, uid, first, second = int(sys.argv[1]), int(sys.argv[2]), *map(os.fsencode, sys.argv[3:])
os.setgroups([])
os.setgid(uid)
os.setuid(uid)
print("ready", flush=True)
"""
_EXCHANGE = """
exchange = ctypes.CDLL(None, use_errno=True).renameat2
while True:
    exchange(folder, first, folder, second, 2)  # RENAME_EXCHANGE
"""
_REPLACE = """
os.fchdir(folder)
while True:
    try:
        os.link(second, b"other")
    except FileExistsError:
        pass
    try:
        if os.stat(first, follow_symlinks=False).st_uid != uid:  # root has made it
            os.rename(b"other", first)
    except OSError:
        pass
"""


@contextlib.contextmanager
def swapping(folder: Path, first: str, second: str, uid: int = USER) -> Iterator[None]:
    """Let a user own a folder, and exchange the two names in it until the end of the context."""
    with _user_at_work(folder, _EXCHANGE, first, second, uid):
        yield


@contextlib.contextmanager
def replacing(folder: Path, name: str, own: str, uid: int = USER) -> Iterator[None]:
    """Let a user own a folder, and put another name of a file of his in the place of all that root makes."""
    with _user_at_work(folder, _REPLACE, name, own, uid):
        yield


@contextlib.contextmanager
def _user_at_work(folder: Path, work: str, first: str, second: str, uid: int) -> Iterator[None]:
    os.chown(folder, uid, uid)
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        user = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _PROGRAM + work, str(held), str(uid), first, second],
            stdout=subprocess.PIPE,
            pass_fds=[held],
        )
    finally:
        os.close(held)
    assert user.stdout is not None
    try:
        assert user.stdout.readline() == b"ready\n"
        yield
    finally:
        user.kill()
        user.wait()
        user.stdout.close()
