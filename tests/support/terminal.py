# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A program in a terminal of its own, where a test types and reads what a person would."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence


class Terminal:
    """Runs a program as the foreground of a new pseudo-terminal; a context manager that ends it."""

    def __init__(
        self, argv: Sequence[str], environment: Mapping[str, str], size: tuple[int, int] | None = None
    ) -> None:
        """Start the program; ``size`` is the columns and the lines of the window."""
        self._master, slave = pty.openpty()
        if size:
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.process = subprocess.Popen(
            argv,
            env=dict(environment),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self._shown = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # the last process with this terminal has ended
                return
            if not data:
                return
            self._shown += data

    @property
    def output(self) -> str:
        """What stands in the terminal so far, with plain line ends."""
        return bytes(self._shown).decode(errors="replace").replace("\r\n", "\n")

    def type(self, text: str) -> None:
        """Type; ``\\x03`` is ^C."""
        os.write(self._master, text.encode())

    def wait_for(self, text: str, timeout: float = 120) -> None:
        """Wait until a text is shown."""
        until = time.monotonic() + timeout
        while text not in self.output:
            assert time.monotonic() < until and self.process.poll() is None, f"no {text!r} in:\n{self.output}"
            time.sleep(0.05)

    def wait(self, timeout: float = 240) -> int:
        """Wait for the end of the program and give its exit code."""
        code = self.process.wait(timeout)
        self._reader.join(2)
        return code

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_ended: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._reader.join(2)
        os.close(self._master)
