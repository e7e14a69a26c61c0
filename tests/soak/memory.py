# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much memory processes needed at most, each with all that it started."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

_FIRST, _EVERY = 0.01, 0.2  # seconds, more each time, since what ends at once is to be seen, too; the kernel keeps the
# peak, so that only the last moments of a process can be missed


class Watched:
    """Watches sessions for the time of a block; ``peaks`` has the bytes of the largest process of each."""

    def __init__(self, leaders: dict[str, int]) -> None:
        self.peaks = dict.fromkeys(leaders, 0)
        self._names = {pid: name for name, pid in leaders.items()}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._over.set()
        self._thread.join()

    def look(self) -> None:
        """Sample every process now."""
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError, StopIteration):
                name = self._names.get(os.getsid(int(folder.name)))
                if name is not None:
                    lines = (folder / "status").read_text().splitlines()
                    peak = next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))
                    self.peaks[name] = max(self.peaks[name], peak)

    def _run(self) -> None:
        pause = _FIRST
        while not self._over.wait(pause):
            self.look()
            pause = min(2 * pause, _EVERY)
