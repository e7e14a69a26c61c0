# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers into snapshots: a change that keeps a file's size and modification time is found by its ctime."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.change_times import ChangeTimes
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair, settings

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
needs_sshd = pytest.mark.skipif(SSHD is None or os.geteuid() != 0, reason="needs sshd")
LARGE = b"large" * 200_000


class Nights:
    """A source, and a folder of snapshots of it."""

    def __init__(self, trees: tuple[Path, Path, Path], method: str) -> None:
        self.source, dest, self._work = trees
        self.folder = dest.with_name("series")
        self._method = method
        self.names: list[str] = []
        (self.source / "d").mkdir()
        for name in ("a", "d/b", "z"):
            (self.source / name).write_bytes(name.encode() * 10)
        (self.source / "large").write_bytes(LARGE)
        os.link(self.source / "a", self.source / "d/second")

    @property
    def unfinished(self) -> Path:
        return self.folder / names.UNFINISHED / names.DATA

    def begin(self) -> None:
        """Make the unfinished snapshot, as ``begin`` does."""
        self.unfinished.mkdir(parents=True)
        (self.unfinished.parent / names.FACTS).write_text("{}")

    def transfer(self, part: str = "", **changes) -> dict:
        links = [str(self.folder / name / names.DATA / part) for name in reversed(self.names)]
        plan = settings(self._method, encrypt=False, delete=True, link_dest=links, **changes)
        pair = Pair(self._work, self.source, self.unfinished / part, plan)
        if self._method in ("scp", "sftp"):
            pair.use_ssh()
        outcome = pair.run()
        assert outcome.get("errors") == [], outcome
        return outcome

    def finish(self) -> Path:
        """Name the snapshot, and return its tree."""
        self.names.append(names.name_of(1_800_000_000 + len(self.names)))
        os.rename(self.unfinished.parent, self.folder / self.names[-1])
        return self.folder / self.names[-1] / names.DATA

    def take(self, part: str = "", **changes) -> tuple[Path, dict]:
        self.begin()
        if part:
            (self.unfinished / part).mkdir()
        outcome = self.transfer(part, **changes)
        return self.finish(), outcome


def change(path: Path, content: bytes) -> None:
    """Write into a file, and give it the times that it had."""
    before = path.stat()
    assert len(content) == before.st_size
    with open(path, "r+b") as file:
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def known(tree: Path) -> dict[bytes, int]:
    fd = os.open(tree.parent / names.CHANGE_TIMES, os.O_RDONLY)
    try:
        return dict(ChangeTimes(fd).rest())
    finally:
        os.close(fd)


METHODS = ["stream", "tar_nc", pytest.param("scp", marks=needs_sshd), pytest.param("sftp", marks=needs_sshd)]


@pytest.mark.parametrize("method", METHODS)
def test_a_change_that_keeps_size_and_time_is_backed_up(trees, method):
    nights = Nights(trees, method)
    one, _outcome = nights.take()
    two, outcome = nights.take()
    assert outcome["bytes_sent"] == 0
    for name in ("a", "d/b", "z", "large"):
        assert (two / name).samefile(one / name)
    assert known(two)[b"z"] == (nights.source / "z").stat().st_ctime_ns
    change(nights.source / "a", b"A" * 10)
    change(nights.source / "large", LARGE[:-1] + b"!")
    os.chmod(nights.source / "z", (nights.source / "z").stat().st_mode)  # another ctime, and nothing else
    three, outcome = nights.take()
    assert (three / "a").read_bytes() == b"A" * 10 and (three / "d/second").samefile(three / "a")
    assert (three / "large").read_bytes() == LARGE[:-1] + b"!"
    assert (three / "z").samefile(one / "z") and (three / "d/b").samefile(one / "d/b")
    assert (two / "a").read_bytes() == b"a" * 10


@pytest.fixture(name="nights")
def _nights(trees):
    return Nights(trees, "stream")


def test_a_part_of_a_snapshot_has_a_list_of_its_own(nights):
    nights.take("etc")
    change(nights.source / "d/b", b"B" * 30)
    again, outcome = nights.take("etc")
    assert (again / "etc/d/b").read_bytes() == b"B" * 30 and outcome["bytes_sent"] == 30
    assert not (again.parent / names.CHANGE_TIMES).exists()


def test_check_mode_predicts_it(nights):
    nights.take()
    change(nights.source / "z", b"Z" * 10)
    plan = settings("stream", encrypt=False, check=True, link_dest=[str(nights.folder / nights.names[0] / "data")])
    predicted = Pair(nights.folder.with_name("work"), nights.source, nights.folder.with_name("empty"), plan)
    nights.folder.with_name("empty").mkdir()
    nights.folder.with_name("work").mkdir(exist_ok=True)
    assert predicted.run()["bytes_content"] == 10


def test_an_interrupted_run_keeps_what_it_knew(nights):
    nights.begin()
    nights.transfer()
    change(nights.source / "d/b", b"B" * 30)
    change(nights.source / "z", b"Z" * 10)
    outcome = nights.transfer()  # of the run that goes on
    assert outcome["bytes_sent"] == 40
    tree = nights.finish()
    assert (tree / "d/b").read_bytes() == b"B" * 30 and (tree / "z").read_bytes() == b"Z" * 10
    assert nights.take()[1]["bytes_sent"] == 0


@pytest.mark.parametrize("harm", ["gone", "cut short", "flipped"])
def test_a_lost_list_makes_contents_count_and_an_absent_one_does_not(nights, harm):
    one, _outcome = nights.take()
    path = one.parent / names.CHANGE_TIMES
    data = path.read_bytes()
    if harm == "gone":  # a snapshot of another method, or of a version before 0.3.0
        path.unlink()
    else:
        path.write_bytes(data[:-1] if harm == "cut short" else data[:-1] + bytes([data[-1] ^ 1]))
    change(nights.source / "z", b"Z" * 10)
    two, outcome = nights.take()
    assert outcome["bytes_sent"] == (0 if harm == "gone" else 10)
    assert (two / "a").samefile(one / "a")
    if harm == "gone":  # nobody has read them, so the next transfer does
        assert known(two) == {}
        three, outcome = nights.take()
        assert outcome["bytes_sent"] == 10 and (three / "a").samefile(two / "a")
        assert (three / "z").read_bytes() == b"Z" * 10
        two = three
    assert known(two)[b"z"] == (nights.source / "z").stat().st_ctime_ns


def test_a_list_that_the_disk_does_not_give_back_is_none(nights, monkeypatch):
    one, _outcome = nights.take()
    fd = os.open(one.parent / names.CHANGE_TIMES, os.O_RDONLY)
    whole, real = ChangeTimes(fd), os.pread

    def fail(*_given):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", fail)
    try:
        assert whole.find(b"a") is None and ChangeTimes(fd).find(b"a") is None
    finally:
        monkeypatch.setattr(os, "pread", real)
        os.close(fd)


def test_a_time_is_not_known_of_a_file_that_was_there_before_any_list(nights):
    nights.begin()
    nights.transfer()
    (nights.unfinished.parent / names.CHANGE_TIMES).unlink()
    change(nights.source / "z", b"Z" * 10)
    nights.transfer()
    tree = nights.finish()
    assert b"z" not in known(tree)
    assert (nights.take()[0] / "z").read_bytes() == b"Z" * 10  # it is compared the next time


def test_nothing_is_written_beside_a_folder_that_is_no_snapshot(nights):
    nights.unfinished.mkdir(parents=True)
    nights.transfer()
    assert os.listdir(nights.unfinished.parent) == [names.DATA]
