# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The method scp: the real scp moves the contents.

It speaks SFTP (``-s``, since OpenSSH 8.7) with our own server, or, where the driving end's scp is older, the protocol
of rcp with the scp of the serving end. It sends whole files, so an interrupted transfer resumes at the file at which it
stopped. Holes of sparse files are sent as zeros and are made holes again when the file has arrived.
"""

from __future__ import annotations

import os
import re

from ..._core.context import Context, Server
from ..._core.errors import TransferFailed
from ..._core.outcome import Outcome
from ..._core.subprocesses import find_program
from ..._engine.net.carrier import Wanted
from ..._model.entry import Entry
from ..._tree.staging import Staging, open_staging
from ..ssh.client_command import bracketed_host
from ..ssh.server import Handler, Refused, SshServer
from ..ssh.service import Service, Work
from .common import SESSION, VIEWS, Mover, drive_over_ssh
from .fd_symlinks import view_name
from .serving import Conversation, sftp_handler, split_command

_FLAG = re.compile(r"^-[vrpdq]+$")
_ARRIVED = b"scp"
_VIEW = re.compile(r"^view-\d+$")


def server_argv(command: str, side: str) -> list[str]:
    """Return the argv of the serving scp for what the driving end asked for; its folder is the working directory.

    The destination is only written to (``-t``), wherever the peer would like to: the path becomes ``.``. The
    source is only read from (``-f``), and only a view. Raises Refused.
    """
    words = split_command(command)
    flags, rest = [word for word in words[1:] if _FLAG.match(word)], [w for w in words[1:] if not _FLAG.match(w)]
    if len(rest) == 3 and rest[1] == "--":
        del rest[1]
    if not words or os.path.basename(words[0]) != "scp" or len(rest) != 2:
        raise Refused(f"{command[:200]!r} is no part of a transfer with scp")
    if rest[0] == "-t" and side == "dest":
        return ["scp", *flags, "-t", "."]
    if rest[0] == "-f" and side == "source" and _VIEW.match(rest[1]):
        return ["scp", *flags, "-f", rest[1]]
    raise Refused(f"{command[:200]!r} is not what this side ({side}) lets scp do")


class ScpMover(Mover):
    """scp's argv in both directions."""

    def __init__(self, context: Context) -> None:
        settings = context.settings
        self._by_sftp = settings["scp_sftp_flag"]
        self._flags = ["-s"] if self._by_sftp else ["-O"] if settings["scp_legacy_flag"] else []
        limit = int(settings["bwlimit"]) // max(1, int(settings["streams"]))
        if limit:
            self._flags += ["-l", str(max(1, limit * 8 // 1000))]  # Kbit/s, of each scp that runs

    def speaks_sftp(self) -> bool:
        """Where it can."""
        return self._by_sftp

    def open_base(self, staged: Staging) -> int:
        """Open a folder for scp alone: what else is on its way in ``tmp`` is out of its reach, symlinks included."""
        return staged.below_temporary(_ARRIVED)

    def place(self, shard: int, file_index: int, _entry: Entry) -> tuple[bytes, bytes]:
        """A shard's files arrive in a folder of its own, under their numbers."""
        return view_name(shard).encode(), str(file_index).encode()

    def push(
        self, options: list[str], host: str, view: str, _shard: int, _files: list[Wanted]
    ) -> tuple[list[str], str]:
        """The whole view at once: one connection for a shard."""
        return ["scp", "-q", "-r", *self._flags, *options, view, f"{bracketed_host(host)}:."], ""

    def pull(self, options: list[str], host: str, shard: int, _files: list[Wanted]) -> tuple[list[str], str]:
        """The whole view at once."""
        return ["scp", "-q", "-r", *self._flags, *options, f"{bracketed_host(host)}:{view_name(shard)}", "."], ""


def _handler(context: Context) -> Handler:
    mover = ScpMover(context)
    return sftp_handler(context, mover) if mover.speaks_sftp() else _old_handler(context, mover)


def _old_handler(context: Context, mover: ScpMover) -> Handler:
    program = find_program("scp")
    if program is None:
        raise TransferFailed(
            "there is no scp on the host that is connected to, which the scp of the other host needs, since it is "
            "older than OpenSSH 8.7: install it, or use another method"
        )
    folder: int | bytes = _views(context)
    if context.side == "dest" and not context.settings["check"]:
        folder = mover.open_base(open_staging(context))  # for as long as this job lives

    def handle(command: str) -> Work:
        if command == SESSION:
            return Conversation(context, mover)
        return Service(argv=[program, *server_argv(command, context.side)[1:]], cwd=folder)

    return handle


def _views(context: Context) -> bytes:
    folder = os.path.join(context.folder, VIEWS)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return os.fsencode(folder)


def serve(context: Context) -> Server:
    """Let the driving end's scp in, one direction, one folder."""
    return SshServer(context, _handler(context))


def drive(context: Context) -> Outcome:
    """Decide with the serving end what must be sent, and run scp for it."""
    return drive_over_ssh(context, ScpMover)
