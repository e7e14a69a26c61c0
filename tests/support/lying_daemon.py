# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A relay between an rsync and a daemon that falsifies what goes through it, as ``lying_rsync`` does for a shell."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any

from .lying_rsync import PIECE, Falsifier


class LyingRelay:
    """Listens on the loopback address before the daemon at ``port``. ``lies``: see lying_rsync."""

    def __init__(self, port: int, lies: dict[str, Any]) -> None:
        self._target, self._lies = port, lies
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client = self._socket.accept()[0]
                daemon = socket.create_connection(("127.0.0.1", self._target))
                self._open += [client, daemon]
                for source, target, said in ((client, daemon, "up"), (daemon, client, "down")):
                    threading.Thread(
                        target=_pass_on, args=(source, target, self._lies.get(said, {})), daemon=True
                    ).start()

    def close(self) -> None:
        """End all connections."""
        self._socket.shutdown(socket.SHUT_RDWR)
        for one in (self._socket, *self._open):
            one.close()


def _pass_on(source: socket.socket, target: socket.socket, lies: dict[str, Any]) -> None:
    texts = [(bytes.fromhex(old), bytes.fromhex(new)) for old, new in lies.get("texts", ())]
    falsifier = Falsifier(texts, {int(position): int(bits) for position, bits in lies.get("flips", ())})
    with contextlib.suppress(OSError):
        while True:
            data = source.recv(PIECE)
            target.sendall(falsifier.feed(data, final=not data))
            if not data:
                target.shutdown(socket.SHUT_WR)
                return
