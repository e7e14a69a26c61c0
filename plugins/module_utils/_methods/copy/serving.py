# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Handler of the connections of scp and sftp: the conversation, or a server of our own."""

from __future__ import annotations

import os
import shlex
from functools import partial
from typing import Callable

from ..._core import time_accounting
from ..._core.context import Context
from ..._core.disk_usage import DiskMeter
from ..._core.errors import CommandRefusal, TransferFailed
from ..._engine.net.rate_limit import TokenBucket
from ..._engine.net.ticket_file import Tickets
from ..._tree.staging import open_staging
from ..ssh.server import Handler
from ..ssh.service import Work
from .common import SESSION, Mover, run_session
from .file_server import FileServer, Talk
from .shard_files import DestinationFiles, Files, SourceFiles
from .shard_list import ShardLists


class SessionWork:
    """The conversation, which the serving end runs in a process of its own."""

    def __init__(self, context: Context, mover: Mover, lists: ShardLists) -> None:
        self._context, self._mover, self._lists = context, mover, lists
        writes = context.side == "dest" and not context.settings["check"]
        self.keeps = (*context.held, lists.fd, *(open_staging(context).descriptors if writes else ()))

    def __call__(self, stdin: int, stdout: int) -> int:
        if self._context.root_fd >= 0:  # the job's own meter has its descriptor in the job alone
            time_accounting.watch_disk(DiskMeter(self._context.root_fd))
        try:
            run_session(self._context, stdin, stdout, self._mover, None, self._lists)
        except TransferFailed as error:
            self._context.log(f"the transfer failed: {error}")
            return 1
        return 0


def split_command(command: str) -> list[str]:
    """Split what the driving end asked for into words; raises CommandRefusal."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise CommandRefusal(f"it cannot be split into words: {error}") from error


def copy_handler(context: Context, mover: Mover, talk_of: Callable[[str], Talk]) -> Handler:
    """Return the handler of commands. ``talk_of``: what a command of the client is to hold; raises CommandRefusal."""
    lists = ShardLists(context.folder)
    make_server = None if context.settings["check"] else _server(context, mover, lists)

    def handle(command: str, _is_alone: bool) -> Work:
        if command == SESSION:
            return SessionWork(context, mover, lists)
        if make_server is None:
            raise CommandRefusal(f"{command[:200]!r} is no part of a prediction")
        return make_server(talk_of(command))

    return handle


def _server(context: Context, mover: Mover, lists: ShardLists) -> Callable[[Talk], FileServer]:
    """Return what makes a server for the side that serves; what it needs stays open as long as this job lives."""
    make_files: Callable[[], Files]
    if context.side == "source":
        held = (context.root_fd,) if context.root_fd >= 0 else ()
        make_files = partial(SourceFiles, lists, context.top)
    else:
        staged = open_staging(context)
        base = mover.open_base(staged)
        held, make_files = (base,), partial(DestinationFiles, lists, base, staged.owners)
    return partial(FileServer, make_files=make_files, keeps=(lists.fd, *held), make_bucket=partial(_bucket, context))


def _bucket(context: Context) -> TokenBucket:
    """Return the limit on what all our servers move: a ticket's, since the client has that of the plan."""
    return TokenBucket(0, Tickets(context.folder), shared=os.path.join(context.folder, "bucket"))
