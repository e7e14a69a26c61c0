# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Thirty nights of backups with all that goes wrong in a year: what is refused, what is told, and what is never lost.

The engine transfers, and the actions of the module ``snapshot`` do the rest, at simulated times.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.actions import Done, Holders, do_action
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Busy, Refused
from ansible_collections.longhaul.fleet.tests.support import compare
from ansible_collections.longhaul.fleet.tests.support.small_disk import small_disk
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair, settings
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import DAY, NOON, rot

FILES, SIZE, EDITS = 200, 3000, 6
YEAR = 365 * DAY
ROOM = {"size": 1 << 30, "nr_inodes": 1 << 20}


class Nights:
    """A source, a repository on a disk of its own, and a clock."""

    def __init__(self, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source, self.repository, self._work = top / "source", top / "repository", top / "work"
        for folder in (self.source, self.repository, self._work):
            folder.mkdir()
        self.host, self.night, self.ahead = "web1", 0, 0
        self.good: dict[str, dict[bytes, compare.Found]] = {}  # sources of complete snapshots, by name
        self.told: list[str] = []
        self.writer: str | None = None  # the transfer that writes to the unfinished snapshot
        self._dice = random.Random(40)
        monkeypatch.setattr("time.time", lambda: self.now + self.ahead)

    @property
    def now(self) -> int:
        return NOON + self.night * DAY

    @property
    def folder(self) -> Path:
        return self.repository / self.host / "data"

    def do(self, action: str, **given: Any) -> Done:
        """Do an action of the module, and keep its warnings."""
        holders = Holders(lambda _path: self.writer, lambda _path: None)
        done = do_action(action, (str(self.repository), self.host, "data"), {"by": "root@control", **given}, holders)
        self.told += [*done.warnings, *([done.failed] if done.failed else [])]
        return done

    def write(self, number: int) -> None:
        path = self.source / f"d{number % 7}" / f"f{number}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(self._dice.randbytes(SIZE))
        os.utime(path, (self.now - 60, self.now - 60))

    def edit(self) -> None:
        for number in self._dice.sample(range(FILES), EDITS) if self.night else range(FILES):
            self.write(number)

    def transfer(self, begun: Mapping[str, Any]) -> dict[str, Any]:
        """Transfer by both ends of the engine; return the outcome."""
        plan = settings("stream", encrypt=False, delete=True, max_delete=10**6, link_dest=begun["link_dest"])
        plan["link_dest_exclude"] = begun["link_dest_exclude"]
        return Pair(self._work, self.source, Path(begun["path"]), plan).run()

    def back_up(self) -> Mapping[str, Any]:
        """Make a snapshot as a night does, prune and check; return what finish said."""
        run = str(self.night)
        begun = self.do("begin", run=run).result
        outcome = self.transfer(begun)
        problem = outcome.get("failed") or outcome["failure"] or outcome["errors"]
        assert not problem, problem
        done = self.do("finish", run=run).result
        if not done["aside"]:
            self.good[done["name"]] = compare.recorded(self.source)
        return done

    def prune(self) -> None:
        removed = self.do("prune", keep={"daily": 40}, control_time=self.now).result["removed"]
        assert removed == []

    def check(self) -> str:
        """Check everything, and return what was found."""
        return self.do("check").failed

    def live(self, nights: int) -> None:
        """Let nights pass in which nothing goes wrong."""
        for _night in range(nights):
            self.night += 1
            self.edit()
            assert not self.back_up()["aside"]
            self.prune()
            assert self.check() == ""

    def lost(self) -> list[str]:
        """Return what is not there of a good snapshot, or is not what its source was."""
        return [
            f"{name}: {line}"
            for name, record in self.good.items()
            for line in compare.differences(record, self.folder / name / "data")
        ]


@pytest.fixture(name="nights")
def _nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    return Nights(tmp_path, monkeypatch)


@pytest.fixture(name="resize")
def _resize(nights: Nights) -> Iterator[Callable[..., None]]:
    if os.geteuid():
        pytest.skip("cannot run here: only root mounts a disk")
    with small_disk(nights.repository, ",".join(f"{name}={value}" for name, value in ROOM.items())) as remount:
        yield lambda **less: remount(",".join(f"{name}={value}" for name, value in {**ROOM, **less}.items()))


@pytest.mark.long
def test_thirty_nights_lose_no_good_snapshot(nights: Nights, resize: Callable[..., None]) -> None:
    nights.edit()
    nights.back_up()
    nights.live(5)

    # A file changes and keeps its size and time.
    path = nights.source / "d1/f8"
    before = path.stat()
    path.write_bytes(b"x" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    nights.live(1)

    # The clock of the repository is a year ahead for one night: nothing is pruned, and nothing else is the newest.
    nights.night += 1
    nights.edit()
    nights.ahead = YEAR
    future = nights.back_up()["name"]
    with pytest.raises(Refused, match="clock"):
        nights.do("prune", keep={"within": "1d"}, control_time=nights.now)
    nights.ahead = 0
    nights.live(2)
    assert len(nights.good) == 10
    assert os.readlink(nights.folder / "latest") == max(name for name in nights.good if name != future)

    # All files are encrypted in place: the snapshot is set aside, and the good ones stay.
    nights.night += 1
    kept = nights.source.with_name("kept")
    shutil.copytree(nights.source, kept)
    for number in range(FILES):
        nights.write(number)
    aside = nights.back_up()["aside"]
    assert "other contents" in aside or "changed" in aside, aside
    with pytest.raises(Refused, match="aside"):
        nights.do("prune", keep={"last": 1}, control_time=nights.now)
    shutil.rmtree(nights.source)
    shutil.copytree(kept, nights.source)
    for name in names_of(nights.folder, names.ASIDE_PREFIX):
        nights.do("discard", name=name)
    nights.live(2)

    # A disk rots: it is told once, and the next night heals it.
    newest = max(name for name in nights.good if name != future)
    rot(nights.folder / newest / "data/d2/f9")
    nights.night += 1
    assert "d2/f9" in nights.check()
    nights.edit()
    assert nights.back_up()["figures"]["healed"] == 1
    assert nights.check() == ""
    rotten = newest

    # The host gets another name, and its folder with it.
    os.rename(nights.repository / "web1", nights.repository / "www")
    nights.host = "www"
    nights.live(2)

    # Two control nodes: the second one is refused while the first transfers.
    nights.night += 1
    nights.edit()
    begun = nights.do("begin", run="first").result
    nights.writer = "transfer 1"
    with pytest.raises(Busy):
        nights.do("begin", run="second")
    nights.writer = None
    assert not nights.transfer(begun)["failure"]
    done = nights.do("finish", run="first").result
    nights.good[done["name"]] = compare.recorded(nights.source)

    # Somebody moves a snapshot away: the check names it, and when it was made.
    missing = sorted(nights.good)[2]
    os.rename(nights.folder / missing, nights.repository / "elsewhere")
    found = nights.check()
    assert missing in found and "gone" in found, found
    assert nights.check() == ""  # it is told once as new
    os.rename(nights.repository / "elsewhere", nights.folder / missing)
    nights.live(2)

    # The disk is full, then out of inodes.
    for less, word in (({"size": used(nights.repository) + 100_000}, "space"), ({"nr_inodes": 0}, "inodes")):
        nights.night += 1
        for number in range(FILES, FILES + 60):
            nights.write(number)
        if "nr_inodes" in less:
            less = {"nr_inodes": inodes(nights.repository) + 20}
        resize(**less)
        with pytest.raises((Refused, AssertionError), match=f"no space|no {word}|disk is full|room"):
            nights.back_up()
        resize()
        nights.live(1)

    nights.live(30 - nights.night)
    lost = nights.lost()
    assert all("'d2/f9': content" in line for line in lost) and len(nights.good) >= 25, lost
    assert all(line[: len(rotten)] <= rotten or line.startswith(future) for line in lost)  # until it was healed
    history = (nights.folder / "history.jsonl").read_text()
    assert all(f'"{word}"' in history for word in ("made", "aside", "discarded", "renamed", "missed"))


def names_of(folder: Path, prefix: str) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(prefix)]


def used(folder: Path) -> int:
    status = os.statvfs(folder)
    return (status.f_blocks - status.f_bfree) * status.f_frsize


def inodes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_files - status.f_ffree
