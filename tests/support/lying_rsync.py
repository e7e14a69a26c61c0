# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A remote shell that lies: ``lying_rsync.py LIES SHELL ...`` runs the shell and falsifies what goes through it.

rsync sends names as they are. Where a name in a list becomes another one of the same length, all else still fits: the
peer sees an rsync that is whole, but for what it names. ``LIES`` is JSON: ``{"up": [[old, new], ...], "down": ...}``,
in hexadecimal, for what the connecting end says and for what it is told; and ``flips``, ``[[position, bits], ...]``,
for single bytes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

PIECE = 1 << 16


class Falsifier:
    """Replaces texts and flips bits in a stream, also where a text comes in two pieces."""

    def __init__(self, texts: list[tuple[bytes, bytes]], flips: dict[int, int]) -> None:
        assert all(len(old) == len(new) for old, new in texts)
        self._texts, self._flips = texts, flips
        self._held = b""
        self._position = 0

    def feed(self, data: bytes, final: bool = False) -> bytes:
        """Return what may go on: all but what could be the beginning of a text."""
        data = self._held + data
        for old, new in self._texts:
            data = data.replace(old, new)
        keep = 0 if final else self._beginning(data)
        self._held, ready = data[len(data) - keep :], bytearray(data[: len(data) - keep])
        for position, bits in self._flips.items():
            if 0 <= position - self._position < len(ready):
                ready[position - self._position] ^= bits
        self._position += len(ready)
        return bytes(ready)

    def _beginning(self, data: bytes) -> int:
        """Return how much at the end could be the beginning of a text."""
        longest = max((len(old) for old, _new in self._texts), default=1) - 1
        return next(
            (
                length
                for length in range(min(longest, len(data)), 0, -1)
                if any(old.startswith(data[len(data) - length :]) for old, _new in self._texts)
            ),
            0,
        )


def falsify(source: int, target: int, lies: Any) -> None:
    """Pass on a stream with the lies in it."""
    texts = [(bytes.fromhex(old), bytes.fromhex(new)) for old, new in lies.get("texts", ())]
    falsifier = Falsifier(texts, {int(position): int(bits) for position, bits in lies.get("flips", ())})
    try:
        while True:
            data = os.read(source, PIECE)
            view = memoryview(falsifier.feed(data, final=not data))
            while view:
                view = view[os.write(target, view) :]
            if not data:
                break
    except OSError:
        pass
    finally:
        os.close(target)


def main(lies: str, *shell: str) -> int:
    """Run the shell; give its exit code."""
    said = json.loads(lies)
    with subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        up = threading.Thread(target=falsify, args=(0, os.dup(process.stdin.fileno()), said.get("up", {})), daemon=True)
        process.stdin.close()
        up.start()
        falsify(process.stdout.fileno(), os.dup(1), said.get("down", {}))
        os.close(1)
        return process.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
