# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A serving end that holds its conversation in a thread, beside the ports it listens at."""

from __future__ import annotations

import threading
from typing import Callable

from ..._core.context import Context, Server
from ..._core.errors import TransferFailed
from ..._core.outcome import Outcome


class SessionServer(Server):
    """What such ends have in common: the conversation's thread, and its end. A subclass listens, and begins it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lock = threading.Lock()  # held where somebody arrives, so that nothing begins once _closing is set
        self._thread: threading.Thread | None = None
        self._closing = False

    def _begin(self, hold: Callable[[], Outcome]) -> None:
        """Hold a conversation from now on; what it fails with is logged, since the driving end accounts for it."""
        self.has_succeeded = False
        self._thread = threading.Thread(target=self._run, args=(hold,), daemon=True)
        self._thread.start()

    def _run(self, hold: Callable[[], Outcome]) -> None:
        try:
            self.has_succeeded = not hold().failure
        except TransferFailed as error:
            self._context.log(f"the transfer failed: {error}")
        except Exception as error:
            self._context.log(f"the transfer failed: {type(error).__name__}: {error}")

    def active(self) -> bool:
        """Return whether the conversation goes on."""
        return self._thread is not None and self._thread.is_alive()

    def close(self) -> None:
        """End the conversation and what listens."""
        with self._lock:
            self._closing = True
        self._context.stop.set()
        if self._thread is not None:
            self._thread.join()
        self._stop_listening()

    def _stop_listening(self) -> None:
        """End what listens, and drop connections that no conversation took."""
        raise NotImplementedError
