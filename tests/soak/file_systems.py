# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Transfers and backups on every file system that this machine can mount, and across mounts, as a matrix.

Each cell is a step of a method on a file system: a first run, a rerun that must have nothing to do, changed files, a
deletion, a rerun after a kill, and with some methods two backups that are checked and pruned. It is right, refused with
a reason (which the result names), or wrong. Everything is mounted in a mount namespace of this process alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

from ansible_collections.longhaul.fleet.plugins.module_utils._job.state import destination_holder, source_reader
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.actions import Holders, do_action
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.tests.support.compare import differences

from .case import Case
from .hosts import ORDINARY, ROOT, Host, User
from .judge import FAILURES, SPEC, Pair
from .scale import Say
from .tree import Tree

METHODS = ("stream", "rsync", "rsyncd", "tar_nc", "scp", "sftp")
BACKED_UP = ("stream", "rsync")
SECOND = 10**9
TIME = 1_700_000_001 * SECOND + 123_456_789
_SIZE = 512 << 20  # bytes of a disk
_KILLED_AT = (3, 9, 20)  # changes of the disk after which a destination is killed
_NAMESPACE, _PRIVATE = 0x00020000, 0x00044000  # CLONE_NEWNS; MS_PRIVATE | MS_REC
_MTIME = re.compile(r": mtime: (-?\d+) != (-?\d+)$")
_COARSE = ("ext4 -I 128", "zfs-fuse, data set")  # whose times are whole seconds
_DISKS = {
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "ext4 -I 128": ["mkfs.ext4", "-q", "-F", "-I", "128"],
    "xfs": ["mkfs.xfs", "-q", "-m", "reflink=1"],
    "xfs, no reflinks": ["mkfs.xfs", "-q", "-m", "reflink=0"],
    "btrfs, subvolume": ["mkfs.btrfs", "-q"],
}


class CannotRun(Exception):
    """This machine cannot make such a file system."""


@dataclass
class Place:
    """Where the trees of one method are on one file system."""

    source: Path
    dest: Path
    repository: Path | None = None  # on the same file system, where that can hold one


@dataclass
class Ground:
    """One file system, or one way to mount several. ``make`` gives a place for a method, mounted for a block."""

    name: str
    make: Callable[[Path, contextlib.ExitStack], Place]
    user: User = ROOT
    refuses: str = ""  # a pattern of the reason for which a transfer fails in part, as it should


@dataclass
class Matrix:
    """What became of each cell."""

    cells: dict[tuple[str, str, str], str] = field(default_factory=dict)  # ground, method, step: right, refused: ...

    def counts(self) -> Counter[str]:
        """Return how many cells are right, refused, wrong and cannot run here."""
        return Counter(verdict.partition(":")[0] for verdict in self.cells.values())

    def lines(self) -> list[str]:
        """Return the matrix as a table, then what is not right."""
        grounds = list(dict.fromkeys(ground for ground, _method, _step in self.cells))
        shown = [f"{'':26}" + "".join(f"{method:>10}" for method in METHODS)]
        for ground in grounds:
            row = [self._cell(ground, method) for method in METHODS]
            shown.append(f"{ground:26}" + "".join(f"{one:>10}" for one in row))
        left = [f"{' / '.join(cell)}: {verdict}" for cell, verdict in self.cells.items() if verdict != "right"]
        counts = self.counts()
        total = f"{len(self.cells)} cells: " + ", ".join(
            f"{counts[one]} {one}" for one in ("right", "refused", "wrong")
        )
        return [*shown, *left, total + (f", {counts['cannot']} that cannot run here" if counts["cannot"] else "")]

    def _cell(self, ground: str, method: str) -> str:
        found = Counter(v.partition(":")[0] for (g, m, _step), v in self.cells.items() if (g, m) == (ground, method))
        letters = (("right", "ok"), ("refused", "ref"), ("wrong", "WRONG"), ("cannot", "-"))
        return " ".join(f"{found[name]}{letter}" for name, letter in letters if found[name]) or "."


def run(only: list[str], methods: list[str], say: Say) -> Matrix:
    """Run all, or the grounds and methods that are named; in a mount namespace of its own."""
    _own_namespace()
    matrix = Matrix()
    for ground in GROUNDS:
        if only and ground.name not in only:
            continue
        for method in methods or METHODS:
            started = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="soak-fs-") as folder, contextlib.ExitStack() as held:
                work = Path(folder)
                work.chmod(0o755)
                try:
                    place = ground.make(work, held)
                except CannotRun as error:
                    matrix.cells[ground.name, method, "all"] = f"cannot: {error}"
                    break
                _steps(matrix, ground, method, place, work)
            say(f"{ground.name}, {method}: {matrix._cell(ground.name, method)}, {time.monotonic() - started:.0f} s")
    return matrix


def _own_namespace() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NAMESPACE) or libc.mount(b"none", b"/", None, _PRIVATE, None):
        raise OSError(ctypes.get_errno(), "no mount namespace of its own")


# The steps of a method


def _steps(matrix: Matrix, ground: Ground, method: str, place: Place, work: Path) -> None:
    _fill(place.source)
    for path in (place.source, place.dest):
        if ground.user.uid:
            _give(path, ground.user)
    pair = Pair(work / "hosts", Case({}, Tree(), Tree(), Tree(), ground.user))
    options = _options(method, place)

    def step(name: str, do: Callable[[], str]) -> None:
        try:
            wrong = do()
        except (Refusal, Refused, *FAILURES) as error:
            is_expected = bool(ground.refuses and re.search(ground.refuses, str(error)))
            matrix.cells[ground.name, method, name] = f"{'refused' if is_expected else 'wrong'}: {str(error)[:300]}"
            return
        except (OSError, subprocess.CalledProcessError, AssertionError) as error:
            wrong = repr(error)
        matrix.cells[ground.name, method, name] = f"wrong: {wrong}" if wrong else "right"

    coarse = ground.name in _COARSE

    def unequal() -> str:
        return _unequal(place, coarse, method.startswith("rsync"))

    def same(**more: Any) -> dict[str, Any]:
        return pair.transfer({**options, **more})

    def first() -> str:
        same()
        return unequal()

    def rerun() -> str:
        result = same()
        sent = {name: result[name] for name in ("changed", "bytes_sent") if result[name]}
        return f"a rerun: {sent} {result['changes'][:3]}" if sent else ""

    def changed() -> str:
        _edit(place.source)
        if ground.user.uid:
            _give(place.source, ground.user)
        same()
        return unequal() or rerun()

    def delete() -> str:
        shutil.rmtree(place.source / "data/old")
        (place.source / "a").unlink()
        result = same(delete=True)
        return unequal() or ("" if result["files_deleted"] else "nothing was deleted")

    def resume() -> str:
        for number, changes in enumerate(_KILLED_AT):
            (place.source / "data/large").write_bytes(os.urandom(3 << 20))
            (place.source / f"data/again{number}").write_bytes(os.urandom(200_000))
            at = TIME + (number + 9) * SECOND  # a change within one second is not seen where times are coarse
            os.utime(place.source / "data/large", ns=(at, at))
            if ground.user.uid:
                _give(place.source, ground.user)
            pair.hosts[1].let_next_job_die(changes)
            with contextlib.suppress(Refusal, *FAILURES):
                same()
            pair.hosts[1].let_next_job_die(None)
            pair.hosts[1].kill_job()
            same()
            wrong = unequal()
            if wrong:
                return f"killed after {changes} changes: {wrong}"
        return ""

    try:
        for name, do in (
            ("first", first),
            ("rerun", rerun),
            ("changed", changed),
            ("delete", delete),
            ("kill", resume),
        ):
            step(name, do)
        if place.repository is not None and method in BACKED_UP:
            step("backup", lambda: _back_up(pair.hosts, pair, options, place, coarse))
    finally:
        pair.close()


def _options(method: str, place: Place) -> dict[str, Any]:
    given = {name: option.get("default") for name, option in SPEC.items()}
    own = {"src": f"{place.source}/", "dest": str(place.dest), "method": method, "encryption": "auto", "trust": "full"}
    return {**given, **own, "src_host": "one", "dest_host": "two", "timeout": 60}


def _fill(source: Path) -> None:
    """Make a tree whose times all have a fraction, with something of each kind below ``data``."""
    for name in ("a", "data/b", "data/old/c", "data/old/deep/d", "data/new/e", "data/own/f"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    os.link(source / "data/b", source / "data/new/second name")
    (source / "data/link").symlink_to("b")
    os.mkfifo(source / "data/fifo")
    (source / "data/large").write_bytes(os.urandom(3 << 20))
    with open(source / "data/sparse", "wb") as file:
        file.truncate(4 << 20)
        file.write(b"x")
    _age(source)


def _age(source: Path) -> None:
    for path in sorted((source, *source.rglob("*")), reverse=True):
        os.utime(path, ns=(TIME, TIME), follow_symlinks=False)


def _edit(source: Path) -> None:
    (source / "data/b").write_text("changed")
    with (source / "data/large").open("r+b") as file:
        file.seek(1 << 20)
        file.write(b"changed")
    (source / "data/old/c").chmod(0o600)
    (source / "data/link").unlink()
    (source / "data/link").symlink_to("elsewhere")
    (source / "data/added").write_text("added")


def _give(path: Path, user: User) -> None:
    for one in (path, *path.rglob("*")):
        if one.parent.name != "read" and not (one.is_mount() and one != path):
            os.chown(one, user.uid, user.gid, follow_symlinks=False)


def _unequal(place: Place, coarse: bool, fills_holes: bool = False) -> str:
    """Return what is not the same in both trees, or was left; times count as far as they are kept.

    ``fills_holes``: rsync copies a complete file to another mount as it is read.
    """
    found = []
    for line in differences(place.source, place.dest):
        if fills_holes and ": sparse: " in line:
            continue
        times = _MTIME.search(line)
        if coarse and times and int(times[1]) // SECOND == int(times[2]) // SECOND:
            continue
        found.append(line)
    found += [f"{path} was left" for path in place.dest.rglob(".longhaul-*")]
    return "; ".join(found[:5])


def _back_up(hosts: list[Host], pair: Pair, options: dict[str, Any], place: Place, coarse: bool) -> str:
    """Make two snapshots, the second with links, check them, and prune the first."""
    assert place.repository, "a place for backups"
    job = (str(place.repository), hosts[0].name, "data")
    holders = Holders(destination_holder, source_reader)
    trees = []
    for number in range(2):
        begun = do_action("begin", job, {"run": f"run {number}"}, holders).result
        link_dest = list(begun["link_dest"])
        sent = pair.transfer({**options, "dest": begun["path"], "link_dest": link_dest, "delete": True})
        do_action("finish", job, {"run": f"run {number}", "expected_entries": sent["files_total"]}, holders)
        trees.append(Path(begun["path"]).parent.parent / begun["name"] / "data")
        wrong = _unequal(Place(place.source, trees[-1]), coarse)
        if wrong:
            return f"snapshot {number}: {wrong}"
        file = place.source / "data/b"  # changes within its second, and keeps its size
        file.write_text("chAnged")
        os.utime(file, ns=(TIME, TIME + number + 1))
        time.sleep(1.1)  # or both had one name
    if not (trees[0] / "data/large").samefile(trees[1] / "data/large"):
        return "the second snapshot has files of its own that did not change"
    if (trees[0] / "data/b").read_text() == (trees[1] / "data/b").read_text():
        return "a change within a second is not in the second snapshot"
    checked = do_action("check", job, {"check_level": "contents"}, holders)
    if checked.failed:
        return checked.failed
    do_action("prune", job, {"keep": {"last": 1}}, holders)
    return "the first snapshot is still there" if trees[0].exists() else ""


# What is mounted where


def _mount(held: contextlib.ExitStack, place: Path, *options: str) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    _run("mount", *options, str(place))
    held.callback(_run, "umount", str(place))
    return place


def _run(*argv: str) -> None:
    path = f"{os.environ['PATH']}:/usr/local/sbin:/usr/sbin:/sbin"
    subprocess.run(argv, check=True, capture_output=True, env={**os.environ, "PATH": path})


def _disk(name: str) -> Callable[[Path, contextlib.ExitStack], Place]:
    """Return what puts the destination on a disk with a file system."""

    def make(work: Path, held: contextlib.ExitStack) -> Place:
        image = work / "disk.img"
        with image.open("wb") as file:
            file.truncate(_SIZE)
        try:
            _run(*_DISKS[name], str(image))
            disk = _mount(held, work / "disk", "-o", "loop", str(image))
        except (OSError, subprocess.CalledProcessError) as error:
            raise CannotRun(f"{name} cannot be made or mounted: {error}") from error
        place = _folders(work, disk)
        if name.startswith("btrfs"):
            _run("btrfs", "subvolume", "create", str(place.dest / "data"))
        return place

    return make


def _folders(work: Path, disk: Path, source: Path | None = None) -> Place:
    place = Place(source or work / "source", disk / "dest", disk / "backup")
    for path in (place.source, place.dest, disk / "backup"):
        path.mkdir(parents=True, exist_ok=True)
    (disk / "backup").chmod(0o700)
    return place


def _tmpfs(work: Path, held: contextlib.ExitStack) -> Place:
    return _folders(work, _mount(held, work / "disk", "-t", "tmpfs", "soak"))


def _overlay(work: Path, held: contextlib.ExitStack) -> Place:
    """Mount an overlay whose lower layer has some of the tree already."""
    base = _mount(held, work / "base", "-t", "tmpfs", "soak")
    for name in ("lower/dest/data/old", "upper", "work"):
        (base / name).mkdir(parents=True)
    (base / "lower/dest/data/b").write_text("lower")
    (base / "lower/dest/data/old/c").write_text("data/old/c")
    layers = f"lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/work"
    return _folders(work, _mount(held, work / "disk", "-t", "overlay", "-o", layers, "soak"))


def _zfs(work: Path, held: contextlib.ExitStack) -> Place:
    """Make a pool of zfs-fuse, with a data set for the destination and one inside it."""
    if shutil.which("zfs-fuse", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
        raise CannotRun("zfs-fuse is not installed: apt-get install zfs-fuse")
    daemon = subprocess.Popen(
        ["zfs-fuse", "--no-daemon"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"},
    )
    held.callback(daemon.wait)
    held.callback(daemon.terminate)
    image, pool = work / "pool.img", f"soak{os.getpid()}"
    with image.open("wb") as file:
        file.truncate(_SIZE)
    for attempt in range(50):
        try:
            _run("zpool", "create", "-m", str(work / "disk"), pool, str(image))
            break
        except subprocess.CalledProcessError as error:
            if attempt == 49:
                raise CannotRun(f"no pool can be made: {error.stderr!r}") from error
            time.sleep(0.2)
    held.callback(_destroy, pool)
    _run("zfs", "create", f"{pool}/dest")
    _run("zfs", "create", f"{pool}/dest/data")
    return _folders(work, work / "disk")


def _destroy(pool: str) -> None:
    """Destroy a pool, once nothing of it is in use any more."""
    for attempt in range(50):
        try:
            _run("zpool", "destroy", "-f", pool)
            return
        except subprocess.CalledProcessError:
            if attempt == 49:
                raise
            time.sleep(0.2)


def _inside_source(work: Path, held: contextlib.ExitStack) -> Place:
    place = _folders(work, work / "plain")
    _mount(held, place.source / "data", "-t", "tmpfs", "soak")
    return Place(place.source, place.dest)


def _inside_dest(work: Path, held: contextlib.ExitStack) -> Place:
    place = _folders(work, work / "plain")
    _mount(held, place.dest / "data", "-t", "tmpfs", "soak")
    return Place(place.source, place.dest)


def _bind_mounts(work: Path, held: contextlib.ExitStack) -> Place:
    place = _folders(work, work / "plain")
    for path in (place.source, place.dest):
        other = work / f"other-{path.name}"
        other.mkdir()
        _mount(held, path / "data", "--bind", str(other))
    return Place(place.source, place.dest)


def _read_only(work: Path, held: contextlib.ExitStack) -> Place:
    place = _folders(work, work / "plain")
    inner = _mount(held, place.dest / "data", "-t", "tmpfs", "soak")
    (inner / "b").write_text("old, and longer")
    _run("mount", "-o", "remount,ro", str(inner))
    return Place(place.source, place.dest)


def _of_another(work: Path, held: contextlib.ExitStack) -> Place:
    """Mount a file system whose root is another user's, with a folder of this one's inside."""
    place = _folders(work, work / "plain")
    inner = _mount(held, place.dest / "data", "-t", "tmpfs", "-o", "mode=755", "soak")
    (inner / "own").mkdir()
    os.chown(inner / "own", ORDINARY.uid, ORDINARY.gid)
    return Place(place.source, place.dest)


GROUNDS = (
    *(Ground(name, _disk(name)) for name in _DISKS),
    Ground("tmpfs", _tmpfs),
    Ground("overlay", _overlay),
    Ground("zfs-fuse, data set", _zfs),
    Ground("mount inside source", _inside_source),
    Ground("mount inside dest", _inside_dest),
    Ground("bind mounts in both", _bind_mounts),
    Ground("read-only mount", _read_only, refuses="Read-only file system"),
    Ground(
        "mount of another owner", _of_another, ORDINARY, refuses="[Pp]ermission denied|Operation not permitted|nologin"
    ),
)
