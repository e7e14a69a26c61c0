# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The process that a serving end runs for one connection."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Sequence, Union

from ..._core import subprocesses
from ..._core.die_with_parent import follow_parent
from .forced_command_socket import ClientConnection


@dataclass(frozen=True)
class Service:
    """A program to run for one connection, on its standard input and output."""

    argv: Sequence[str | bytes]
    cwd: subprocesses.Folder = "/"
    extra_environment: Mapping[str, str] | None = None
    keeps: Sequence[int] = ()  # descriptors of the job that it gets under their own numbers


# A function runs in a forked child. It is called with (0, 1), its connection, and gives the exit code. Every other
# descriptor of the job is closed there, but for those that its attribute ``keeps`` names, where it has one. Both are
# confined, but for a function whose attribute ``looks_around`` is true.
Work = Union[Service, Callable[[int, int], int]]


class ServiceProcess:
    """A running service: the leader of its own process group, which ends with the job."""

    def __init__(self, pid: int, reap: Callable[[], int]):
        self._pid, self._reap = pid, reap
        self._over = threading.Event()

    def wait(self) -> int:
        """Wait for the end; gives the exit code, 128 + the number of a signal. For the starting thread only."""
        code = self._reap()
        self._over.set()
        return code if code >= 0 else 128 - code

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the whole group, unless it is over."""
        if not self._over.is_set():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, number)

    def end(self, patience: float = 5.0) -> None:
        """End it: asked first, killed after ``patience`` seconds."""
        self.send(signal.SIGTERM)
        if not self._over.wait(patience):
            self.send(signal.SIGKILL)


def start(work: Work, connection: ClientConnection, confine: Callable[[], Any]) -> ServiceProcess:
    """Start a service on a connection. Call it from a thread that then waits for it. Raises OSError.

    ``confine`` is called in its process before anything else can happen there.
    """
    if isinstance(work, Service):
        return _start_program(work, connection, confine)
    return _start_function(work, connection, _nothing if getattr(work, "looks_around", False) else confine)


def _nothing() -> None:
    pass


def _start_program(service: Service, connection: ClientConnection, confine: Callable[[], Any]) -> ServiceProcess:
    process = subprocesses.start(
        service.argv,
        stdin=connection.stdin,
        stdout=connection.stdout,
        stderr=connection.stderr,
        cwd=service.cwd,
        extra_environment=service.extra_environment,
        new_session=True,
        die_with_parent=True,
        pass_fds=service.keeps,
        confine=confine,
    )
    return ServiceProcess(process.pid, process.wait)


def _start_function(
    work: Callable[[int, int], int], connection: ClientConnection, confine: Callable[[], Any]
) -> ServiceProcess:
    follow = follow_parent()
    pid = os.fork()
    if pid:
        return ServiceProcess(pid, lambda: _exit_code(os.waitpid(pid, 0)[1]))
    code = 1
    try:
        os.setsid()
        follow()
        confine()
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, signal.SIG_DFL)
        for target, fd in enumerate((connection.stdin, connection.stdout, connection.stderr)):
            os.dup2(fd, target)
        # A copy of another connection's pipe would keep that connection open
        first = 3
        for fd in sorted(getattr(work, "keeps", ())):
            os.closerange(first, fd)
            first = fd + 1
        os.closerange(first, min(os.sysconf("SC_OPEN_MAX"), 65536))
        code = work(0, 1)
        sys.stderr.flush()
    except BaseException:
        with suppress(Exception):
            os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _exit_code(status: int) -> int:
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
