# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Of a changed large file, blocks that a ``link_dest`` folder has are not sent, and that folder never changes."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.content import delta
from ansible_collections.longhaul.fleet.tests.support.compare import differences, recorded
from ansible_collections.longhaul.fleet.tests.support.disk_image import (
    SHARES_EXTENTS,
    CannotMount,
    disk_image,
    used,
)
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import PACKAGE, Pair
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import (
    MIB,
    expect_same,
    journaled,
    make_pair,
    needs_root,
    noise,
    partial_folder,
    run_through,
    start,
    transfer,
    wait_until_safe,
)

BLOCK = 32 << 10
SIZE = 64 * MIB


def change(path: Path, share: float = 0.01, pieces: int = 20) -> int:
    """Change a share of a file in place, in some stretches; return the bytes that were changed."""
    size, chance = path.stat().st_size, random.Random(5)
    each, slot = max(1, int(size * share) // pieces), size // pieces
    with path.open("r+b") as file:
        for piece in range(pieces):
            file.seek(piece * slot + chance.randrange(slot - each))
            file.write(noise(piece, each))
    return each * pieces


def everything(root: Path) -> dict[str, tuple[int, ...]]:
    """Return what lstat says of all in a tree, the times of access and of change included."""
    found = {str(path.relative_to(root)): path.lstat() for path in (root, *sorted(root.rglob("*")))}
    return {path: (*status, status.st_atime_ns, status.st_ctime_ns) for path, status in found.items()}


class Image:
    """A source with an image, and an older copy of it beside the destination."""

    def __init__(self, trees: tuple[Path, Path, Path], size: int = SIZE) -> None:
        self.trees = trees
        self.source, self.new, _work = trees
        self.old = self.new.with_name("old")
        (self.source / "sub").mkdir()
        self.path = self.source / "sub" / "image"
        self.path.write_bytes(noise(1, size))
        shutil.copytree(self.source, self.old)
        os.utime(self.old / "sub" / "image", ns=(1, 1))
        self.changed = change(self.path)
        self.before = recorded(self.old), everything(self.old)

    def take(self, **changes) -> dict:
        """Transfer into the new tree, which must be right afterwards, and the older one as it was."""
        outcome = transfer(self.trees, **{"link_dest": [str(self.old)], "streams": 2, **changes})
        expect_same(self.trees, outcome)
        self.expect_older_as_it_was()
        return outcome

    def expect_older_as_it_was(self) -> None:
        """Not even a time of access may have changed."""
        now = everything(self.old)
        assert now == self.before[1]
        assert differences(self.before[0], self.old) == []


@pytest.mark.parametrize("encrypt", [True, *rarely(False)])
def test_blocks_of_an_older_tree_are_not_sent(trees, encrypt):
    image = Image(trees)
    outcome = image.take(encrypt=encrypt)
    assert image.changed <= outcome["bytes_sent"] <= image.changed + 40 * BLOCK
    assert outcome["bytes_from_basis"] == outcome["bytes_matched"] == SIZE - outcome["bytes_sent"]
    assert outcome["files_created"] == 2 and not transfer(trees)["changed"]
    again = image.take()
    assert (again["changed"], again["bytes_sent"], again["bytes_from_basis"]) == (False, 0, 0)


@pytest.mark.parametrize("lacking", ["source", "dest"])
def test_hosts_without_the_library_hash_by_what_python_has(trees, lacking):
    if not delta.has_xxh128():
        pytest.skip("cannot run here: needs libxxhash.so.0")
    image = Image(trees, 8 * MIB)
    pair = make_pair(trees, link_dest=[str(image.old)])
    program = trees[2] / "without.py"
    trees[2].mkdir()
    program.write_text(PATCHED.format(package=PACKAGE, ends=Pair.__module__, patch="delta.has_xxh128 = lambda: False"))
    run_through(pair, lacking, first=str(program))
    outcome = pair.run()
    expect_same(trees, outcome)
    assert outcome["bytes_sent"] <= image.changed + 40 * BLOCK
    image.expect_older_as_it_was()


def test_the_first_folder_with_such_a_file_is_taken_and_what_is_there_comes_before(trees):
    size = 16 * MIB
    image = Image(trees, size)
    first, second = (image.old.with_name(name) for name in ("first", "second"))
    for folder, content in ((first, noise(1, size)[: size // 2]), (second, noise(2, size))):
        (folder / "sub").mkdir(parents=True)
        (folder / "sub" / "image").write_bytes(content)
    nowhere, empty = image.old.with_name("nowhere"), image.old.with_name("empty")
    empty.mkdir()
    outcome = image.take(link_dest=[str(folder) for folder in (nowhere, empty, first, image.old)])
    assert size // 2 <= outcome["bytes_sent"] <= size // 2 + image.changed + 40 * BLOCK
    shutil.rmtree(image.new / "sub")
    assert image.take(link_dest=[str(second), str(image.old)])["bytes_sent"] == size
    shutil.rmtree(image.new / "sub")
    (image.new / "sub").mkdir()
    shutil.copyfile(image.path, image.new / "sub" / "image")
    os.utime(image.new / "sub" / "image", ns=(1, 1))
    assert image.take(link_dest=[str(second)])["bytes_sent"] == 0


def test_without_delta_the_older_tree_is_not_read(trees):
    image = Image(trees, 8 * MIB)
    outcome = image.take(delta="none")
    assert (outcome["bytes_sent"], outcome["bytes_from_basis"]) == (8 * MIB, 0)


@pytest.mark.parametrize("what", ["a link", "below a link", "a FIFO", "a folder", "too small"])
def test_what_is_no_file_of_the_older_tree_is_no_basis(trees, what):
    image = Image(trees, 8 * MIB)
    older, aside = image.old / "sub" / "image", image.old.with_name("aside")
    if what == "below a link":
        (image.old / "sub").rename(aside)
        (image.old / "sub").symlink_to(aside)
    else:
        older.rename(aside)
        if what == "a link":
            older.symlink_to(aside)
        elif what == "a FIFO":
            os.mkfifo(older)
        elif what == "a folder":
            older.mkdir()
        else:
            older.write_bytes(b"x" * (BLOCK - 1))
    image.before = recorded(image.old), everything(image.old)
    outcome = image.take()
    assert (outcome["bytes_sent"], outcome["bytes_from_basis"]) == (8 * MIB, 0)


def test_a_file_that_became_shorter_or_longer_or_has_holes(trees):
    image = Image(trees, 20 * MIB)
    os.truncate(image.path, 10 * MIB + 5)
    assert image.take()["bytes_sent"] <= image.changed + 40 * BLOCK
    shutil.rmtree(image.new / "sub")
    with image.path.open("r+b") as file:
        file.truncate(MIB)  # the rest is a hole
        file.truncate(30 * MIB)
        file.seek(25 * MIB)
        file.write(b"x")
    outcome = image.take()
    assert outcome["bytes_sent"] <= image.changed + 40 * BLOCK + 29 * MIB
    assert (image.new / "sub/image").stat().st_blocks * 512 <= 2 * MIB


@needs_root
@pytest.mark.parametrize("kind", ["xfs", "ext4", *rarely("btrfs")])
def test_on_a_disk_that_can_a_new_file_shares_what_did_not_change(tmp_path, kind):
    try:
        with disk_image(tmp_path, kind) as mounted:
            for name in ("source", "disk"):
                (tmp_path / name).mkdir()
            dest = mounted / "dest"
            dest.mkdir()
            image = Image((tmp_path / "source", dest, tmp_path / "work"))
            before = used(mounted)
            outcome = image.take()
            growth = used(mounted) - before
            if kind in SHARES_EXTENTS:
                assert growth <= 1.2 * (image.changed + 20 * BLOCK), growth / image.changed
                assert outcome["bytes_shared"] == outcome["bytes_from_basis"] >= 0.95 * SIZE
            else:
                assert growth >= SIZE and outcome["bytes_shared"] == 0
            assert outcome["bytes_sent"] <= image.changed + 40 * BLOCK
            # Holes that came: they are punched into what was cloned.
            shutil.rmtree(dest / "sub")
            with image.path.open("r+b") as file:
                file.truncate(8 * MIB)
                file.truncate(SIZE)
                file.seek(SIZE - 5)
                file.write(b"later")
            image.take()
            assert (dest / "sub/image").stat().st_blocks * 512 <= 12 * MIB
    except CannotMount as error:
        pytest.skip(f"cannot run here: {error}")


def cut_down(pair: Pair, victim: str, size: int) -> int:
    """Kill an end when so much is safe; return what the journal then says is safe."""
    start(pair)
    wait_until_safe(pair, size)
    pair.kill(victim)
    pair.stop()
    return journaled(partial_folder(pair))


@needs_root
@pytest.mark.often(2)
@pytest.mark.parametrize("victim", ["source", "dest"])
@pytest.mark.parametrize("kind", ["", "xfs"])
def test_a_rerun_resumes_a_file_that_began_with_an_older_one(tmp_path, victim, kind):
    """What was copied or cloned, but is not known to be safe, is taken from the older tree again."""
    for name in ("source", "disk"):
        (tmp_path / name).mkdir()
    try:
        with disk_image(tmp_path / "disk", kind) if kind else contextlib.nullcontext(tmp_path / "disk") as mounted:
            dest = mounted / "dest"
            dest.mkdir()
            image = Image((tmp_path / "source", dest, tmp_path / "work"))
            with image.path.open("r+b") as file:  # so that it takes its time
                file.seek(16 * MIB)
                file.write(noise(9, 32 * MIB))
            pair = make_pair(image.trees, link_dest=[str(image.old)], bwlimit=4 * MIB)
            safe = cut_down(pair, victim, 20 * MIB)
            assert 0 < safe < SIZE
            data = next(path for path in partial_folder(pair).iterdir() if path.suffix != ".ranges")
            with data.open("r+b") as file:  # what no line says may be anything
                lines = [line.split() for line in data.with_name(data.name + ".ranges").read_text().splitlines()]
                end = max(int(line[2]) for line in lines)
                assert end < SIZE
                file.seek(end)
                file.write(b"torn" * 1000)
            outcome = image.take()
            assert outcome["resumed"] and outcome["bytes_sent"] <= image.changed + 40 * BLOCK + 32 * MIB - 6 * MIB
    except CannotMount as error:
        pytest.skip(f"cannot run here: {error}")


PATCHED = """\
import importlib, sys
delta = importlib.import_module("{package}._engine.content.delta")
{patch}
sys.exit(importlib.import_module({ends!r}).main(*sys.argv[2:]))
"""
SAYS_THAT_ALL_IS_THE_SAME = "delta.same_blocks = lambda numbers, own, known: iter([(numbers, True)])"
KNOWS_WHAT_WAS_TOLD = f"""{SAYS_THAT_ALL_IS_THE_SAME}
delta.Blocks.prove = lambda blocks, rests: bytes(16)"""


@pytest.mark.parametrize("patch", [SAYS_THAT_ALL_IS_THE_SAME, KNOWS_WHAT_WAS_TOLD])
def test_a_source_gets_no_block_into_a_new_file_that_it_does_not_have(trees, patch):
    image = Image(trees, 8 * MIB)
    pair = make_pair(trees, link_dest=[str(image.old)])
    program = trees[2] / "liar.py"
    trees[2].mkdir()
    program.write_text(PATCHED.format(package=PACKAGE, ends=Pair.__module__, patch=patch))
    run_through(pair, "source", first=str(program))
    outcome = pair.run()
    assert "blocks of an old version that its source does not know" in outcome.get("failed", ""), outcome
    assert not (image.new / "sub" / "image").exists()
    image.expect_older_as_it_was()


SAYS_ONLY_DONE = """
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.sender import large_files
def say_done(self, link, item, piece):
    record = large_files.Record
    link.send_head(record(large_files.RecordKind.DONE, item.shard, item.index, piece[0], piece[1] - piece[0]))
large_files.StreamSource._send_range = say_done
"""


def run_patched(trees, side, patch, **changes):
    """Transfer, with one end changed by some statements."""
    pair = make_pair(trees, **changes)
    program = trees[2] / "patched.py"
    trees[2].mkdir(exist_ok=True)
    program.write_text(PATCHED.format(package=PACKAGE, ends=Pair.__module__, patch=patch))
    run_through(pair, side, first=str(program))
    return pair.run()


@needs_root
@pytest.mark.parametrize("kind", ["xfs", "tmpfs", *rarely("btrfs")])
def test_a_source_that_sends_nothing_gets_no_file(tmp_path, kind):
    """A clone of the older version would be the new file, which the source need not know."""
    try:
        with disk_image(tmp_path, kind) if kind != "tmpfs" else contextlib.nullcontext(tmp_path) as mounted:
            (tmp_path / "source").mkdir()
            dest = mounted / "dest"
            dest.mkdir()
            image = Image((tmp_path / "source", dest, tmp_path / "work"), 20 * MIB)
            for changes in ({"link_dest": [str(image.old)]}, {"delta": "none"}):
                outcome = run_patched(image.trees, "source", SAYS_ONLY_DONE, **changes)
                assert [error["path"] for error in outcome["errors"]] == ["sub/image"], outcome
                assert "the source did not send all of it" in outcome["errors"][0]["reason"]
                assert not (image.new / "sub/image").exists() and not list(image.new.glob(".longhaul-*/partial/*"))
            image.expect_older_as_it_was()
    except CannotMount as error:
        pytest.skip(f"cannot run here: {error}")


DIES_THEN = """
import os, time
send_all = large_files.StreamSource._travel
def send_and_die(self, opened):
    send_all(self, opened)
    time.sleep(2)
    os._exit(1)
large_files.StreamSource._travel = send_and_die
"""


def test_what_never_came_is_not_safe_for_a_rerun(trees):
    """A source that cannot read a range says only that it is done, and names the problem later."""
    source, dest, _work = trees
    (source / "large").write_bytes(noise(1, 20 * MIB))
    assert "died" in run_patched(trees, "source", SAYS_ONLY_DONE + DIES_THEN)
    (folder,) = dest.glob(".longhaul-*/partial")
    assert journaled(folder) == 0
    expect_same(trees, transfer(trees))


WRITES_WHEN_HASHED = """
import os
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.basis import Basis
check = Basis.check
def write(self, offset, length, proof):
    check(self, offset, length, proof)
    name = os.readlink("/proc/self/fd/%d" % self.fd)
    if offset <= {at} < offset + length:
        status = os.stat(name)
        fd = os.open(name, os.O_WRONLY)
        os.pwrite(fd, b"evil", {at})
        os.close(fd)
        os.utime(name, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.link(name, name + " too")  # which alone would change the ctime, too
Basis.check = write
"""


@pytest.mark.parametrize("size", [8 * MIB, 20 * MIB], ids=["no journal", "journal"])
def test_an_old_version_that_changes_after_its_blocks_were_hashed(trees, size):
    """With a journal nothing is sent twice."""
    image = Image(trees, size)
    different = [block for block in range(0, size, BLOCK) if not _is_same(image, block)]
    at = next(block for block in range(2 * MIB, size, BLOCK) if block not in different)
    patch = WRITES_WHEN_HASHED.format(at=at + 5)
    outcome = run_patched(trees, "dest", patch, link_dest=[str(image.old)])
    assert (image.old / "sub/image too").exists()
    expect_same(trees, outcome)
    assert not outcome["resumed"]
    times = 1 if size > 16 * MIB else 2
    assert outcome["bytes_sent"] == (times * len(different) + 1) * BLOCK


def _is_same(image, block):
    old, new = (path.read_bytes()[block : block + BLOCK] for path in (image.old / "sub/image", image.path))
    return old == new


@needs_root
def test_an_old_version_with_another_name_or_a_writer_is_hashed_again_and_used(trees):
    """A snapshot that is made meanwhile changes the ctime of all its files."""
    image = Image(trees, 20 * MIB)
    os.link(image.old / "sub/image", image.old.with_name("another name"))
    with (image.old / "sub/image").open("r+b"):
        outcome = transfer(trees, link_dest=[str(image.old)], streams=2)
    expect_same(trees, outcome)
    assert outcome["bytes_sent"] <= image.changed + 40 * BLOCK and outcome["bytes_from_basis"]
