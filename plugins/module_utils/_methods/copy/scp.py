# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The method scp: the real scp moves the contents to or from a server of our own (``rcp_server``).

They speak the protocol of rcp (``-O``, where scp has that flag, else by default): every scp can, and it needs fewer
round trips a file than SFTP. scp sends whole files, so an interrupted transfer resumes at the file at which it stopped.
Holes of sparse files are sent as zeros and are made holes again when the file has arrived.
"""

from __future__ import annotations

import os
import re
from functools import partial

from ..._core.context import Context, Server
from ..._core.errors import CommandRefusal
from ..._core.outcome import Outcome
from ..._engine.net.carrier import FileRequest
from ..._model.entry import Entry
from ..._tree.staging import Staging
from ..ssh.client_command import bracketed_host
from ..ssh.server import SshServer
from .common import SESSION, Mover, drive_over_ssh
from .fd_symlinks import shard_of, view_name
from .file_server import Talk
from .rcp_server import send_files, take_files
from .serving import copy_handler, split_command

_FLAG = re.compile(r"^-[vrpdq]+$")
_ARRIVED = b"scp"


def talk_of(command: str, side: str) -> Talk:
    """Return what a command of the driving end's scp holds; its folder is that of the shards.

    The destination only takes (``-t``), wherever the peer would like to have it. The source only sends (``-f``), and
    only a view. Raises CommandRefusal.
    """
    words = split_command(command)
    flags, rest = [word for word in words[1:] if _FLAG.match(word)], [w for w in words[1:] if not _FLAG.match(w)]
    if len(rest) == 3 and rest[1] == "--":
        del rest[1]
    if "-r" in flags and words and os.path.basename(words[0]) == "scp" and len(rest) == 2:
        shard = shard_of(rest[1])
        if rest[0] == "-t" and side == "dest":
            return take_files
        if rest[0] == "-f" and side == "source" and shard is not None:
            return partial(send_files, shard)
    raise CommandRefusal(f"{command[:200]!r} is not what this side ({side}) lets scp do")


class ScpMover(Mover):
    """scp's argv in both directions."""

    def __init__(self, context: Context) -> None:
        settings = context.settings
        self._flags = ["-O"] if settings["scp_legacy_flag"] else []
        limit = int(settings["bwlimit"]) // max(1, int(settings["streams"]))
        if limit:
            self._flags += ["-l", str(max(1, limit * 8 // 1000))]  # Kbit/s, of each scp that runs

    def open_base(self, staged: Staging) -> int:
        """Open a folder for scp alone: what else is on its way in ``tmp`` is out of its reach, symlinks included."""
        return staged.below_temporary(_ARRIVED)

    def place(self, shard: int, file_index: int, _entry: Entry) -> tuple[bytes, bytes]:
        """A shard's files arrive in a folder of its own, under their numbers."""
        return view_name(shard).encode(), str(file_index).encode()

    def push(
        self, options: list[str], host: str, view: str, _shard: int, _files: list[FileRequest]
    ) -> tuple[list[str], str]:
        """The whole view at once: one connection for a shard."""
        return ["scp", "-q", "-r", *self._flags, *options, view, f"{bracketed_host(host)}:."], ""

    def pull(self, options: list[str], host: str, shard: int, _files: list[FileRequest]) -> tuple[list[str], str]:
        """The whole view at once."""
        return ["scp", "-q", "-r", *self._flags, *options, f"{bracketed_host(host)}:{view_name(shard)}", "."], ""


def serve(context: Context) -> Server:
    """Let the driving end's scp in, one direction, one folder."""
    handler = copy_handler(context, ScpMover(context), partial(talk_of, side=context.side))
    return SshServer(context, handler, conversation=SESSION)


def drive(context: Context) -> Outcome:
    """Decide with the serving end what must be sent, and run scp for it."""
    return drive_over_ssh(context, ScpMover)
