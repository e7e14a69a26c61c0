# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A root whose files are served to fuzzed clients: whatever they say, no file is opened but those of the plan."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable

from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import ProtocolError
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy import shard_files, shard_list
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy.file_server import PeerPipe

PLANNED = 1000  # bytes of a file that a client may write
_SECRET = b"root:secret"
SHARD = 3
# What each file of the shard is at its place, and whether the server may open it there.
AT_SOURCE = (b"kept", b"folder/deep", b"link", b"fifo", b"folder", b"gone")
AT_DEST = (b"file", b"kept", b"link", b"twice", b"folder/new")
_OPENED: list[list[bytes]] = []  # a list for each session that is watched


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _OPENED and isinstance(arguments[0], (str, bytes)):
        _OPENED[-1].append(os.fsencode(arguments[0]))


class _Ground:
    """A root, and what is around it; both stay from one input to the next."""

    def __init__(self) -> None:
        self._held = tempfile.TemporaryDirectory()
        self.top = Path(self._held.name)
        self.root, outside, job = (self.top / name for name in ("root", "outside", "job"))
        for folder in (self.root / "folder", outside, job):
            folder.mkdir(parents=True)
        secret = outside / "secret"
        secret.write_bytes(_SECRET)
        for name in ("kept", "folder/deep", "twice"):
            (self.root / name).write_bytes(b"kept")
        os.link(self.root / "twice", outside / "twice")
        (self.root / "link").symlink_to(secret)
        os.mkfifo(self.root / "fifo")
        self.lists = []
        for names, part in ((AT_SOURCE, "source"), (AT_DEST, "dest")):
            (job / part).mkdir()
            self.lists.append(shard_list.ShardLists(str(job / part)))
            self.lists[-1].write(SHARD, [(at, shard_list.ServedFile(name, PLANNED)) for at, name in enumerate(names)])
        self.mine = (self.root / "file", self.root / "folder" / "new", self.root / "kept")  # to write into
        self._folders = {
            path: sorted(os.listdir(path)) for path in (self.top, self.root, self.root / "folder", outside)
        }
        self._others = [path for path in self.top.rglob("*") if path not in self._folders and path not in self.mine]
        self._before = self._state()
        sys.addaudithook(_note)

    def _state(self) -> list[os.stat_result]:
        return [path.lstat() for path in self._others]

    def restore(self) -> None:
        """Remove what a client made, and refuse anything else that is new or changed."""
        for path in self.mine:
            if path.exists():
                assert path.stat().st_size <= PLANNED
                path.unlink()
        self.mine[-1].write_bytes(b"kept")
        for folder, names in self._folders.items():
            assert sorted(os.listdir(folder)) == names, folder
        for path, before, now in zip(self._others, self._before, self._state()):
            assert before[:7] + (before.st_ctime_ns,) == now[:7] + (now.st_ctime_ns,), path


@functools.lru_cache(maxsize=None)
def _ground() -> _Ground:
    return _Ground()


class _Pipe(PeerPipe):
    """A client that says what it has to say in pieces, and hears what it is told."""

    def __init__(self, said: bytes) -> None:  # pylint: disable=super-init-not-called
        self._said, self._at = said, 0
        self.told: list[bytes] = []

    def read_into(self, buffer: memoryview) -> int:
        piece = self._said[self._at : self._at + min(50, len(buffer))]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def send(self, parts: Any) -> None:
        self.told += parts

    def complain(self, text: str) -> None:
        pass


def serve(is_dest: bool, said: bytes, talk: Callable[[shard_files.Files, PeerPipe], object]) -> None:
    """Let a client talk to a source or a destination."""
    ground = _ground()
    names, lists = (AT_DEST if is_dest else AT_SOURCE), ground.lists[is_dest]
    top = os.fsencode(ground.root)
    pipe = _Pipe(said)
    with contextlib.ExitStack() as held:
        if is_dest:
            files: shard_files.Files = shard_files.DestinationFiles(lists, top, {os.geteuid()})
        else:
            files = shard_files.SourceFiles(lists, top)
        held.callback(files.close)
        opened: list[bytes] = []
        _OPENED.append(opened)
        held.callback(_OPENED.remove, opened)
        with contextlib.suppress(ProtocolError):
            talk(files, pipe)
        allowed = {b"%d" % SHARD, b".", b"..", *(part for name in names for part in name.split(b"/"))}
        assert set(opened) <= allowed, opened
    assert _SECRET not in b"".join(pipe.told)
    ground.restore()
