# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decisions by the fuzzer's bytes."""

from __future__ import annotations

from typing import Any, Sequence

import atheris


class Chance:
    """What random.Random has, decided by the fuzzer's bytes."""

    def __init__(self, data: bytes) -> None:
        self._given = atheris.FuzzedDataProvider(data)

    def random(self) -> float:
        return float(self._given.ConsumeProbability()) % 1

    def randrange(self, stop: int, /) -> int:
        return int(self._given.ConsumeIntInRange(0, stop - 1))

    def choice(self, values: Sequence[Any], /) -> Any:
        return values[self.randrange(len(values))]

    def getrandbits(self, count: int, /) -> int:
        return int.from_bytes(self._given.ConsumeBytes(count // 8), "big")

    def text(self) -> str:
        """Return what is left, as words."""
        return str(self._given.ConsumeUnicodeNoSurrogates(self._given.remaining_bytes()))
