# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A relay between two ends on this machine, whose connections can be cut."""

from __future__ import annotations

import contextlib
import socket
import threading

from .faults import wait_for


class Relay:
    """Hands every connection on to another local port; a context manager."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(0.1)
        self.port = int(self._listening.getsockname()[1])
        self.cuts = 0
        self.passed = 0  # bytes, in both directions
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Relay:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._over.set()
        self._thread.join()
        self._listening.close()
        for pair in self._pairs:
            self._cut(pair)

    def wait(self, size: int) -> None:
        """Wait until so many bytes have passed since the beginning."""
        wait_for(lambda: self.passed >= size, seconds=60)

    def cut_newest(self) -> None:
        """Cut the connection that was made last, unless it is the first of all."""
        if len(self._pairs) > 1:
            self._cut(self._pairs.pop())
            self.cuts += 1

    def cut_all(self) -> None:
        """Cut every connection, the first one too."""
        while self._pairs:
            self._cut(self._pairs.pop())
            self.cuts += 1

    @staticmethod
    def _cut(pair: tuple[socket.socket, socket.socket]) -> None:
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                here, _where = self._listening.accept()
            except socket.timeout:
                continue
            there = socket.create_connection(("127.0.0.1", self._target))
            self._pairs.append((here, there))
            for reader, writer in ((here, there), (there, here)):
                threading.Thread(target=self._copy, args=(reader, writer), daemon=True).start()

    def _copy(self, reader: socket.socket, writer: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                data = reader.recv(65536)
                if not data:
                    break
                writer.sendall(data)
                self.passed += len(data)
        with contextlib.suppress(OSError):
            writer.shutdown(socket.SHUT_WR)
