# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random trees, random edits between passes, random kills: each ends identical by an independent comparison.

``python -m ansible_collections.longhaul.fleet.tests.soak --rounds 200`` prints its seed; ``--seed`` replays a failure.
Needs root, because owners and devices are among what is compared.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._exchange.ends import Pair, settings

_KILL_WITHIN = 1.5  # seconds
_LARGE = 24 << 20  # bytes; more than what a journal is kept for


class Tree:
    """A source tree that changes at random."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root, self._chance = root, chance
        root.mkdir()
        for _number in range(chance.randrange(5, 80)):
            self.change()
        if chance.random() < 0.3:
            self._many(root / "many")

    def _somewhere(self) -> Path:
        folders = [path for path in self.root.rglob("*") if path.is_dir() and not path.is_symlink()]
        return self._chance.choice([self.root, *sorted(folders)])

    def _files(self) -> list[Path]:
        return sorted(path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink())

    def change(self) -> None:
        """Make, change, move or remove one thing."""
        chance = self._chance
        name = self._somewhere() / "".join(chance.choice("ab \n-*é") for _letter in range(chance.randrange(1, 6)))
        act = chance.choice([self._write, self._write, self._folder, self._link, self._name, self._edit, self._mode])
        if os.path.lexists(name):
            act = chance.choice([self._remove, self._edit, self._mode])
        act(name)

    def _write(self, path: Path) -> None:
        chance = self._chance
        size = chance.choice([0, 1, 5000, 300_000, chance.randrange(_LARGE)])
        path.write_bytes(chance.randbytes(min(size, 1 << 20)) * (1 + size // (1 << 20)))
        if chance.random() < 0.2:
            os.truncate(path, size + (1 << 20))
        if chance.random() < 0.5:
            os.utime(path, ns=(0, chance.randrange(2**62)))

    def _folder(self, path: Path) -> None:
        path.mkdir()

    def _many(self, path: Path) -> None:
        for number in range(self._chance.randrange(2000)):
            folder = path / str(number // 100)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / str(number)).write_bytes(self._chance.randbytes(self._chance.randrange(9000)))

    def _link(self, path: Path) -> None:
        path.symlink_to(self._chance.choice(["nowhere", "..", "a", "/etc/passwd"]))

    def _name(self, path: Path) -> None:
        files = self._files()
        if files:
            os.link(self._chance.choice(files), path)

    def _edit(self, _path: Path) -> None:
        files = self._files()
        if files:
            with open(self._chance.choice(files), "r+b") as file:
                file.seek(self._chance.randrange(1 + os.fstat(file.fileno()).st_size))
                file.write(self._chance.randbytes(self._chance.randrange(1, 70_000)))

    def _mode(self, _path: Path) -> None:
        victim = self._somewhere()
        os.chmod(victim, self._chance.choice([0o755, 0o700, 0o1777, 0o2750]))
        os.chown(victim, self._chance.choice([0, 1, 12345]), self._chance.choice([0, 2, 54321]))

    @staticmethod
    def _remove(path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def play(chance: random.Random, folder: Path) -> str:
    """Run one tree through some passes; gives what differs at the end, empty where nothing does."""
    tree, dest = Tree(folder / "source", chance), folder / "dest"
    dest.mkdir()
    for number in range(chance.randrange(2, 5)):
        options: dict[str, Any] = {
            "encrypt": chance.random() < 0.5,
            "streams": chance.randrange(1, 4),
            "delete": True,
            "max_delete": 10**6,
            "checksum": chance.random() < 0.3,
            "bwlimit": chance.choice([0, 20 << 20]),
            "compress": {"algorithm": chance.choice([None, "zlib", "zstd"]), "level": None},
        }
        victim = chance.choice(["", "", "source", "dest"])
        pair = Pair(
            folder / f"work{number}", tree.root, dest, settings("stream", **options), chance.choice(["source", "dest"])
        )
        pair.use_tls()
        pair.worth = chance.choice([0, None])
        pair.start(pair.serving)
        pair.start(pair.driving)
        if victim:
            time.sleep(chance.random() * _KILL_WITHIN)
            pair.kill(victim)
            pair.stop()
        else:
            outcome = pair.finish()
            if outcome.get("errors") != [] or outcome["failure"]:
                return f"pass {number}: {outcome}"
            found = differences(tree.root, dest)
            if found:
                return f"pass {number}: {found}"
        for _edit in range(chance.randrange(20)):
            tree.change()
    last = Pair(folder / "last", tree.root, dest, settings("stream", encrypt=False, delete=True, max_delete=10**6))
    outcome = last.run()
    if outcome.get("errors") != []:
        return str(outcome)
    return str(differences(tree.root, dest) or "")


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    given = parser.parse_args()
    for number in range(given.rounds):
        seed = given.seed + number
        with tempfile.TemporaryDirectory() as folder:
            problem = play(random.Random(seed), Path(folder))
        print(f"seed {seed}: {problem or 'identical'}", flush=True)
        if problem:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
