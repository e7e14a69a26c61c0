# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers of files that were moved or touched since the one before: their contents are not sent again."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.files_here import WORTH
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.begin import Begun, begin
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.facts import Figures
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.finish import finish
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.repository import Series
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.suspicion import ChangeLimits
from ansible_collections.longhaul.fleet.tests.support import lying_stream
from ansible_collections.longhaul.fleet.tests.support.compare import differences, recorded
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.relay import Relay
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair, settings
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import (
    Trees,
    expect_same,
    make_pair,
    needs_root,
    noise,
    run_through,
    transfer,
)

NOON, DAY = 1_800_000_000, 86400
TIME = 10**18  # ns
SMALL, LARGE = 8 << 10, 3 << 20
WIRE = 250  # bytes for each moved file, with its name, in both directions


def write(path: Path, number: int, size: int) -> None:
    """Write a file that is like no other in its content and time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(noise(number, size))
    os.utime(path, ns=(TIME, TIME + number))


class Backups:
    """A source, and the series of its snapshots, which real transfers fill."""

    def __init__(self, trees: Trees, method: str = "stream") -> None:
        self.source, dest, self._work = trees
        self.repository = dest.with_name("repository")
        self.repository.mkdir()
        self._method, self._now = method, NOON
        self.wire = 0  # bytes of the last transfer, in both directions
        self.lies: list[tuple[str, int, int, int]] = []
        self.figures = Figures()  # of the last snapshot

    def series(self) -> Series:
        return Series(str(self.repository), "web1", "data", create=True)

    def pair(self, begun: Begun, **changes: Any) -> Pair:
        given = {"link_dest": begun.link_dest, "link_dest_exclude": begun.link_dest_exclude, "delete": True, **changes}
        pair = Pair(self._work, self.source, Path(begun.path), settings(self._method, encrypt=False, **given))
        if self.lies:
            lies = shlex.quote(json.dumps(self.lies))
            run_through(pair, "source", first=f"{lying_stream.__file__} source {lies}")
        return pair

    def begin(self) -> Begun:
        with self.series() as series:
            return begin(series, f"run {self._now}", self._now)

    def take(self, **changes: Any) -> tuple[Path, dict[str, Any]]:
        """Make a snapshot; return its tree, and what became of the transfer."""
        begun = self.begin()
        pair = self.pair(begun, **changes)
        pair.start("dest")
        with Relay(pair.peer["port"]) as relay:
            pair.peer["port"] = relay.port
            pair.start("source")
            outcome = pair.finish()
            self.wire = relay.passed
        assert outcome.get("errors") == [], outcome
        with self.series() as series:
            done = finish(series, f"run {self._now}", self._now, limits=ChangeLimits(100, 100))
            assert done.facts is not None
            self.figures = done.facts.figures
        self._now += DAY
        return self.repository / "web1" / "data" / begun.name / names.DATA, outcome


@pytest.fixture(name="backups")
def _backups(trees: Trees) -> Backups:
    return Backups(trees)


def test_moved_files_are_linked_and_cost_little_more_than_their_names(backups: Backups) -> None:
    paths = [f"{number % 3}/{number}" for number in range(200)]
    for number, path in enumerate(paths):
        write(backups.source / "old" / path, number, SMALL)
    write(backups.source / "old/large", 1000, LARGE)
    one, _outcome = backups.take()
    before = recorded(one)
    os.rename(backups.source / "old", backups.source / "new")
    os.rename(backups.source / "new/0/0", backups.source / "alone")
    two, outcome = backups.take()
    assert differences(backups.source, two) == [] == differences(before, one)
    linked = [(two / "new" / path).samefile(one / "old" / path) for path in paths[1:]]
    assert all(linked) and (two / "alone").samefile(one / "old/0/0") and (two / "new/large").samefile(one / "old/large")
    assert (outcome["bytes_sent"], outcome["bytes_content"]) == (0, 0)
    assert backups.wire < WIRE * len(paths)
    figures = backups.figures
    assert (figures.moved, figures.new_files, figures.new_bytes) == (201, 0, 0)
    assert (figures.gone, figures.changed) == (201, 0)


@pytest.mark.parametrize("method", ["stream", "tar_nc"])
def test_what_gets_other_attributes_is_copied(trees: Trees, method: str) -> None:
    backups = Backups(trees, method)
    for number, name in enumerate(("touched", "dressed", "moved", "twice", "large")):
        write(backups.source / name, number, LARGE if name == "large" else 20 * SMALL)
    one, _outcome = backups.take()
    before = recorded(one)
    os.utime(backups.source / "touched", ns=(TIME, TIME + 99))
    (backups.source / "dressed").chmod(0o640)
    (backups.source / "below").mkdir()
    os.rename(backups.source / "moved", backups.source / "below/moved")  # of the same name: with another time, too
    os.utime(backups.source / "below/moved", ns=(TIME, TIME + 98))
    shutil.copy2(backups.source / "twice", backups.source / "a copy")
    os.rename(backups.source / "large", backups.source / "below/big")
    (backups.source / "below/big").chmod(0o600)
    assert backups.pair(backups.begin(), check=True).run()["bytes_sent"] == 0
    two, outcome = backups.take()
    assert differences(backups.source, two) == [] == differences(before, one)
    assert outcome["bytes_sent"] == 0
    assert outcome["bytes_matched"] == outcome["bytes_total"]


def test_a_moved_file_that_changed_gives_blocks(backups: Backups) -> None:
    write(backups.source / "old/image", 1, LARGE)
    backups.take()
    os.rename(backups.source / "old", backups.source / "new")
    with (backups.source / "new/image").open("r+b") as file:
        file.write(b"#")
    two, outcome = backups.take()
    assert differences(backups.source, two) == []
    assert 0 < outcome["bytes_sent"] <= LARGE // 4
    assert outcome["bytes_from_basis"] >= LARGE // 2


@needs_root
def test_a_damaged_file_or_that_of_another_user_is_no_source(backups: Backups) -> None:
    for number, name in enumerate(("damaged", "known", "foreign", "setuid", "good")):
        write(backups.source / "old" / name, number, 20 * SMALL)
    one, _outcome = backups.take()
    for name in ("damaged", "known"):
        status = (one / "old" / name).stat()
        with (one / "old" / name).open("r+b") as file:
            file.write(b"#")
        os.utime(one / "old" / name, ns=(status.st_atime_ns, status.st_mtime_ns))
    for name in ("foreign", "setuid"):
        os.chown(one / "old" / name, 1234, -1)
    os.rename(backups.source / "old", backups.source / "new")
    os.chown(backups.source / "new/setuid", 1234, 1234)
    (backups.source / "new/setuid").chmod(0o4755)
    two, outcome = backups.take(link_dest_exclude=["old/known"])
    assert differences(backups.source, two) == []
    assert (two / "new/good").samefile(one / "old/good")
    assert outcome["bytes_sent"] == 4 * 20 * SMALL


def test_a_source_that_lies_about_hashes_sends_the_contents(backups: Backups) -> None:
    for number in range(4):
        write(backups.source / f"old/{number}", number, 20 * SMALL)
    one, _outcome = backups.take()
    before = recorded(one)
    os.rename(backups.source / "old", backups.source / "new")
    with (backups.source / "new/1").open("r+b") as file:  # it has the size and the time, and not the content
        file.write(b"#")
    os.utime(backups.source / "new/1", ns=(TIME, TIME + 1))
    backups.lies = [("hashes that fit", 0, 1, 0)]
    two, outcome = backups.take()
    assert differences(backups.source, two) == [] == differences(before, one)
    assert outcome["bytes_sent"] == 4 * 20 * SMALL


def test_after_a_kill_the_rerun_sends_nothing_either(backups: Backups) -> None:
    for number in range(300):
        write(backups.source / f"old/{number}", number, SMALL)
    one, _outcome = backups.take()
    before = recorded(one)
    os.rename(backups.source / "old", backups.source / "new")
    begun = backups.begin()
    pair = backups.pair(begun)
    pair.start("dest")
    with Relay(pair.peer["port"], rate=200_000) as relay:  # it takes half a second
        pair.peer["port"] = relay.port
        pair.start("source")
        wait_for(lambda: any(Path(begun.path).glob("new/*")), seconds=60)
        pair.kill("dest")
        pair.kill("source")
    two, outcome = backups.take()
    assert differences(backups.source, two) == [] == differences(before, one)
    assert outcome["bytes_sent"] == 0
    assert all((two / f"new/{number}").samefile(one / f"old/{number}") for number in range(300))


@pytest.mark.parametrize("moved", [("old", "new"), ("a", "b")])  # the destination meets the new one first, or last
def test_files_that_moved_within_a_destination_are_linked_there(trees: Trees, moved: tuple[str, str]) -> None:
    source, dest, _work = trees
    for number in range(40):
        write(source / moved[0] / f"{number}", number, 20 * SMALL)
    write(source / moved[0] / "large", 50, LARGE)
    transfer(trees, delete=True)
    inode = (dest / moved[0] / "large").stat().st_ino
    os.rename(source / moved[0], source / moved[1])
    write(source / moved[1] / "new", 60, SMALL)
    outcome = transfer(trees, delete=True)
    expect_same(trees, outcome)
    assert outcome["files_deleted"] == 42
    assert outcome["bytes_sent"] <= WORTH + SMALL  # until it is worth to look
    assert outcome["bytes_matched"] >= 5 * LARGE // 3
    assert (dest / moved[1] / "large").stat().st_ino == inode
    assert {path.stat().st_nlink for path in dest.rglob("*") if path.is_file()} == {1}
    assert not transfer(trees, delete=True)["changed"]


@pytest.mark.parametrize(("old", "new"), [("old", "new"), ("a", "b")])
def test_files_that_stay_share_no_inode_with_their_copies(trees: Trees, old: str, new: str) -> None:
    source, dest, _work = trees
    for number in range(2):
        write(source / f"{old}{number}", number, 2 * LARGE)
    write(source / "kept.key", 9, 2 * LARGE)
    transfer(trees, delete=True)
    for number in range(2):
        shutil.copy2(source / f"{old}{number}", source / f"{new}{number}")
    os.rename(source / "kept.key", source / "secret")
    outcome = transfer(trees, delete=True, rules=["- *.key"])
    assert outcome["bytes_sent"] == 2 * LARGE  # what a rule protects is no source
    assert {path.name: path.read_bytes() for path in source.iterdir()} == {
        path.name: path.read_bytes() for path in dest.iterdir() if path.name != "kept.key"
    }
    assert (dest / "kept.key").read_bytes() == (source / "secret").read_bytes()
    assert {path.stat().st_nlink for path in dest.iterdir()} == {1}


@pytest.mark.long
def test_a_killed_move_within_a_destination_is_completed(trees: Trees) -> None:
    source, dest, _work = trees
    for number in range(60):
        write(source / "old" / f"{number:02}", number, 20 * SMALL)
    transfer(trees, delete=True)
    os.rename(source / "old", source / "new")
    pair = make_pair(trees, delete=True)
    pair.start("dest")
    with Relay(pair.peer["port"], rate=4 << 20) as relay:
        pair.peer["port"] = relay.port
        pair.start("source")
        wait_for(lambda: any(path.stat().st_nlink == 2 for path in (dest / "new").glob("*")), seconds=60)
        pair.kill("dest")
        pair.kill("source")
    outcome = transfer(trees, delete=True)
    expect_same(trees, outcome)
    assert {path.stat().st_nlink for path in dest.rglob("*") if path.is_file()} == {1}


def test_with_max_delete_they_are_copied(trees: Trees) -> None:
    source, dest, _work = trees
    write(source / "old", 1, 2 * LARGE)
    transfer(trees, delete=True)
    os.rename(source / "old", source / "new")
    outcome = transfer(trees, delete=True, max_delete=0)
    assert "max_delete" in outcome["failure"] and outcome["bytes_sent"] == 0
    assert not (dest / "new").samefile(dest / "old")


@needs_root
def test_nothing_of_another_user_is_taken_within_a_destination(trees: Trees) -> None:
    source, dest, _work = trees
    write(source / "old/large", 1, 2 * LARGE)
    transfer(trees, delete=True)
    os.chown(dest / "old/large", 1234, -1)
    os.rename(source / "old", source / "new")
    outcome = transfer(trees, delete=True)
    expect_same(trees, outcome)
    assert outcome["bytes_sent"] == 2 * LARGE
