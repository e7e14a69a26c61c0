# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attacks by a hostile host on its peer during a transfer. None may do harm."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .hostile_attacks import ATTACKS, Attack
from .hostile_ground import Ground

_WIDTH = 600  # characters
HEADS = ("finding", "attack", "outcome", "its unit test")


class Tried(NamedTuple):
    """What came of an attack."""

    harms: list[str]
    problems: list[str]
    said: str


def attempt(attack: Attack) -> Tried:
    """Try one attack."""
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    folder.chmod(0o755)
    try:
        ground = Ground(folder)
        attack.run(ground)
        return Tried(ground.look(), ground.problems, ground.said)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(words: Sequence[str], shows: bool) -> int:
    """Try all attacks (or those whose finding or name has one of these words), and print a table."""
    count = wrong = 0
    print("\t".join(HEADS))
    for attack in ATTACKS:
        if words and not any(word in (attack.finding, *attack.id.split("-")) for word in words):
            continue
        tried = attempt(attack)
        is_wrong = bool(tried.harms or tried.problems)
        count, wrong = count + 1, wrong + is_wrong
        print("\t".join((attack.finding, attack.variant, "HARMED" if is_wrong else "held", attack.test)))
        if shows or is_wrong:
            noted = "; ".join([*tried.harms, *tried.problems])
            print(f"  {noted[:_WIDTH] or 'no harm'} | it said: {tried.said[:_WIDTH]}")
        sys.stdout.flush()
    print(f"{count} attacks: {count - wrong} held")
    return int(bool(wrong))
