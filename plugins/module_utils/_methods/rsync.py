# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Method rsync: the real rsync at both ends, over ssh with a key made for the transfer. Private to the collection."""

from __future__ import annotations

import os
import subprocess
from typing import Any, Callable, Iterator

from .._job.context import Context, Server
from .._job.lifeline import follow_parent
from .._job.outcome import Outcome
from . import rsync_passes
from .programs import Service, Work
from .rsync_argv import Far, versions
from .rsync_leftover import adopt
from .rsync_list import read_list, write_list
from .rsync_run import Line
from .rsync_service import CommandRefused, clean_environment, is_rsync, server_argv
from .rsync_shards import Listed
from .ssh import bracketed_host, known_hosts_lines, rsync_shell, ssh_command, ssh_host
from .ssh_client import check_connection
from .ssh_failure import explain
from .ssh_server import Handler, Refused, SshServer

_GONE = r"transfer that this key was made for is not running|Permission denied \("
LIST = "longhaul list"  # the command that lists the source for the driving end


class _RsyncServer(SshServer):
    """An ssh server for rsync; ``ready`` also holds ``root``, as messages name it, ``leftover`` and ``private``."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, rsync_handler(context, lambda: len(self._programs) == 0))
        self.ready.update(
            root=os.fsdecode(context.root),
            leftover=bool(context.serve.get("leftover")),
            private=context.serve["ssh"] == "private",
        )


def serve(context: Context) -> Server:
    """Be ready for the driving end's ssh; what it may run is one direction of rsync in this root."""
    versions(context.settings)
    return _RsyncServer(context)


def rsync_handler(context: Context, alone: Callable[[], bool]) -> Handler:
    """Give what decides on each command that the driving end asks for.

    ``alone`` says whether nothing that was allowed before is still at work.
    """

    def handle(command: str) -> Work:
        if command == LIST and context.side == "source":
            return lambda _stdin, stdout: _list(context, stdout)
        if not is_rsync(command):
            raise Refused(f"{command[:200]!r} is no part of a transfer with rsync")
        try:
            argv = server_argv(command, context.side, context.staging, context.settings)
        except CommandRefused as refused:
            raise Refused(str(refused)) from refused
        if context.side == "dest" and not context.settings["check"] and alone():
            adopt(context.staging)  # an earlier receiver may have been killed
        return Service(argv=argv, cwd=context.root, env=clean_environment())

    return handle


def drive(context: Context) -> Outcome:
    """Run rsync here, against the serving end."""
    versions(context.settings)
    peer = context.peer
    ssh = ssh_command(
        peer,
        context.secret_file(context.secrets["identity"], "identity"),
        context.secret_file(known_hosts_lines(context.settings["id"], peer["host_keys"]), "known_hosts"),
        context.settings["ciphers"],
        timeout=context.settings["timeout"],
    )
    check_connection(ssh, peer["address"], context.settings["id"])
    line = Line(
        far=Far(address=f"{bracketed_host(peer['address'])}:./", shell=rsync_shell(ssh)),
        far_root=peer.get("root", ""),
        explain=lambda stderr, code: explain(stderr, code) or "",
        gone=_GONE + ("|Connection refused" if peer.get("private") else ""),
    )
    outcome = rsync_passes.transfer(context, line, lambda: _list_far(ssh, peer))
    outcome.cmd = _commands(outcome.cmd, context.side)
    return outcome


def _commands(cmd: dict[str, list[str]], side: str) -> dict[str, list[str]]:
    other = {"source": "dest", "dest": "source"}[side]
    sender = ["--sender"] if other == "source" else []
    return {side: cmd.get("drive", []), other: ["rsync", "--server", *sender, "...", ".", "./"]}


def _list(context: Context, stdout: int) -> int:
    with os.fdopen(stdout, "wb") as stream:
        write_list(context.root, context.settings, stream)
    return 0


def _list_far(ssh: list[str], peer: dict[str, Any]) -> Iterator[Listed]:
    """Have the source listed by the other end. Raises ValueError where the list is not complete."""
    process = subprocess.Popen(  # pylint: disable=ansible-bad-function
        [*ssh, ssh_host(peer["address"]), LIST],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=clean_environment(),
        preexec_fn=follow_parent(),
    )
    try:
        yield from read_list(process.stdout)
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
