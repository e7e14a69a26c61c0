# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our SFTP server: whatever a client says, no file is opened but those of the plan."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator

from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy import sftp_protocol, sftp_server, shard_list
from ansible_collections.longhaul.fleet.tests.support import sftp_client

_PLANNED = 1000  # bytes of a file that a client may write
_SECRET = b"root:secret"
_SHARD = 3
# What each file of the shard is at its place, and whether the server may open it there.
_AT_SOURCE = (b"kept", b"folder/deep", b"link", b"fifo", b"folder", b"gone")
_AT_DEST = (b"file", b"kept", b"link", b"twice", b"folder/new")
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
        for names, part in ((_AT_SOURCE, "source"), (_AT_DEST, "dest")):
            (job / part).mkdir()
            self.lists.append(shard_list.ShardLists(str(job / part)))
            self.lists[-1].write(_SHARD, [(at, shard_list.Listed(name, _PLANNED)) for at, name in enumerate(names)])
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
                assert path.stat().st_size <= _PLANNED
                path.unlink()
        self.mine[-1].write_bytes(b"kept")
        for folder, names in self._folders.items():
            assert sorted(os.listdir(folder)) == names, folder
        for path, before, now in zip(self._others, self._before, self._state()):
            assert before[:7] + (before.st_ctime_ns,) == now[:7] + (now.st_ctime_ns,), path


@functools.lru_cache(maxsize=None)
def _ground() -> _Ground:
    return _Ground()


def _serve(ground: _Ground, is_dest: bool, data: bytes) -> list[bytes]:
    """Let a client say this; return what it is told."""
    names, lists = (_AT_DEST if is_dest else _AT_SOURCE), ground.lists[is_dest]
    top = os.fsencode(ground.root)
    told: list[bytes] = []
    with contextlib.ExitStack() as held:
        if is_dest:
            files: sftp_server.Files = sftp_server.DestinationFiles(lists, top, {os.geteuid()})
        else:
            files = sftp_server.SourceFiles(lists, top)
        held.callback(files.close)
        session = sftp_server.Session(files, told.extend, lambda _text: None)
        held.callback(session.close)
        buffer = sftp_protocol.PacketBuffer()
        opened: list[bytes] = []
        _OPENED.append(opened)
        held.callback(_OPENED.remove, opened)
        with contextlib.suppress(sftp_protocol.ProtocolError):
            for start in range(0, len(data), 50):
                piece = data[start : start + 50]
                buffer.get_buffer()[: len(piece)] = piece
                buffer.buffer_updated(len(piece))
                session.take(buffer.packets())
        allowed = {b"%d" % _SHARD, b".", b"..", *(part for name in names for part in name.split(b"/"))}
        assert set(opened) <= allowed, opened
    return told


def talk(data: bytes) -> None:
    """Let a client talk to a source (the first byte is even) or a destination."""
    ground = _ground()
    told = _serve(ground, bool(data and data[0] % 2), data[1:])
    assert _SECRET not in b"".join(told)
    ground.restore()


def samples() -> Iterator[bytes]:
    """Yield sessions as clients hold them."""
    for is_dest, access in ((1, sftp_client.FOR_WRITING), (0, sftp_client.FOR_READING)):
        said = sftp_client.packet(sftp_client.INIT, b"\0\0\0\3")
        for number in range(len(_AT_SOURCE)):
            path, handle = b"view-%d/%d" % (_SHARD, number), sftp_client.string(b"\0\0\0\1")
            said += sftp_client.request(sftp_client.STAT, 9, sftp_client.string(path))
            said += sftp_client.request(sftp_client.OPEN, 1, sftp_client.opening(path, access))
            if is_dest:
                said += sftp_client.request(sftp_client.WRITE, 2, sftp_client.writing(b"\0\0\0\1", 0, b"text"))
            else:
                said += sftp_client.request(sftp_client.READ, 2, handle, bytes(8), b"\0\0\1\0")
            said += sftp_client.request(sftp_client.FSTAT, 4, handle)
            said += sftp_client.request(sftp_client.CLOSE, 3, handle)
            yield bytes([is_dest]) + said
        folder = sftp_client.string(b"view-%d" % _SHARD)
        said += sftp_client.request(sftp_client.OPENDIR, 5, folder)
        said += sftp_client.request(sftp_client.READDIR, 6, sftp_client.string(b"\0\0\0\1"))
        said += sftp_client.request(sftp_client.REALPATH, 7, folder)
        for kind, fields in list(sftp_client.evil(access, os.fsencode("/etc/passwd")))[::97]:
            yield bytes([is_dest]) + said + sftp_client.request(kind, 8, fields)
