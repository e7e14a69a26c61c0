# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The algorithm of the settings, with its level, and whether it makes data smaller."""

from __future__ import annotations

import zlib

from ..._core.settings import Compression
from ..wire.frames import Payload
from . import zstd

_WORTH = 0.85  # what is left of data must be less than this, or packing does not pay
_SAMPLE = 64 << 10
# The quickest level of zlib. Of zstd's, the one below which little is won: measured with log lines, level 1 packs 440
# MB/s a core into 0.17, levels 2 and 3 pack 430 and 320 into 0.17 and 0.16, levels -1, -5 and -10 pack 440, 510 and 490
# into 0.22, 0.27 and 0.31. (zlib: 110 into 0.29.) With programs they are 340 into 0.46, 180 into 0.41 (3) and 540
# into 0.61 (-5). So one core with level 1 fills 1 Gbit/s and some cores 10 Gbit/s; where none does, nothing is packed.
_LEVEL = 1


class Algorithm:
    """Packs data in one way. ``zstd`` says which; false where the settings say none at all."""

    def __init__(self, compress: Compression) -> None:
        self._name = compress.get("algorithm")
        self.zstd = self._name == "zstd" and zstd.available()
        level = compress.get("level")
        level = level if isinstance(level, int) else _LEVEL
        self._level = level if self.zstd else max(1, min(9, level))
        self._paid = False

    def __bool__(self) -> bool:
        return bool(self._name)

    def compress(self, data: Payload) -> bytes | None:
        """Return the data compressed, or None if that saves too little to be worth while.

        Where the last data shrank, so that more of the kind may be expected, it needs no sample.
        """
        if not (self._paid or self._pays(data)):
            return None
        compressed = self._pack(data, self._level)
        self._paid = len(compressed) < _WORTH * len(data)
        return compressed

    def _pays(self, data: Payload) -> bool:
        """Whether packing data like this saves enough, judged by a sample from its middle; never for encrypted data."""
        start = max(0, (len(data) - _SAMPLE) // 2)
        sample = data[start : start + _SAMPLE]
        return len(sample) > 0 and len(self._pack(sample, _LEVEL)) < _WORTH * len(sample)

    def _pack(self, data: Payload, level: int) -> bytes:
        return zstd.compress(data, level) if self.zstd else zlib.compress(data, level)
