# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every attack on two versions: 0.1.0, where it must be seen to do harm, and this one, where it must do none.

So what is looked at after each attack (``tests/support/canary.py``) is known to see harm.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple, Sequence

from ansible_collections.longhaul.fleet.tests.support import earlier_commit

from .hostile_attacks import ATTACKS, Attack
from .hostile_ground import NAME, Ground, Release

BEFORE, COMMIT = "0.1.0", "ac4af213ffbda13da5499e19d191d5c25445bdf3"
_WIDTH = 600  # characters
HEADS = ("finding", "attack", BEFORE, "now", "its unit test")


class Tried(NamedTuple):
    """What came of an attack."""

    harms: list[str]
    problems: list[str]
    said: str


def attempt(attack: Attack, release: Release) -> Tried:
    """Try one attack on a version."""
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    folder.chmod(0o755)
    try:
        ground = Ground(folder, release)
        attack.run(ground)
        return Tried(ground.look(), ground.problems, ground.said)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def here() -> Release:
    """Return this version, as the tests run it."""
    return Release("now", Path(__file__).absolute().parents[len(NAME.parts) + 2])


def run(words: Sequence[str], shows: bool) -> int:
    """Try all attacks (or those whose finding or name has one of these words), and print a table."""
    why = earlier_commit.why_not(COMMIT)
    if why:
        print(f"cannot run here: {why}", file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix="release-"))
    count = wrong = 0
    try:
        before = Release(BEFORE, earlier_commit.unpack(folder, COMMIT))
        print("\t".join(HEADS))
        for attack in ATTACKS:
            if words and not any(word in (attack.finding, *attack.id.split("-")) for word in words):
                continue
            then, now = attempt(attack, before), attempt(attack, here())
            is_wrong = not then.harms or bool(now.harms or then.problems or now.problems)
            count, wrong = count + 1, wrong + is_wrong
            seen = "found" if then.harms else "NOT FOUND", "HARMED" if now.harms else "held"
            print("\t".join((attack.finding, attack.variant, *seen, attack.test.rpartition("/")[2])))
            for name, tried in ((BEFORE, then), ("now", now)) if shows or is_wrong else ():
                noted = "; ".join([*tried.harms, *tried.problems])
                print(f"  {name}: {noted[:_WIDTH] or 'no harm'} | it said: {tried.said[:_WIDTH]}")
            sys.stdout.flush()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{count} attacks: {count - wrong} found in {BEFORE} and held now")
    return int(bool(wrong))
