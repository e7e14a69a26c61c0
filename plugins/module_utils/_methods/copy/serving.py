# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the serving end of scp and sftp runs for a connection: the conversation, and our own SFTP server."""

from __future__ import annotations

import os
import shlex
from functools import partial

from ..._core.context import Context
from ..._core.errors import TransferFailed
from ..._engine.net.rate_limit import TokenBucket
from ..._engine.net.ticket_file import Tickets
from ..._tree.staging import open_staging
from ..ssh.server import Handler, Refused
from ..ssh.service import Work
from .common import SESSION, Mover, run_session
from .sftp_server import DestinationFiles, SftpServer, SourceFiles
from .shard_list import ShardLists

SFTP_COMMAND = "longhaul/sftp"  # what sftp asks for: with a slash it is a command, which needs no subsystem in sshd
_SERVERS = ("sftp-server", "internal-sftp", "sftp")  # what sshd makes of the request for the subsystem sftp


class Conversation:
    """What the serving end runs for the conversation, in a process of its own."""

    def __init__(self, context: Context, mover: Mover, lists: ShardLists | None = None) -> None:
        self._context, self._mover, self._lists = context, mover, lists
        writes = context.side == "dest" and not context.settings["check"]
        held = (context.root_fd,) if context.root_fd >= 0 else ()
        listed = () if lists is None else (lists.fd,)
        self.keeps = (*held, *listed, *(open_staging(context).descriptors if writes else ()))

    def __call__(self, stdin: int, stdout: int) -> int:
        try:
            run_session(self._context, stdin, stdout, self._mover, None, self._lists)
        except TransferFailed as error:
            self._context.log(f"the transfer failed: {error}")
            return 1
        return 0


def split_command(command: str) -> list[str]:
    """Split what the driving end asked for into words; raises Refused."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise Refused(f"it cannot be split into words: {error}") from error


def asks_for_sftp(command: str) -> bool:
    """Whether the command is what sftp and scp ask for, or what sshd makes of that; raises Refused."""
    words = split_command(command)
    return bool(words) and os.path.basename(words[0]) in _SERVERS


def sftp_handler(context: Context, mover: Mover) -> Handler:
    """Return what decides about commands where the driving end's program speaks SFTP."""
    lists = ShardLists(context.folder)
    server = None if context.settings["check"] else _server(context, mover, lists)

    def handle(command: str) -> Work:
        if command == SESSION:
            return Conversation(context, mover, lists)
        if server is None or not asks_for_sftp(command):
            raise Refused(f"{command[:200]!r} is no part of this transfer with {context.settings['method']}")
        return server

    return handle


def _server(context: Context, mover: Mover, lists: ShardLists) -> SftpServer:
    """Return the SFTP server for the side that serves; what it needs stays open as long as this job lives."""
    if context.side == "source":
        held = (context.root_fd,) if context.root_fd >= 0 else ()
        return SftpServer(partial(SourceFiles, lists, context.top), (lists.fd, *held), partial(_bucket, context))
    staged = open_staging(context)
    base = mover.open_base(staged)
    make_files = partial(DestinationFiles, lists, base, staged.owners)
    return SftpServer(make_files, (lists.fd, base), partial(_bucket, context))


def _bucket(context: Context) -> TokenBucket:
    """Return the limit on what all our SFTP servers move: a ticket's, since the client has that of the plan."""
    return TokenBucket(0, Tickets(context.folder), shared=os.path.join(context.folder, "bucket"))
