# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tell the user what happens to the work on the hosts when ansible is interrupted or killed."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import threading
import time
from types import FrameType
from typing import Any

from .ansible_process import ansible_pid

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LAST_WORDS = 10.0  # seconds that ansible may take to end
_MOST_FDS = 4096  # that a worker may have open


class Interruption:
    """While it is entered, a signal that ends this worker first writes ``words`` to the user's terminal.

    ansible-core shows nothing that a worker says from then on: Display hands it to a process that no longer listens,
    and the worker itself has no terminal since 2.19. So this writes to what ansible's own errors go to.
    """

    def __init__(self) -> None:
        self.words = ""  # the caller changes them as the work proceeds; empty: nothing to say
        self._before: dict[int, Any] = {}
        self._terminal = -1
        self._is_telling = False
        self._also = 0  # another signal, that came meanwhile

    def in_transfer(self, identity: str, label: str, hosts: tuple[str, ...], certain: bool = True) -> None:
        """Set the words for the time in which a transfer runs; not ``certain`` while it is being started."""
        both = ",".join(dict.fromkeys(hosts))
        self.words = (
            f"{label}: interrupted. Transfer {identity} {'goes' if certain else 'may go'} on, on the hosts, "
            "without Ansible. To attach to it, run the same task again. To stop it: "
            f"ansible {both} -m longhaul.fleet.transfer_control -a 'id={identity} state=cancelled'"
        )

    def after_transfer(self, label: str) -> None:
        """Set the words for the time in which the trees are compared."""
        self.words = (
            f"{label}: interrupted after the transfer had ended. Run the same task again: it compares both trees"
        )

    def __enter__(self) -> Interruption:
        self._terminal = _errors_of_ansible()
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._interrupted)
        return self

    def __exit__(self, *_ended: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        if self._terminal >= 0:
            os.close(self._terminal)
            self._terminal = -1

    def tell(self) -> None:
        """Write the words, once."""
        if self.words and self._terminal >= 0:
            text = f"\n{self.words}\n".encode()
            with contextlib.suppress(OSError):
                if _is_written_over(self._terminal):
                    _write_after_ansible(self._terminal, text)
                else:
                    os.write(self._terminal, text)
        self.words = ""

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        """Tell, then do what the signal does without this.

        Ansible sends SIGTERM right after SIGINT: it may interrupt this very handler, and waits until all is told.
        """
        if self._is_telling:
            self._also = number
            return
        self._is_telling = True
        self.tell()
        self._is_telling = False
        number = self._also or number
        before = self._before[number]
        signal.signal(number, before)
        if callable(before):
            before(number, frame)
        elif before == signal.SIG_DFL:
            os.kill(os.getpid(), number)


def _errors_of_ansible() -> int:
    """Return a descriptor of where ansible writes its errors to; -1 where that cannot be opened."""
    try:
        if not os.path.samestat(os.fstat(2), os.stat(os.devnull)):
            return os.dup(2)
    except OSError:
        pass  # it is closed
    try:
        return os.open(f"/proc/{ansible_pid()}/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return -1


def _is_written_over(descriptor: int) -> bool:
    """Whether what is written now would be lost: ansible writes to a file that was not opened to append (``> log``).

    It goes on where it has stopped, whoever wrote there meanwhile.
    """
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return False
    try:
        with open(f"/proc/{ansible_pid()}/fdinfo/2", encoding="ascii") as lines:
            flags = next(int(line.split()[1], 8) for line in lines if line.startswith("flags:"))
    except (OSError, StopIteration):
        return False
    return not flags & os.O_APPEND and not os.path.sameopenfile(descriptor, 2)


def _write_after_ansible(descriptor: int, text: bytes) -> None:
    """Have a process of its own write when ansible has ended, which ends this worker meanwhile."""
    ansible, (reader, writer) = ansible_pid(), os.pipe()
    try:
        if os.fork():
            os.close(writer)
            os.read(reader, 1)  # it is out of reach of what ends this worker
            return
        try:
            os.setsid()
            os.close(writer)
            os.closerange(3, descriptor)
            os.closerange(descriptor + 1, _MOST_FDS)
            until = time.monotonic() + _LAST_WORDS
            while os.path.lexists(f"/proc/{ansible}/fd/2") and time.monotonic() < until:
                time.sleep(0.05)
            os.write(descriptor, text)
        finally:
            os._exit(0)
    finally:
        os.close(reader)
