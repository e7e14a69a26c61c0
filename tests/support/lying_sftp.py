# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An end of a transfer by sftp that lies in SFTP: ``lying_sftp.py LIE OUTSIDE ends.py REQUEST RESULT``.

``packets`` is a driving end that first asks the server, packet by packet, for what is not its own. The others are
serving ends whose server lies to the real client. OUTSIDE is the folder that the lies aim at.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import random
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

from ansible_collections.longhaul.fleet.tests.support import sftp_client

COLLECTION = "ansible_collections.longhaul.fleet"
GRANTED = "granted.json"  # beside OUTSIDE: how many requests were made, and those that were granted
EVIL = b"* * * * * root evil\n"


def _load(name: str) -> Any:
    return importlib.import_module(f"{COLLECTION}.plugins.module_utils._methods.copy.{name}")


def packets(outside: Path) -> None:
    """Be a driving end that asks for more than it may have, and then does what it should."""
    common = _load("common")
    run = common.ClientRunner.run

    def try_first(self: Any, argv: list[str], given: str, cwd: Any, meter: Any, counter: str, *rest: Any) -> Any:
        is_source = counter == "rchar"
        access = sftp_client.FOR_WRITING if is_source else sftp_client.FOR_READING
        ssh = ["ssh", "-T", "-x", *self.options, self.host, "longhaul/sftp"]
        with subprocess.Popen(ssh, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin and process.stdout
            peer = sftp_client.Client(process.stdin.fileno(), process.stdout.fileno())
            peer.begin()
            asked = list(sftp_client.evil(access, os.fsencode(outside / "secret")))
            granted = [repr(one) for one in asked if not peer.ask(*one).is_refused]
            process.stdin.close()
        (outside.parent / GRANTED).write_text(json.dumps([len(asked), granted]))
        return run(self, argv, given, cwd, meter, counter, *rest)

    common.ClientRunner.run = try_first


def _serving_anything(server: Any) -> None:
    """Let every path be a file that can be read."""
    place = _load("shard_files").ServedPath(0, 0)
    server.parse_path = lambda _path: place

    def open_any(_self: Any, _place: Any, _access: int) -> Any:
        fd = os.memfd_create("evil")
        os.write(fd, EVIL)
        return server.OpenFile(fd, None)

    _load("shard_files").SourceFiles.open = open_any


def _listing(*names: bytes, mode: int = stat.S_IFREG | 0o600) -> Callable[[Path], None]:
    """Return a lie: the folder of a shard has these names."""

    def apply(outside: Path) -> None:
        server = _load("sftp_server")
        _serving_anything(server)
        shown = [name.replace(b"OUTSIDE", os.fsencode(outside)) for name in names]
        folder = server.Attributes(stat.S_IFDIR | 0o6777, 0)
        server.Files.stat = lambda _self, _place: folder
        _load("shard_files").SourceFiles.names = lambda _self, _place: server.OpenListing(
            iter([(name, server.Attributes(mode, len(EVIL))) for name in shown])
        )

    return apply


def every_attribute(_outside: Path) -> None:
    """Say of each file that it is set-id, and larger than any."""
    server = _load("sftp_server")
    make = server.Attributes
    server.Attributes = lambda mode, size: make(mode | 0o6777, size if stat.S_ISDIR(mode) else 2**63 - 1)


def data_without_end(_outside: Path) -> None:
    """Have more to read, wherever one reads."""
    server = _load("sftp_server")
    data = bytes(server.MAX_DATA)

    def read(self: Any, request: Any) -> None:
        self._answer(server.data_head(request.id, len(data)), data)

    server.SftpSession._read = read


def nonsense(_outside: Path) -> None:
    """Answer with what is no answer, from the third one on."""
    server = _load("sftp_server")
    chance, answers = random.Random(7), itertools.count()
    answer = server.SftpSession._answer

    def answer_with_nonsense(self: Any, *parts: bytes) -> None:
        answer(self, *([chance.randbytes(40)] if next(answers) > 2 else parts))

    server.SftpSession._answer = answer_with_nonsense


def another_place(outside: Path) -> None:
    """Say that each path is another one in truth."""
    _load("shard_files").ServedPath.name = lambda _self: os.fsencode(outside / "secret")


def control_characters(_outside: Path) -> None:
    """Refuse each file in words that a terminal obeys."""
    server = _load("sftp_server")

    def refuse(_self: Any, _place: Any, _access: int) -> Any:
        raise server.RequestRefusal(4, "\x1b]0;PWNED\x07\x1b[2J")

    files = _load("shard_files")
    files.SourceFiles.open = files.DestinationFiles.open = refuse


LIES: dict[str, Callable[[Path], None]] = {
    "packets": packets,
    "name above": _listing(b"../escaped"),
    "absolute name": _listing(b"OUTSIDE/escaped"),
    "name of the parent": _listing(b".."),
    "name with a folder": _listing(b"tmp/../../../escaped"),
    "other names": _listing(b"authorized_keys", b"0", b"99", b""),
    "symlinks": _listing(b"0", b"authorized_keys", mode=stat.S_IFLNK | 0o777),
    "folders in each other": _listing(b"0", mode=stat.S_IFDIR | 0o6777),
    "devices": _listing(b"0", b"1", mode=stat.S_IFBLK | 0o6777),
    **{lie.__name__: lie for lie in (every_attribute, data_without_end, nonsense, another_place, control_characters)},
}


def main(lie: str, outside: str, _ends: str, *arguments: str) -> int:
    """Lie, and be an end."""
    LIES[lie](Path(outside))
    importlib.import_module(f"{COLLECTION}.tests.support.unconfined").unconfine()
    ends = importlib.import_module(f"{COLLECTION}.tests.unit.plugins.module_utils._engine.ends")
    return int(ends.main(*arguments))


if __name__ == "__main__":
    del sys.path[0]  # this folder
    sys.exit(main(*sys.argv[1:]))
