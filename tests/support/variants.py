# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Some variants of each parametrized test, where all would take too long. Pure."""

from __future__ import annotations

from typing import Sequence, TypeVar

T = TypeVar("T")


def spread(variants: Sequence[T], most: int) -> list[T]:
    """Return at most so many of the variants, the first and the last among them, at even distances."""
    if len(variants) <= most:
        return list(variants)
    if most == 1:
        return [variants[0]]
    return [variants[number * (len(variants) - 1) // (most - 1)] for number in range(most)]
