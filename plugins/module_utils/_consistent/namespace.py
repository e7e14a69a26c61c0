# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Namespaces for programs that nobody trusts: they reach no network, and none of them outlives the job.

The first process in a namespace of processes does nothing. When it ends, the kernel kills all others in there, whatever
session or group they are in. It ends with this process, however that ends. Sources: pid_namespaces(7), unshare(1).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial

from .._core import subprocesses
from .._core.die_with_parent import descendants, follow
from .._core.errors import TransferFailed
from .programs import Account, last_words, require_program

_KINDS = ("--pid", "--net", "--ipc")
_BEGINS = 20.0  # seconds
_LOOK = 0.02
_LONGEST = "86400"  # seconds that the first process does nothing


class Namespace:
    """Namespaces of processes, networks and System V objects. Close it when done."""

    def __init__(self) -> None:
        """Make them. Raises TransferFailed if this process may not."""
        if not sys.platform.startswith("linux") or os.geteuid() != 0:
            raise TransferFailed(
                "a server for dumps needs namespaces, which only root on Linux makes: set ansible_become: true for the "
                "host of into, or name another host"
            )
        argv = [require_program("unshare"), *_KINDS, "--fork", "--kill-child", "--"]
        with tempfile.TemporaryFile() as errors:
            self._process = subprocesses.start(
                [*argv, require_program("sleep"), _LONGEST],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                new_session=True,
                confine=partial(_end_with, os.getpid()),
            )
            try:
                self._first = self._find_first(errors.fileno())
            except BaseException:
                self.close()
                raise

    def _find_first(self, errors: int) -> int:
        end, own = time.monotonic() + _BEGINS, os.readlink("/proc/self/ns/pid")
        while time.monotonic() < end and self._process.poll() is None:
            for pid in descendants(self._process.pid):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{pid}/ns/pid") != own:
                        return pid
            time.sleep(_LOOK)
        raise TransferFailed(
            f"a server for dumps needs namespaces, which cannot be made here: {last_words(errors) or 'no answer'}. A "
            "container needs the capability SYS_ADMIN for that. Else name another host (into)"
        )

    def enter(self, account: Account) -> list[str]:
        """Return what stands before a program, for root to run it inside as a user."""
        words = [require_program("nsenter"), f"--target={self._first}", *_KINDS]
        return [*words, f"--setgid={account.gid}", f"--setuid={account.uid}", "--"]

    def close(self) -> None:
        """Kill all that is inside, and wait until it is gone."""
        for pid in descendants(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_BEGINS)  # it waits for the first one, and that for all others
        self._process.kill()
        self._process.wait()


def _end_with(parent: int) -> None:
    """Have the kernel end this process with its parent. For the child of a fork, before it is another program."""
    if not follow(parent):
        os._exit(1)
