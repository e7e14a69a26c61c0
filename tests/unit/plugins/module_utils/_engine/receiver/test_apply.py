# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the destination's end puts in place reaches no other file, though the owner of the folder exchanges names."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import subprocess
import time

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver import incoming_file, partial_file
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.apply import Applier
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.decide import Action, Do, EntryFacts
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.link_dest import LinkDest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.new_file import copy_file
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import FIFO
from ansible_collections.longhaul.fleet.plugins.module_utils._tree import metadata
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.compare import ATTRIBUTES, UPDATE
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.dirfd import Root
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.inode import may_have_writer
from ansible_collections.longhaul.fleet.tests.support.swapper import HAS_EXCHANGE, USER, replacing
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import settings

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not HAS_EXCHANGE, reason="cannot run here: it needs root, and a C library with renameat2"
)
SECONDS, PATIENCE = 3.0, 60.0  # in which no harm must be done; in which it must show where names are used


@pytest.fixture(name="dest")
def _dest(tmp_path):
    folder = tmp_path / "dest"
    folder.mkdir()
    return folder


@pytest.fixture(name="applier")
def _applier(tmp_path, dest):
    """Return what puts entries in place below a destination."""
    (tmp_path / "job").mkdir()
    context = Context("dest", "serve", os.fsencode(dest), settings("stream"), str(tmp_path / "job"))
    with Root(os.fsencode(dest)) as root, contextlib.closing(Applier(context, root, Outcome())) as made:
        yield made
    context.staged.close()


def in_place(applier, entry):
    """Make a special file as it was made before: in its place, where its name is looked up again."""
    with contextlib.suppress(FileNotFoundError):
        applier.root.remove(entry.path)
    applier.root.make_special(entry.path, entry)
    parent, name = applier.root.open_parent(entry.path)
    os.chown(name, 0, 0, dir_fd=parent, follow_symlinks=False)
    metadata.chmod(parent, name, entry.mode)


def as_now(applier, entry):
    applier.do(applier.decider.decide(entry, EntryFacts(applier.entry_at(entry.path))), entry)


@needs_root
@pytest.mark.parametrize(("make", "harms"), [(as_now, False), (in_place, True)], ids=["staged", "in its place"])
def test_a_special_file_is_complete_before_it_has_its_name(applier, dest, make, harms):
    """Its owner would get a set-id program of root's, with what he wrote into it."""
    (dest / "evil").write_text("evil")
    (dest / "evil").chmod(0o755)
    os.chown(dest / "evil", USER, USER)
    (dest / "evil").rename(dest.parent / "kept")
    os.link(dest.parent / "kept", dest / "evil")
    wanted = applier.root.lstat(b"evil")._replace(path=b"fifo", type=FIFO, mode=0o4755, uid=0, gid=0, size=0, nlink=1)
    kept = os.open(dest.parent / "kept", os.O_RDONLY)
    end, count, harmed = time.monotonic() + (PATIENCE if harms else SECONDS), 0, False
    with replacing(dest, "fifo", "evil"):
        while time.monotonic() < end and not harmed:
            with contextlib.suppress(OSError):
                make(applier, wanted)
            status = os.fstat(kept)
            harmed, count = (status.st_uid, stat.S_IMODE(status.st_mode)) != (USER, 0o755), count + 1
    os.close(kept)
    assert harmed == harms and (harmed or count > 20)


def test_a_copy_is_made_of_what_was_compared(applier, dest):
    (dest / "file").write_text("file")
    found = applier.root.lstat(b"file")
    (dest / "secret").write_text("root's own")
    (dest / "secret").rename(dest / "file")
    for call in (
        lambda: copy_file(applier.root, found, applier.temporary_fd, b"copy"),
        lambda: applier.root.open_file(b"file", found),
        lambda: incoming_file.InPlace(applier.root, found, found),
        lambda: applier.root.hard_link(found, b"name"),
        lambda: applier.do(Action(Do.SET_ATTRIBUTES, found=found), found._replace(mode=0o640)),
    ):
        with pytest.raises(OSError, match="something else took its place"):
            call()
    assert sorted(path.name for path in dest.iterdir() if not path.name.startswith(".")) == ["file"]
    assert os.listdir(applier.temporary_fd) == []
    assert (dest / "file").stat().st_mode & 0o777 != 0o640


def test_an_older_file_that_was_exchanged_is_not_linked(applier, dest, tmp_path):
    older = tmp_path / "older"
    older.mkdir()
    (older / "file").write_text("file")
    with contextlib.closing(LinkDest([os.fsencode(older)], (), applier)) as link_dest:
        entry = Root(os.fsencode(older)).lstat(b"file", xattrs=True)
        known = link_dest.find(entry)
        (older / "other").write_text("other")
        (older / "other").rename(older / "file")
        assert not link_dest.try_link(entry, EntryFacts(None, older=known))
    assert not (dest / "file").exists() and os.listdir(applier.temporary_fd) == []


@needs_root
def test_a_first_name_that_another_user_replaced_gets_no_further_ones(applier, dest):
    (dest / "first").write_text("program")
    entry = applier.root.lstat(b"first", xattrs=True)._replace(path=b"second", nlink=2)
    os.chown(dest / "first", USER, USER)  # it is another's now
    refusal = applier.decider.decide_link(entry, applier.root.lstat(b"first"), EntryFacts(None), is_new=True)
    assert refusal.do == Do.REFUSE and "something else took its place" in str(refusal.error)
    os.chown(dest / "first", 0, 0)
    applier.do(applier.decider.decide_link(entry, applier.root.lstat(b"first"), EntryFacts(None), is_new=True), entry)
    assert (dest / "second").samefile(dest / "first")


def test_a_copy_keeps_holes(applier, dest):
    with open(dest / "sparse", "wb") as stream:
        stream.truncate(8 << 20)
        stream.seek(4 << 20)
        stream.write(b"data" * 1024)
    found = applier.root.lstat(b"sparse")
    copy_file(applier.root, found, applier.temporary_fd, b"copy")
    status = os.stat(b"copy", dir_fd=applier.temporary_fd)
    with open(os.open(b"copy", os.O_RDONLY, dir_fd=applier.temporary_fd), "rb") as stream:
        assert stream.read() == (dest / "sparse").read_bytes()
    assert status.st_blocks <= found.blocks + 64


@pytest.mark.parametrize("journal", [False, True])
@pytest.mark.parametrize("kind", ["fifo", "link", "second name", "folder"])
def test_a_partial_file_that_the_transfer_did_not_make_gives_way(applier, dest, kind, journal):
    folder = dest.parent / "partial"
    folder.mkdir()
    (dest.parent / "foreign").write_text("foreign")
    entry = applier.root.lstat(b"")._replace(path=b"big", size=5)
    places = [folder / os.fsdecode(partial_file.partial_name(entry) + end) for end in (b"", partial_file.JOURNAL)]
    for place in places:
        if kind == "fifo":
            os.mkfifo(place)
        elif kind == "link":
            place.symlink_to(dest.parent / "foreign")
        elif kind == "folder":
            place.mkdir()
        else:
            os.link(dest.parent / "foreign", place)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    partial = partial_file.Partial(fd, entry, journal)
    os.pwrite(partial.fd, b"12345", 0)
    partial.note(0, 5)
    partial.close(complete=False)
    assert places[0].read_bytes() == b"12345" and stat.S_ISREG(places[0].lstat().st_mode)
    if journal:
        again = partial_file.Partial(fd, entry, journal)
        assert again.have == [(0, 5)]
        again.close(complete=True)
    os.close(fd)
    assert (dest.parent / "foreign").read_text() == "foreign"


def make_of_user(dest, name, content=b"file", mode=0o666):
    """Make a file of another user, and return it as it is to be."""
    (dest / name).write_bytes(content)
    (dest / name).chmod(mode)
    os.chown(dest / name, USER, USER)
    with Root(os.fsencode(dest)) as root:
        found = root.lstat(os.fsencode(name), xattrs=True)
    return found, found._replace(uid=0, gid=0, mode=0o644)


@needs_root
def test_a_file_that_was_taken_over_looks_different_until_it_was_compared(applier, dest):
    """Else the run after one that was interrupted would take it for what it looks like."""
    found, entry = make_of_user(dest, "file")
    taken = applier.take_over(entry, found)
    assert (taken.uid, taken.ino, taken.mode & 0o022) == (0, found.ino, 0)
    assert not applier.is_unchanged(entry) and applier.decider.compare_entry(entry, taken).action == UPDATE
    applier.do(applier.decider.decide(entry, EntryFacts(taken, before=found, equal=True)), entry)
    assert applier.is_unchanged(entry) and (dest / "file").stat().st_ino == found.ino


@needs_root
def test_a_file_that_its_owner_holds_open_stays_his(applier, dest, monkeypatch):
    found, entry = make_of_user(dest, "file", mode=0o664)
    with open(dest / "file", "r+b"):
        assert applier.take_over(entry, found) is None
        assert applier.root.lstat(b"file", xattrs=True)._replace(ctime_ns=0) == found._replace(ctime_ns=0)
    monkeypatch.delattr(fcntl, "F_SETLEASE")  # as on FreeBSD
    assert applier.take_over(entry, found) is None
    assert applier.root.lstat(b"file", xattrs=True)._replace(ctime_ns=0) == found._replace(ctime_ns=0)


@needs_root
def test_who_opens_a_file_while_its_lease_is_held_ends_nothing(dest):
    """The signal for that ends a process by default."""
    (dest / "file").write_text("file")
    fd = os.open(dest / "file", os.O_RDONLY)
    end = time.monotonic() + 1
    with subprocess.Popen(["sh", "-c", f"while :; do : >> {dest}/file; done"]) as writer:
        while time.monotonic() < end:
            may_have_writer(fd)
        writer.kill()
    os.close(fd)


@needs_root
@pytest.mark.parametrize("mode", [0o777, 0o755])
def test_a_directory_has_its_owner_before_anything_arrives_in_it(applier, dest, mode):
    """Its owner before could exchange what arrives."""
    (dest / "folder").mkdir()
    (dest / "folder").chmod(mode)
    os.chown(dest / "folder", USER, USER)
    found = applier.entry_at(b"folder")
    entry = found._replace(uid=0, gid=0, mode=0o755, mtime_ns=1)
    action = applier.decider.decide(entry, EntryFacts(found))
    applier.do(action, entry)
    status = (dest / "folder").stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (0, 0, 0o755)
    assert action.verdict.action == ATTRIBUTES
