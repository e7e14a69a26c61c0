# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A state machine for hypothesis: edit, transfer, kill, run again. What fails is shrunk to the fewest steps.

As in a backup, the destination may become an older tree, beside which the next one begins; older trees never change.

A job is killed at a moment that is the same in each try: when it is about to make its n-th change of the disk.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.tests.support.compare import Found, recorded
from ansible_collections.longhaul.fleet.tests.support.hard_tree import remove_tree
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as reproducible
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from . import disk, options
from .case import SPEC, Case
from .grow import FAR_TIMES, TIMES, acl
from .hosts import ROOT, User
from .judge import FAILURES, Difference, Pair, only_names_of, tree_differences
from .tree import FIFO, FILE, FOLDER, SYMLINK, Inode, Tree

NAMES = (b"a", b"b", b"c", b"d", b"d/e", b"d/f", b"d/g", b"h", b"h/i")
SIZES = (0, 5, 8192, 262_144, 262_145, 1_100_000)
LARGE = 262_144  # bytes; of larger files, blocks that an older tree has are not sent
MOST_OLDER = 2  # older trees that a transfer is told of
SLACK = 16 * 1024  # bytes of a file's allocation
PATHS = st.sampled_from(NAMES)
CHANGES = st.integers(0, 40)  # of the disk, before a kill


class Transfers(RuleBasedStateMachine):
    """A source that changes, and a destination that follows it; ``user`` does the work."""

    user: User = ROOT
    pair: Pair | None = None  # the hosts, which all sequences share
    plain = ("stream", "stream", "tar_nc")
    counted = {"sequences": 0, "transfers": 0, "kills": 0, "older": 0, "from basis": 0}

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="soak-"))
        os.chmod(self.folder, 0o755)
        self.source, self.dest = self.folder / "s", self.folder / "d"
        self.older: list[tuple[Path, dict[bytes, Found]]] = []  # the newest last
        self.patched = 0
        self.tree = Tree()
        self.tree.add(b"", Inode(FOLDER, 0o755, self.user.uid, self.user.gid))
        self.dest.mkdir()
        for path in (self.folder, self.dest):
            os.chown(path, self.user.uid, self.user.gid)
        self.counted["sequences"] += 1

    # Edits

    def _room(self, path: bytes) -> bool:
        parent = path.rpartition(b"/")[0]
        if parent and (self.tree.at(parent) is None or self.tree.at(parent).kind != FOLDER):  # type: ignore[union-attr]
            self.tree.add(parent, self._inode(FOLDER, mode=0o755))
        return True

    def _inode(self, kind: str, **more: Any) -> Inode:
        return replace(Inode(kind, 0o644, self.user.uid, self.user.gid), **more)

    @rule(
        path=PATHS,
        size=st.sampled_from(SIZES),
        number=st.integers(1, 2),
        holes=st.integers(0, 3),
        when=st.integers(0, 9),
    )
    def write(self, path: bytes, size: int, number: int, holes: int, when: int) -> None:
        """A file, new or in place of what is there, which may be a folder."""
        self._room(path)
        data = {
            0: ((0, size, number),) if size else (),
            1: (),
            2: ((max(0, size - 1), min(size, 1), number),) if size else (),
            3: tuple((at, min(4096, size - at), number) for at in range(0, size, 16384)),
        }[holes]
        self.tree.add(path, self._inode(FILE, size=size, data=data, mtime=(*TIMES, *FAR_TIMES)[when % 8]))

    @precondition(lambda self: self.tree.paths(FILE))
    @rule(data=st.data(), at=st.integers(0, 40), number=st.integers(3, 5))
    def patch(self, data: st.DataObject, at: int, number: int) -> None:
        """A few bytes of a file, in place, with a time that no other file has."""
        paths = self.tree.paths(FILE)
        large = [path for path in paths if self.tree.at(path).size > LARGE]  # type: ignore[union-attr]
        path = data.draw(st.sampled_from(large or paths), "path")
        inode = self.tree.at(path)
        assert inode
        place = at * 32_000
        if place < inode.size:
            change = (place, min(4096, inode.size - place), number)
            self.patched += 1
            mtime = TIMES[0] + self.patched * 1_000_000_007
            self.tree.change(path, data=(*inode.data, change), mtime=mtime)

    @rule(path=PATHS, kind=st.sampled_from([FOLDER, SYMLINK, FIFO]))
    def other(self, path: bytes, kind: str) -> None:
        """What is no file, new or in place of what is there."""
        if kind == FOLDER and self.tree.at(path) and self.tree.at(path).kind == FOLDER:  # type: ignore[union-attr]
            return
        self._room(path)
        mode, target = {FOLDER: (0o755, b""), SYMLINK: (0o777, b"nowhere"), FIFO: (0o644, b"")}[kind]
        self.tree.add(path, self._inode(kind, mode=mode, target=target))

    @precondition(lambda self: self.tree.paths(FILE))
    @rule(data=st.data(), new=PATHS)
    def link(self, data: st.DataObject, new: bytes) -> None:
        """Another name of a file."""
        old = data.draw(st.sampled_from(self.tree.paths(FILE)), "old")
        if old != new and not old.startswith(new + b"/"):
            self._room(new)
            if old in self.tree.paths(FILE):  # which a folder may have taken the place of
                self.tree.link(old, new)

    @precondition(lambda self: self.tree.paths(FILE))
    @rule(data=st.data(), mode=st.sampled_from([None, 0o600]), when=st.sampled_from([None, 0, 5]))
    def own(self, data: st.DataObject, mode: int | None, when: int | None) -> None:
        """A file of its own where a name of another was: the same content, perhaps another mode or time."""
        path = data.draw(st.sampled_from(self.tree.paths(FILE)), "path")
        inode = self.tree.at(path)
        assert inode
        inode = replace(inode, mode=mode) if mode else inode
        self.tree.add(path, inode if when is None else replace(inode, mtime=TIMES[when]))

    @precondition(lambda self: self.tree.paths())
    @rule(
        data=st.data(),
        what=st.sampled_from(["remove", "mtime", "mode", "xattr", "acl", "rename"]),
        number=st.integers(0, 5),
    )
    def change(self, data: st.DataObject, what: str, number: int) -> None:
        """Something of an entry, or its name."""
        path = data.draw(st.sampled_from(self.tree.paths()), "path")
        inode = self.tree.at(path)
        assert inode
        if what == "remove":
            self.tree.remove(path)
        elif what == "mtime":
            self.tree.change(path, mtime=TIMES[number])
        elif what == "rename":
            new = NAMES[number]
            if not new.startswith(path + b"/") and not path.startswith(new + b"/") and new != path:
                self._room(new)
                if self.tree.at(path) == inode:
                    self.tree.rename(path, new)
        elif inode.kind in (FILE, FOLDER):
            if what == "mode":
                modes = (0o2755, 0o700, 0o750) if inode.kind == FOLDER else (0o4755, 0o2755, 0o600)
                self.tree.change(path, mode=modes[number % 3])
            else:
                name, value = (
                    ("user.note", b"x") if what == "xattr" else ("system.posix_acl_access", acl(4 + number % 4))
                )
                self.tree.change(path, xattrs=((name, value),))

    # Older trees

    @rule()
    def keep(self) -> None:
        """What is there becomes an older tree."""
        kept = self.folder / f"older-{len(self.older)}"
        self.dest.rename(kept)
        self.dest.mkdir()
        os.chown(self.dest, self.user.uid, self.user.gid)
        self.older.append((kept, recorded(kept)))
        self.counted["older"] += 1

    @rule(data=st.data(), size=st.sampled_from([300_000, 1_100_000]), at=st.integers(0, 9), number=st.integers(3, 5))
    def night(self, data: st.DataObject, size: int, at: int, number: int) -> None:
        """A backup, and a change of a large file after it: the next transfer finds its blocks in an older tree."""
        if not any(inode.size > LARGE for inode in map(self.tree.at, self.tree.paths(FILE)) if inode):
            self.write(b"large", size, 1, 0, 1)
        self.transfer("stream", True, False, "2")
        self.keep()
        self.patch(data, at, number)

    def _expect_older_as_they_were(self) -> None:
        for path, before in self.older:
            found = tree_differences(before, recorded(path))
            assert not found, f"{path.name} changed:\n" + "\n".join(str(one) for one in found)

    # Transfers

    def _options(self, **more: Any) -> dict[str, Any]:
        given: dict[str, Any] = {name: option.get("default") for name, option in SPEC.items()}
        older = [str(path) for path, _before in reversed(self.older[-MOST_OLDER:])]
        ends = {"src": f"{self.source}/", "dest": str(self.dest), "link_dest": older}
        return {**given, **ends, "encryption": "none", **more}

    def _on_disk(self) -> None:
        remove_tree(self.source)
        disk.make(self.tree, self.source)

    @rule(
        method=st.sampled_from(plain), delete=st.booleans(), checksum=st.booleans(), streams=st.sampled_from(["1", "2"])
    )
    def transfer(self, method: str, delete: bool, checksum: bool, streams: str) -> None:
        """It must end well, with the same at both ends, and then have nothing more to do."""
        assert self.pair
        self._on_disk()
        given = self._options(method=method, delete=delete, checksum=checksum, streams=streams, max_delete=10**6)
        self.counted["transfers"] += 1
        before = recorded(self.dest)
        try:
            self.counted["from basis"] += bool(self._when_free(given)["bytes_from_basis"])
        except FAILURES as error:
            if not delete and words_of_a_folder_in_the_way(str(error)):
                return
            raise AssertionError(f"the transfer failed: {error}") from error
        self._expect_the_same(before, delete, checksum)
        self._expect_older_as_they_were()
        before = recorded(self.dest)
        again = self.pair.transfer(given)
        assert not again["changed"] and not again["bytes_sent"], f"the second run: {again['changes']}"
        assert not tree_differences(before, recorded(self.dest)), tree_differences(before, recorded(self.dest))

    @rule(side=st.sampled_from(["source", "dest"]), changes=CHANGES, delete=st.booleans())
    def kill(self, side: str, changes: int, delete: bool) -> None:
        """One end dies in the middle; whatever that leaves, what comes next must end well."""
        assert self.pair
        self._on_disk()
        self.counted["kills"] += 1
        host = self.pair.hosts[0 if side == "source" else 1]
        host.let_next_job_die(changes if side == "dest" else changes * 3)
        try:
            self._when_free(self._options(method="stream", delete=delete, max_delete=10**6, streams="1", timeout=2))
        except FAILURES:
            pass
        finally:
            host.let_next_job_die(None)
        self._expect_older_as_they_were()

    def _when_free(self, given: dict[str, Any]) -> dict[str, Any]:
        """Transfer as soon as the side that was not killed has noticed it: until then other options are refused."""
        assert self.pair
        until = time.monotonic() + 90
        while True:
            try:
                return self.pair.transfer(given)
            except Refusal as error:
                if "is running already" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def _expect_the_same(self, before: dict[bytes, Found], delete: bool, checksum: bool) -> None:
        source, dest = recorded(self.source), recorded(self.dest)
        found = tree_differences(source, dest if delete else only_names_of(source, dest))
        found += [
            Difference("sparse", path, f"{dest[path].allocated} bytes allocated for {source[path].allocated}")
            for path in source.keys() & dest.keys()
            if dest[path].allocated > source[path].allocated + SLACK
        ]
        # A file with the size and time of the source's is not read, and its blocks are not rearranged
        earlier = [before, *(tree for _path, tree in self.older[-MOST_OLDER:])]
        skipped = {p for tree in earlier for p in source.keys() & tree.keys() if _looks_alike(source[p], tree[p])}
        found = [
            one
            for one in found
            if one.path not in skipped or (one.aspect != "sparse" and (one.aspect != "content" or checksum))
        ]
        assert not found, "\n".join(str(one) for one in found)

    def teardown(self) -> None:
        """Whatever happened: one more transfer, and the destination is the source."""
        try:
            self.transfer("stream", True, True, "1")
        finally:
            remove_tree(self.folder)
            shutil.rmtree(self.folder, ignore_errors=True)


def _looks_alike(a: Found, b: Found) -> bool:
    return (a.type, a.size, a.mtime) == (b.type, b.size, b.mtime)


def words_of_a_folder_in_the_way(message: str) -> bool:
    """Whether a transfer failed since a folder that is not empty has the place of what is no folder: rightly."""
    return "delete" in message and "director" in message


def run(count: int, seed: int | None = None, user: User = ROOT, steps: int = 12, shrink: bool = True) -> dict[str, int]:
    """Run so many sequences; gives what was done. Raises, with the fewest steps, where one fails."""
    folder = Path(tempfile.mkdtemp(prefix="soak-hosts-"))
    os.chmod(folder, 0o755)
    machine = type("Transfers", (Transfers,), {"user": user, "counted": dict.fromkeys(Transfers.counted, 0)})
    row = dict(options.DEFAULTS)
    machine.pair = Pair(folder, Case(row, Tree(), Tree(), Tree(), user))
    try:
        wanted = settings(
            max_examples=count,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            derandomize=False,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        )
        if seed is not None:
            machine = reproducible(seed)(machine)
        run_state_machine_as_test(machine, settings=wanted)
        return machine.counted
    finally:
        machine.pair.close()
        shutil.rmtree(folder, ignore_errors=True)
