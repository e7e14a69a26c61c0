# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A month of daily snapshots of a large tree that is edited every day: what it costs, what is left, if it is right.

``python -m ansible_collections.longhaul.fleet.tests.month`` makes 20,000 files, with hard links, ACLs, extended
attributes and sparse files among them; transfers them by both ends of the engine, and finishes and prunes as the module
snapshot does, at simulated times; restores by the engine every snapshot that is left, too. It prints its seed;
``--seed`` replays it. Needs root, for owners are among what is compared.
"""

from __future__ import annotations

import argparse
import os
import random
import struct
import sys
import tempfile
import time
from pathlib import Path

from ansible_collections.longhaul.fleet.tests.support.month import Cost, Day, Month
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair, settings

FIRST = 1795262400  # 2026-11-21T12:00:00Z, a Saturday
KEEP = {"daily": 7, "weekly": 4, "monthly": 2}

_FOLDERS = 300
_SIZES = (0, 90, 700, 700, 2500, 2500, 6000, 6000, 20_000, 60_000)  # bytes
_HOLE = 1 << 20  # bytes
# What happens to how many of 20,000 files on a day.
_DAILY = {
    "rewrite": 120,
    "change": 80,
    "sparse": 3,
    "make": 60,
    "remove": 50,
    "move": 20,
    "link": 10,
    "mode": 20,
    "acl": 10,
    "xattr": 10,
}


class Tree:
    """A source of so many files that changes at random, by some of everything every day."""

    def __init__(self, root: Path, files: int, chance: random.Random) -> None:
        self.root, self._files, self._chance = root, files, chance
        self.paths: list[Path] = []
        root.mkdir()

    def edit(self, day: int) -> None:
        """Make the tree on the first day, and change it on the others."""
        if day == 0:
            for _number in range(self._files):
                self._make()
            for name, share in (("link", 50), ("acl", 40), ("xattr", 30), ("mode", 20), ("sparse", 500)):
                for _number in range(self._files // share):
                    getattr(self, f"_{name}")()
            return
        for name, count in _DAILY.items():
            for _number in range(max(1, count * self._files // 20_000)):
                getattr(self, f"_{name}")()

    def _any(self) -> Path:
        return self._chance.choice(self.paths)

    def _content(self) -> bytes:
        size = self._chance.choice(_SIZES)
        return self._chance.randbytes(size + self._chance.randrange(size + 1))

    def _make(self) -> None:
        number = self._chance.randrange(_FOLDERS)
        folder = self.root / f"area {number % 12}" / f"folder{number}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self._chance.randrange(1 << 40):x} é"
        path.write_bytes(self._content())
        self.paths.append(path)

    def _rewrite(self) -> None:
        """As an editor does: a new file takes the place."""
        path = self._any()
        new = path.with_name(".new")
        new.write_bytes(self._content())
        os.replace(new, path)

    def _change(self) -> None:
        """As a database does: in place."""
        with open(self._any(), "r+b") as file:
            file.seek(self._chance.randrange(1 + os.fstat(file.fileno()).st_size))
            file.write(self._chance.randbytes(self._chance.randrange(1, 4000)))

    def _sparse(self) -> None:
        with open(self._any(), "r+b") as file:
            file.truncate(os.fstat(file.fileno()).st_size + _HOLE)
            file.seek(0, os.SEEK_END)
            file.write(b"behind the hole")

    def _remove(self) -> None:
        path = self._any()
        self.paths.remove(path)
        path.unlink()

    def _move(self) -> None:
        path, other = self._any(), self._any()
        self.paths.remove(path)
        self.paths.append(path.rename(other.parent / f"{path.name} moved {self._chance.randrange(1 << 40):x}"))

    def _link(self) -> None:
        path, other = self._any(), self._any()
        name = other.parent / f"link {self._chance.randrange(1 << 40):x}"
        os.link(path, name)
        self.paths.append(name)

    def _mode(self) -> None:
        path = self._any()
        os.chown(path, self._chance.choice([0, 1000, 12345]), self._chance.choice([0, 100, 54321]))
        os.chmod(path, self._chance.choice([0o644, 0o600, 0o755, 0o4750]))

    def _acl(self) -> None:
        """Let a user read: the kernel's own form, linux/posix_acl_xattr.h."""
        user = self._chance.randrange(1000, 60000)
        nobody = 0xFFFFFFFF
        entries = ((1, 6, nobody), (2, 4, user), (4, 4, nobody), (16, 4, nobody), (32, 0, nobody))
        value = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
        os.setxattr(self._any(), "system.posix_acl_access", value)

    def _xattr(self) -> None:
        os.setxattr(self._any(), f"user.note{self._chance.randrange(3)}", self._chance.randbytes(20))


def transfer(source: Path, dest: str, link_dest: list[str], exclude: list[str]) -> None:
    """Transfer by both ends of the engine, each a process of its own."""
    with tempfile.TemporaryDirectory() as work:
        plan = settings("stream", encrypt=False, delete=True, max_delete=10**6, link_dest=link_dest)
        plan["link_dest_exclude"] = exclude
        outcome = Pair(Path(work), source, Path(dest), plan).run()
    if outcome.get("errors") != [] or outcome["failure"]:
        raise RuntimeError(str(outcome))


def live(month: Month, tree: Tree, days: int) -> list[str]:
    """Live the month, and print it; gives what was not as it must be."""
    problems = []
    total = Cost(0, 0)
    for number, day in enumerate(month.live(days, tree.edit)):
        print(_line(number, day), flush=True)
        if day.new != _sum(day.changed, day.named):
            problems.append(f"{day.name} has {day.new} of its own; {day.changed} had changed, {day.named} got a name")
        if day.kept != month.expected() or day.kept != month.there():
            problems.append(f"after {day.name} there is {month.there()}, and the policy keeps {month.expected()}")
        total = _sum(total, day.changed)
    use, needed = month.use(), month.needed()
    if use.files != needed:
        problems.append(f"the repository has {use.files}, and the versions in its snapshots are {needed}")
    whole = Cost(len(tree.paths), sum(os.lstat(path).st_size for path in tree.paths))
    print(f"source: {_show(whole)} (names)")
    print(f"all days together: {_show(total)}; the versions in the snapshots kept: {_show(needed)}")
    print(
        f"repository: {_show(use.files)}; on the disk {_mib(use.contents)} of contents, "
        f"{_mib(use.folders)} of folders, {_mib(use.records)} of manifests"
    )
    for name in month.there():
        found = [f"in the repository: {one}" for one in month.differences(name)]
        with tempfile.TemporaryDirectory() as folder:
            found += [f"restored: {one}" for one in month.restored_differences(name, os.path.join(folder, "restored"))]
        said = f"{len(found)} differences" if found else "it, and what is restored of it, is the source of its day"
        print(f"{name}: {said}", flush=True)
        problems += [f"{name}: {one}" for one in found[:10]]
    return problems


def _line(number: int, day: Day) -> str:
    return f"day {number:2}: {_show(day.changed)} changed, {day.seconds:.1f} s, {len(day.kept)} kept"


def _sum(one: Cost, other: Cost) -> Cost:
    return Cost(one.files + other.files, one.bytes + other.bytes)


def _show(cost: Cost) -> str:
    return f"{cost.files} files {_mib(cost.bytes)}"


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    given = parser.parse_args()
    print(f"seed {given.seed}, {given.files} files, {given.days} days, {KEEP}")
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder) / "source", given.files, random.Random(given.seed))
        (Path(folder) / "repository").mkdir()
        month = Month(tree.root, Path(folder) / "repository", transfer, FIRST, **KEEP)
        problems = live(month, tree, given.days)
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems, {time.monotonic() - begun:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
