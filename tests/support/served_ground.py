# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A root whose files are served to one client, and what must not be harmed."""

from __future__ import annotations

import contextlib
import os
import threading
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator

from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy import shard_files
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy.file_server import FileServer, PeerPipe
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy.shard_list import ServedFile, ShardLists
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.staging import Staging
from ansible_collections.longhaul.fleet.tests.support.canary import Canary

NAME = b".longhaul-0123456789abcdef"
SIZE = 5000  # as planned, of each file
FILES = ("first", "folder/second", "third")


class Ground:
    """A root that is served, an older copy that shares files with it, and what lies outside of both."""

    def __init__(self, folder: Path, side: str) -> None:
        self.root, self.older, self.outside = folder / "root", folder / "older", folder / "outside"
        job = folder.parent / "job"
        for path in (self.root / "folder", self.older, self.outside / "tmp", job):
            path.mkdir(parents=True)
        (self.outside / "secret").write_text("root:secret")
        (self.outside / "secret").chmod(0o600)
        (self.older / "same").write_text("older")
        os.link(self.older / "same", self.root / "same")
        for name in FILES:
            (self.root / name).write_text(f"{name}'s")
        (self.root / "excluded.key").write_text("a key")
        self.lists = ShardLists(str(job))
        self.side = side
        if side == "source":
            self.lists.write(3, [(n, ServedFile(name.encode(), SIZE)) for n, name in enumerate(FILES)])
            self._make = partial(shard_files.SourceFiles, self.lists, os.fsencode(self.root))
        else:
            self.staged = Staging(os.fsencode(self.root), NAME)
            self.lists.write(3, [(n, ServedFile(b"%032x" % n, SIZE)) for n in range(3)])
            top = self.staged.partial_fd
            self._make = partial(shard_files.DestinationFiles, self.lists, top, self.staged.owners)
        self.canary = Canary(folder, self.root, self.older)
        self.placed = self._placed()
        self.code: Any = None

    def _placed(self) -> dict[str, Any]:
        """Return what is in the root beside the staging folder."""
        paths = [path for path in self.root.rglob("*") if NAME.decode() not in str(path)]
        return {str(path): (path.lstat(), path.is_file() and path.read_text()) for path in paths}

    @property
    def partial(self) -> Path:
        return self.root / NAME.decode() / "partial"

    @contextlib.contextmanager
    def served(self, talk: Callable[[shard_files.Files, PeerPipe], bool]) -> Iterator[tuple[int, int]]:
        """Yield where to write to a server that runs in a thread, and where to read; ``code`` is how it ended."""
        to_server, from_server = os.pipe(), os.pipe()

        def serve() -> None:
            try:
                self.code = FileServer(talk, self._make, ())(to_server[0], from_server[1])
            finally:
                os.close(from_server[1])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield to_server[1], from_server[0]
        finally:
            with contextlib.suppress(OSError):  # it may be closed by then
                os.close(to_server[1])
            thread.join(20)
            alive = thread.is_alive()
            for fd in (to_server[0], from_server[0]):
                os.close(fd)
            assert not alive

    def expect_nothing_harmed(self) -> None:
        assert self.canary.changes() == []
        now = self._placed()
        assert {path: (found.st_ino, found.st_mode, text) for path, (found, text) in now.items()} == {
            path: (found.st_ino, found.st_mode, text) for path, (found, text) in self.placed.items()
        }
