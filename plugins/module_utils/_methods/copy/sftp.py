# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The method sftp: the real sftp moves the contents to or from our own server, and goes on inside a file.

What has arrived of a file has a name that belongs to this version of it (path, size, time, inode), so that an
interrupted transfer goes on where it stopped (``put -a``, ``get -a``) and never with another version's beginning. A
file that was continued is compared by its hash at both ends before it is put in place: what was not synced when a host
crashed cannot be trusted.
"""

from __future__ import annotations

import os

from ..._core.context import Context, Server
from ..._core.errors import CommandRefusal
from ..._core.outcome import Outcome
from ..._engine.net.carrier import FileRequest
from ..._model.entry import Entry
from ..._tree.staging import Staging
from ..ssh.client_command import bracketed_host
from ..ssh.server import SshServer
from .common import SESSION, Mover, drive_over_ssh, partial_name
from .fd_symlinks import view_name
from .file_server import Talk
from .serving import copy_handler
from .sftp_server import answer_requests

SFTP_COMMAND = "longhaul/sftp"  # what sftp asks for: with a slash it is a command, which needs no subsystem in sshd


class SftpMover(Mover):
    """sftp's argv and batches in both directions."""

    def __init__(self, context: Context) -> None:
        settings = context.settings
        self._flags: list[str] = []
        tuning = settings.get("sftp") or {}
        for flag, value in (("-B", tuning.get("buffer")), ("-R", tuning.get("requests"))):
            if value:
                self._flags += [flag, str(int(value))]
        limit = int(settings["bwlimit"]) // max(1, int(settings["streams"]))
        if limit:
            self._flags += ["-l", str(max(1, limit * 8 // 1000))]

    def resumes(self) -> bool:
        """Inside a file."""
        return True

    def open_base(self, staged: Staging) -> int:
        """Files arrive among the partial ones, where a rerun finds them."""
        return os.dup(staged.partial_fd)

    def place(self, _shard: int, _file_index: int, entry: Entry) -> tuple[bytes, bytes]:
        """Each version of a file has a name of its own."""
        return b"", partial_name(entry)

    def _argv(self, options: list[str], host: str) -> list[str]:
        return ["sftp", "-q", "-b", "-", "-s", SFTP_COMMAND, *self._flags, *options, bracketed_host(host)]

    def push(
        self, options: list[str], host: str, view: str, _shard: int, files: list[FileRequest]
    ) -> tuple[list[str], str]:
        """One line for each file; the hyphen lets it go on after one that failed."""
        names = ((file.have, f"{view}/{file.index}") for file in files)
        lines = [f"-put {'-a ' if have else ''}{name} {name}\n" for have, name in names]
        return self._argv(options, host), "".join(lines)

    def pull(self, options: list[str], host: str, shard: int, files: list[FileRequest]) -> tuple[list[str], str]:
        """One line for each file."""
        lines = [
            f"-get {'-a ' if file.have else ''}{view_name(shard)}/{file.index} {partial_name(file.entry).decode()}\n"
            for file in files
        ]
        return self._argv(options, host), "".join(lines)


def talk_of(command: str) -> Talk:
    """Return what a command of the driving end's holds: SFTP, or nothing. Raises CommandRefusal."""
    if command != SFTP_COMMAND:
        raise CommandRefusal(f"{command[:200]!r} is no part of a transfer with sftp")
    return answer_requests


def serve(context: Context) -> Server:
    """Let the driving end's sftp in."""
    handler = copy_handler(context, SftpMover(context), talk_of)
    return SshServer(context, handler, conversation=SESSION)


def drive(context: Context) -> Outcome:
    """Decide with the serving end what must be sent, and run sftp for it."""
    return drive_over_ssh(context, SftpMover)
