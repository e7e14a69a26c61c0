# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers with ``link_dest``: an older snapshot shares files with the new one, and never changes."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._model.paths import escape
from ansible_collections.longhaul.fleet.tests.support import faulty, rsync_pair
from ansible_collections.longhaul.fleet.tests.support.compare import differences, recorded
from ansible_collections.longhaul.fleet.tests.support.disk_image import CannotMount, disk_image
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ALL, Pair, settings

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
needs_sshd = pytest.mark.skipif(SSHD is None or os.geteuid() != 0, reason="needs sshd, and root for owners")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to other users")
METHODS = ["stream", "tar_nc", pytest.param("scp", marks=needs_sshd), pytest.param("sftp", marks=needs_sshd)]
LARGE = b"large" * 200_000


class Snapshots:
    """A source, an older snapshot of it, and the folder of the next one."""

    def __init__(self, trees: tuple[Path, Path, Path], method: str) -> None:
        self.source, self.new, self._work = trees
        self.old = self.new.with_name("old")
        self._method = method
        (self.source / "sub").mkdir()
        (self.source / "small").write_text("small")
        (self.source / "sub" / "large").write_bytes(LARGE)
        os.link(self.source / "small", self.source / "sub" / "second name")
        (self.source / "link").symlink_to("small")
        os.mkfifo(self.source / "fifo")
        self.old.mkdir()
        outcome = self._pair(self.old, link_dest=[]).run()
        assert outcome.get("errors") == [], outcome

    def _pair(self, dest: Path, **changes) -> Pair:
        pair = Pair(self._work, self.source, dest, settings(self._method, encrypt=False, **changes))
        if self._method in ("scp", "sftp"):
            pair.use_ssh()
        return pair

    def take(self, **changes) -> dict:
        """Transfer into the new snapshot."""
        outcome = self._pair(self.new, **{"link_dest": [str(self.old)], **changes}).run()
        assert outcome.get("errors") == [], outcome
        return outcome


@pytest.fixture(name="snapshots", params=METHODS)
def _snapshots(request, trees):
    return Snapshots(trees, request.param)


def test_what_the_older_snapshot_has_as_well_is_not_listed_as_a_change(snapshots):
    (snapshots.source / "sub" / "large").write_bytes(b"other" + LARGE)
    (snapshots.source / "new").write_text("new")
    (snapshots.source / "fifo").rename(snapshots.source / "sub" / "moved")
    predicted, done = snapshots.take(check=True), snapshots.take()
    for outcome in (predicted, done):
        listed = {line.split(" ", 1)[1] for line in outcome["changes"] if not line.endswith("/")}
        assert listed - {"."} == {"new", "sub/large", "sub/moved"}
        assert outcome["changes_total"] == len(outcome["changes"]) and outcome["files_created"] > 5
    assert differences(snapshots.source, snapshots.new) == []


@pytest.mark.often(2)
@needs_root
def test_an_older_snapshot_stays_as_it_is_when_attributes_change(snapshots):
    snapshots.take()
    assert (snapshots.new / "small").samefile(snapshots.old / "small")
    before = recorded(snapshots.old)
    for name in ("small", "sub/large", "fifo"):
        os.chmod(snapshots.source / name, 0o4711 if name != "fifo" else 0o640)
        os.chown(snapshots.source / name, 1234, 4321)
    os.chmod(snapshots.source / "small", 0o4711)
    os.setxattr(snapshots.source / "small", "user.x", b"new")
    os.chown(snapshots.source / "link", 1234, 4321, follow_symlinks=False)
    predicted = snapshots.take(check=True)
    assert differences(before, snapshots.old) == []
    done = snapshots.take()
    assert differences(before, snapshots.old) == []
    assert differences(snapshots.source, snapshots.new) == []
    assert done["bytes_sent"] == 0
    for name in ("files_created", "files_updated", "files_deleted", "attributes_changed"):
        assert predicted[name] == done[name]
    assert not snapshots.take()["changed"]


def test_what_is_not_preserved_stays_as_it_is_when_a_copy_is_made(trees):
    snapshots = Snapshots(trees, "stream")
    snapshots.take()
    os.setxattr(snapshots.old / "sub" / "large", "user.mine", b"1")  # of the shared file
    before = recorded(snapshots.old)
    shared = (snapshots.new / "sub" / "large").stat()
    os.chmod(snapshots.source / "sub" / "large", 0o640)
    snapshots.take(preserve=["permissions", "sparse"])
    now = (snapshots.new / "sub" / "large").stat()
    assert differences(before, snapshots.old) == []
    assert now.st_mode & 0o7777 == 0o640 and now.st_ino != shared.st_ino
    assert (now.st_uid, now.st_gid, now.st_mtime_ns) == (shared.st_uid, shared.st_gid, shared.st_mtime_ns)
    assert os.getxattr(snapshots.new / "sub" / "large", "user.mine") == b"1"


@pytest.mark.parametrize("method", ["stream", "tar_nc"])
def test_what_is_there_with_another_content_gives_way_to_the_older_file(trees, method):
    snapshots = Snapshots(trees, method)
    before = recorded(snapshots.old)
    for name in ("small", "sub/second name"):  # files of their own, of the same size and time
        (snapshots.new / name).parent.mkdir(exist_ok=True)
        (snapshots.new / name).write_text("SMALL")
        shutil.copystat(snapshots.source / name, snapshots.new / name)
    predicted = snapshots.take(check=True, checksum=True)
    done = snapshots.take(checksum=True)
    assert differences(snapshots.source, snapshots.new) == [] == differences(before, snapshots.old)
    assert (snapshots.new / "sub/second name").samefile(snapshots.old / "small")
    assert predicted["bytes_sent"] == done["bytes_sent"] == 0


@pytest.mark.often(2)
def test_contents_that_change_leave_an_older_snapshot_alone(snapshots):
    snapshots.take()
    before = recorded(snapshots.old)
    (snapshots.source / "small").write_text("other")
    (snapshots.source / "sub" / "large").write_bytes(LARGE + b"more")
    snapshots.take(preserve=ALL)
    assert differences(before, snapshots.old) == []
    assert differences(snapshots.source, snapshots.new) == []


def test_writing_in_place_leaves_an_older_snapshot_alone(trees):
    """No plan has both options; a second transfer into a tree with files of older ones has this one alone."""
    snapshots = Snapshots(trees, "stream")
    snapshots.take()
    large = snapshots.source / "sub" / "large"
    for contents, changes in ((b"L" + LARGE[1:], {}), (b"l" + LARGE[1:-1], {"link_dest": []})):
        assert (snapshots.new / "sub" / "large").samefile(snapshots.old / "sub" / "large")
        before, inode = recorded(snapshots.old), (snapshots.old / "sub" / "large").stat()
        large.write_bytes(contents)
        large.chmod(0o600)
        snapshots.take(inplace=True, **changes)
        after = (snapshots.old / "sub" / "large").stat()
        assert differences(before, snapshots.old) == []
        assert (after.st_ino, after.st_mode, after.st_mtime_ns) == (inode.st_ino, inode.st_mode, inode.st_mtime_ns)
        assert differences(snapshots.source, snapshots.new) == []
        (snapshots.new / "sub" / "large").unlink()
        os.link(snapshots.old / "sub" / "large", snapshots.new / "sub" / "large")


@pytest.mark.often(2)
def test_what_is_excluded_is_sent_whole_and_the_rest_is_linked(snapshots):
    for name in ("small", "sub/large"):
        damage(snapshots.old / name)
    (snapshots.source / "apart").write_text("apart")
    shutil.copy2(snapshots.source / "apart", snapshots.old / "apart")
    before = recorded(snapshots.old)
    done = snapshots.take(link_dest_exclude=["small", "sub/second name", "sub/large", "no longer there"])
    assert differences(snapshots.source, snapshots.new) == [] == differences(before, snapshots.old)
    assert (snapshots.new / "apart").samefile(snapshots.old / "apart")
    assert (done["bytes_sent"], done["bytes_from_basis"]) == (len("small") + len(LARGE), 0)


@pytest.mark.skipif(bool(faulty.why_not()), reason=faulty.why_not())
def test_an_older_file_that_a_bad_disk_cannot_read_is_sent(trees):
    snapshots = Snapshots(trees, "stream")
    mounted = snapshots.old.with_name("mounted")
    mounted.mkdir()
    faults = (faulty.fault("read", "small", errno.EIO), faulty.fault("read", "large", errno.EIO, after=4096))
    with faulty.mounted(snapshots.old, mounted, *faults):
        snapshots.take(link_dest=[str(mounted)], checksum=True)
        (snapshots.source / "sub" / "large").write_bytes(LARGE[:-1] + b"!")
        snapshots.take(link_dest=[str(mounted)], checksum=True)
    assert differences(snapshots.source, snapshots.new) == []


@pytest.mark.parametrize(
    ("method", "connect", "streams"),
    [("rsync", "push", 1), ("rsync", "pull", 1), ("rsync", "push", 2), ("rsync", "pull", 2), ("rsyncd", "pull", 1)],
)
def test_rsync_sends_what_is_excluded(tmp_path, method, connect, streams):
    pair = rsync_pair.Pair(tmp_path)
    old = tmp_path / "old"
    names = ("plain", "star * [x]", "# comment", "new\nline", "d/deep")
    (pair.source / "d").mkdir()
    for name in names:
        (pair.source / name).write_text("0123456789")
        os.link(pair.source / name, pair.source / f"{name} second")
    (pair.source / "d" / "large").write_bytes(LARGE)
    (pair.source / "d" / "kept").write_text("kept")
    shutil.copytree(pair.source, old, symlinks=True)
    for name in names:
        os.unlink(old / f"{name} second")
        os.link(old / name, old / f"{name} second")
        damage(old / name)
    damage(old / "d" / "large")
    before = recorded(old)
    exclude = [escape(os.fsencode(name)) for name in (*names, "d/large", "gone")]
    exclude += [escape(os.fsencode(f"{name} second")) for name in names]
    (pair.dest / "extra").write_text("x")
    try:
        given = {"link_dest": [str(old)], "link_dest_exclude": exclude, "delete": True, "streams": streams}
        outcome = pair.over(method, connect, **given)
        assert (outcome.failure, outcome.errors) == ("", [])
        assert differences(pair.source, pair.dest) == [] == differences(before, old)
        assert (pair.dest / "d" / "kept").samefile(old / "d" / "kept")
        assert outcome.bytes_sent == len(LARGE) + 10 * len(names) and outcome.bytes_from_basis == 0
        assert (outcome.files_deleted, outcome.files_total) == (1, len(recorded(pair.source)))
        assert not pair.over(method, connect, **given).changed
    finally:
        pair.close()


def damage(path: Path) -> None:
    """Change a byte of a file, and neither its size nor its times."""
    status = path.stat()
    with path.open("r+b") as file:
        file.write(b"#")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


MOST = 65_000  # names of a file on ext4


@pytest.fixture(name="full")
def _full(tmp_path):
    """Return a source, an empty destination, a folder for the jobs, and what uses up the links of the older file."""
    if os.geteuid() != 0:
        pytest.skip("cannot run here: mounts")
    source = tmp_path / "source"
    source.mkdir()
    try:
        with disk_image(tmp_path, "ext4", 256 << 20) as mounted:
            for name in ("older", "dest", "others"):
                (mounted / name).mkdir()

            def fill(names: str, free: int) -> Path:
                for folder in (source, mounted / "older"):
                    (folder / "a").write_bytes(b"x" * 1000)
                    os.utime(folder / "a", ns=(10**18, 10**18))
                    for name in names[1:]:
                        os.link(folder / "a", folder / name)
                for number in range(MOST - len(names) - free):
                    os.link(mounted / "older" / "a", mounted / "others" / str(number))
                return mounted / "dest"

            yield source, tmp_path / "work", fill
    except CannotMount as error:
        pytest.skip(f"cannot run here: {error}")


@pytest.mark.often(2)
@pytest.mark.parametrize(("names", "free"), [("a", 0), ("abc", 0), ("abc", 1), ("abc", 2)])
def test_a_file_that_can_have_no_more_names_is_copied(full, names, free):
    source, work, fill = full
    dest = fill(names, free)
    plan = settings("stream", encrypt=False, link_dest=[str(dest.with_name("older"))])
    outcome = Pair(work, source, dest, plan).run()
    assert outcome["errors"] == [] and outcome["bytes_sent"] == 0
    assert differences(source, dest, ignore=("mtime",)) == []
    assert not Pair(work, source, dest, plan).run()["changed"]
    assert (dest.with_name("older") / "a").stat().st_nlink == MOST - free


def test_one_that_an_earlier_run_left_without_its_other_names_gets_them(full):
    source, work, fill = full
    dest = fill("abc", 1)
    os.link(dest.with_name("older") / "a", dest / "a")
    outcome = Pair(work, source, dest, settings("stream", encrypt=False)).run()
    assert outcome["errors"] == [] and differences(source, dest, ignore=("mtime",)) == []
