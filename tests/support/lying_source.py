# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An end of a transfer by scp or sftp that lies: ``lying_source.py LIE OUTSIDE ends.py REQUEST.json RESULT.json``.

It is the real end but for one function, which is replaced by what a hostile host could put there. OUTSIDE is the folder
that the lies aim at.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, Callable

from ansible_collections.longhaul.fleet.tests.support import scp_client

COLLECTION = "ansible_collections.longhaul.fleet"
UNITS = f"{COLLECTION}.plugins.module_utils"
SHARE = 11  # one of so many sessions of a hostile scp is tried over ssh


def _load(name: str) -> Any:
    return importlib.import_module(f"{UNITS}.{name}")


def staging_offered(_outside: Path) -> None:
    """Offer the entries that no source offers: those of a transfer's own folder."""
    _load("_tree.walk").is_staging = lambda _path: False


def _batch(lines: Callable[[str, str], list[str]]) -> None:
    """Have sftp do what ``lines`` returns for each file: it is given the file in the view, and its staged name."""
    sftp = _load("_methods.copy.sftp")

    def push(self: Any, options: list[str], host: str, view: str, _shard: int, files: Any) -> tuple[list[str], str]:
        names = [(f"{view}/{file.index}", f"{view}/{file.index}") for file in files]
        said = [f"-{line}\n" for source, name in names for line in lines(source, name)]
        return self._argv(options, host), "".join(said)

    sftp.SftpMover.push = push


def sftp_symlink(outside: Path) -> None:
    """Put a symlink where a file is due."""
    _batch(lambda _source, name: [f"symlink {outside}/secret {name}"])


def sftp_hard_link(outside: Path) -> None:
    """Put another name of a foreign file where a file is due."""
    _batch(lambda _source, name: [f"ln {outside}/secret {name}"])


def sftp_folder(_outside: Path) -> None:
    """Put a folder where a file is due."""
    _batch(lambda source, name: [f"mkdir {name}", f"put {source} {name}/x"])


def sftp_fifo(outside: Path) -> None:
    """Put a FIFO where a file is due."""
    _batch(lambda _source, name: [f"rename {outside.parent}/fifo {name}"])


def sftp_owner(_outside: Path) -> None:
    """Try to hand over a file that arrived, and to let it run as its owner."""
    _batch(lambda source, name: [f"put {source} {name}", f"chown 1234 {name}", f"chmod 4755 {name}"])


def scp_elsewhere(outside: Path) -> None:
    """Ask the destination's scp to write into another folder."""
    scp = _load("_methods.copy.scp")

    def push(self: Any, options: list[str], host: str, view: str, _shard: int, _files: Any) -> tuple[list[str], str]:
        target = f"{scp.bracketed_host(host)}:{outside}"
        return ["scp", "-q", "-r", *self._flags, *options, view, target], ""

    scp.ScpMover.push = push


def scp_setid(_outside: Path) -> None:
    """Push files with setuid and setgid, and some that nobody asked for."""
    scp = _load("_methods.copy.scp")

    def push(self: Any, options: list[str], host: str, view: str, _shard: int, files: Any) -> tuple[list[str], str]:
        made = Path(f"evil-{os.getpid()}", view)
        made.mkdir(parents=True, exist_ok=True)
        for name in [str(file.index) for file in files] + ["new-0-1", "evil"]:
            path = made / name
            path.write_bytes(Path(view, name).read_bytes() if name.isdigit() else b"evil")
            path.chmod(0o6777)
        return ["scp", "-q", "-p", "-r", *self._flags, *options, str(made), f"{scp.bracketed_host(host)}:."], ""

    _in_views(push)


def _in_views(push: Any) -> None:
    """Have ``push`` called in the folder that holds the views."""
    common, scp = _load("_methods.copy.common"), _load("_methods.copy.scp")
    init = common.CopySource.__init__

    def start(self: Any, context: Any, *rest: Any) -> None:
        init(self, context, *rest)
        os.makedirs(self._views, exist_ok=True)
        os.chdir(self._views)

    common.CopySource.__init__ = start
    scp.ScpMover.push = push


def _scp_server(lie: str) -> Callable[[Path], None]:
    def apply(_outside: Path) -> None:
        scp = _load("_methods.copy.scp")
        scp.talk_of = lambda command, side: partial(_scp_server_says, LINES[lie], command.split()[-1])

    return apply


def staging_replaced(outside: Path) -> None:
    """Be a destination at which somebody replaces the staging folder as soon as it is open."""
    staging = _load("_tree.staging")
    prepare = staging.Staging.prepare

    def replaced(self: Any, *arguments: Any) -> bool:
        result = prepare(self, *arguments)
        os.rename(self.path, os.fsencode(outside.parent / "moved"))
        os.symlink(outside, self.path)
        return bool(result)

    staging.Staging.prepare = replaced


LINES = {  # what a hostile scp says first, for the view that is asked for
    "parent file": ["D0777 0 {view}", "C0644 4 ../../escaped"],
    "another name": ["C0644 4 authorized_keys"],
    "setid": ["D0777 0 {view}", "C6777 4 0"],
}


def _scp_server_says(lines: list[str], view: str, _files: Any, pipe: Any) -> bool:
    """Send what is in the lines, whatever the client thinks of it."""
    answer = memoryview(bytearray(1))
    for line in lines:
        if not pipe.read_into(answer):
            return False
        pipe.send([line.format(view=view).encode() + b"\n"])
        if line.startswith("C"):
            pipe.read_into(answer)
            pipe.send([b"evil\0"])
    for _folder in lines:
        pipe.read_into(answer)
        pipe.send([b"E\n"])
    return True


def scp_sessions(outside: Path) -> None:
    """Be a driving end whose scp first says what none should say."""
    common = _load("_methods.copy.common")
    run = common.ClientRunner.run
    secret = str(outside / "secret")

    def try_first(self: Any, argv: list[str], *rest: Any) -> Any:
        sessions = [("scp -r -t .", said) for said in list(scp_client.evil(0, secret))[::SHARE]]
        sessions += [(f"scp -r -f {path}", bytes(9)) for path in (secret, "view-0/..", "view-99")]
        for command, said in sessions:
            ssh = ["ssh", "-T", "-x", *self.options, self.host, command]
            done = subprocess.run(ssh, input=said, capture_output=True, check=False, timeout=20)
            assert b"root:secret" not in done.stdout
        return run(self, argv, *rest)

    common.ClientRunner.run = try_first


LIES: dict[str, Callable[[Path], None]] = {
    lie.__name__: lie
    for lie in (
        *(staging_offered, staging_replaced),
        *(sftp_symlink, sftp_hard_link, sftp_folder, sftp_fifo, sftp_owner, scp_elsewhere, scp_setid, scp_sessions),
    )
}
LIES.update({f"scp server: {name}": _scp_server(name) for name in LINES})


def main(lie: str, outside: str, _ends: str, *arguments: str) -> int:
    """Lie, and be an end."""
    LIES[lie](Path(outside))
    importlib.import_module(f"{COLLECTION}.tests.support.unconfined").unconfine()
    ends = importlib.import_module(f"{COLLECTION}.tests.unit.plugins.module_utils._engine.ends")
    return int(ends.main(*arguments))


if __name__ == "__main__":
    del sys.path[0]  # this folder
    sys.exit(main(*sys.argv[1:]))
