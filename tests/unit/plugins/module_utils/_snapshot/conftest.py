# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tests of snapshots share: a repository, a source, and a transfer between them that links what it can."""

from __future__ import annotations

import os
import shutil
import stat

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.begin import begin
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.finish import finish
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.repository import Series
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.suspicion import ChangeLimits
from ansible_collections.longhaul.fleet.plugins.module_utils._tree import content_hash

DAY = 86400
NOON = 1795262400  # 2026-11-21T12:00:00Z
FIRST, SECOND, THIRD = (names.name_of(NOON + day * DAY) for day in range(3))


def no_step(_name):
    """Do nothing."""


class Bench:
    """A source tree and the series that it is backed up to."""

    def __init__(self, top):
        self.source = top / "source"
        self.repository = top / "repository"
        self.source.mkdir()
        self.repository.mkdir()
        self.folder = self.repository / "web1" / "data"
        self.now = NOON
        self.on_step = no_step

    def series(self, create=True):
        series = Series(str(self.repository), "web1", "data", create=create)
        series.step = self.on_step
        return series

    def write(self, path, content, mtime=NOON - DAY):
        """Put a file into the source as programs do: beside its place, then renamed."""
        place = self.source / path
        place.parent.mkdir(parents=True, exist_ok=True)
        new = place.with_name(place.name + ".tmp")
        new.write_bytes(content)
        os.utime(new, (mtime, mtime))
        os.replace(new, place)

    def backup(self, run=None, exclude=True, shrink_limit=100, change_limit=100, **options):
        """Make a whole snapshot at ``now``, and let a day pass; gives what finish said.

        Without ``exclude`` the transfer is not told what it must not link.
        """
        run = run or f"run {self.now}"
        with self.series() as series, series.lock("test"):
            begun = begin(series, run, self.now)
            if not begun.finished:
                transfer(self.source, begun.path, begun.link_dest, begun.link_dest_exclude if exclude else ())
            series.step("transferred")
            done = finish(series, run, self.now, limits=ChangeLimits(shrink_limit, change_limit), **options)
        self.now += DAY
        return done

    def path(self, name, *parts):
        return self.folder.joinpath(name, *parts)

    def data(self, name):
        """Return {path: contents, target or None} of a snapshot."""
        return contents(self.path(name, "data"))

    def complete(self):
        with self.series() as series:
            return series.times()

    def names(self):
        """Return the names in the folder of the job, without the history."""
        return sorted(set(os.listdir(self.folder)) - {names.HISTORY})


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def transfer(source, dest, link_dest=(), exclude=()):
    """Make one tree like another; what is the same in a tree of link_dest is linked to it, as a transfer does it.

    Nothing is linked to the paths of ``exclude``.
    """
    source, dest = os.fspath(source), os.fspath(dest)
    for folder, folders, files in os.walk(dest, topdown=False):
        below = os.path.relpath(folder, dest)
        for name in folders + files:
            if not os.path.lexists(os.path.join(source, below, name)):
                gone = os.path.join(folder, name)
                shutil.rmtree(gone) if name in folders and not os.path.islink(gone) else os.unlink(gone)
    first = {}
    for folder, folders, files in os.walk(source):
        below = os.path.relpath(folder, source)
        os.makedirs(os.path.join(dest, below), exist_ok=True)
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in files + links:
            here, there = os.path.join(folder, name), os.path.join(dest, below, name)
            status = os.lstat(here)
            if os.path.lexists(there):
                if same(here, there):
                    first.setdefault((status.st_dev, status.st_ino), there)
                    continue
                os.unlink(there)
            is_left_out = os.path.normpath(os.path.join(below, name)) in exclude
            older = [os.path.join(tree, below, name) for tree in link_dest if not is_left_out]
            older = [path for path in older if os.path.lexists(path) and same(here, path)]
            known = first.setdefault((status.st_dev, status.st_ino), there)
            if known != there:
                os.link(known, there, follow_symlinks=False)
            elif older:
                os.link(older[0], there, follow_symlinks=False)
            elif stat.S_ISFIFO(status.st_mode):
                os.mkfifo(there)
            else:
                shutil.copy2(here, there, follow_symlinks=False)
    for folder, _folders, _files in os.walk(source, topdown=False):
        shutil.copystat(folder, os.path.join(dest, os.path.relpath(folder, source)))


def same(one, other):
    """Return the values of the quick check."""
    found = [os.lstat(path) for path in (one, other)]
    kinds = {stat.S_IFMT(status.st_mode) for status in found}
    if kinds == {stat.S_IFLNK}:
        return os.readlink(one) == os.readlink(other)
    return len(kinds) == 1 and len({(s.st_size, s.st_mtime_ns, s.st_mode) for s in found}) == 1


def contents(top):
    """Read a tree."""
    found = {}
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            below = os.path.relpath(path, top)
            if stat.S_ISLNK(mode):
                found[below] = os.readlink(path)
            elif stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    found[below] = file.read()
            else:
                found[below] = None
    return found


def rot(path):
    """Change a byte as a disk does: size and times stay."""
    status = os.stat(path)
    with open(path, "r+b") as file:
        byte = file.read(1)[0]
        file.seek(0)
        file.write(bytes([byte ^ 1]))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def hashed(monkeypatch):
    """Note which files are read for their hash."""
    read = []
    real = content_hash.hash_file

    def hash_file(root, path, *rest):
        read.append(path)
        return real(root, path, *rest)

    monkeypatch.setattr(content_hash, "hash_file", hash_file)
    return read


def records(bench, name):
    with bench.series() as series, series.snapshot(name) as snapshot, snapshot.manifest() as manifest:
        return {record.entry.path: record for record in manifest.records()}
