# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Method rsync: the real rsync at both ends, over ssh with a key made for the transfer."""

from __future__ import annotations

import os
import subprocess

from ..._core import subprocesses
from ..._core.context import Context, Server
from ..._core.errors import CommandRefusal, TransferFailed
from ..._core.outcome import Outcome
from ..._engine.net.ticket_file import Tickets
from ..._tree.staging import open_staging
from ..ssh.client_check import check_connection
from ..ssh.client_command import bracketed_host, known_hosts_lines, rsync_shell, ssh_command, ssh_host
from ..ssh.failure import explain
from ..ssh.server import Handler, SshServer
from ..ssh.service import Service, Work
from . import child as rsync_child
from . import passes as rsync_passes
from .argv import FAR_LIST, Far, versions, withheld_rules
from .chrooted import chrooting, may_change_root
from .confinement import CHROOT, CONFINE_ROOT, RootConfinement, decide_confinement, why_not_untrusted
from .leftover import adopt
from .run import RsyncPeer
from .server_command import (
    LISTS,
    is_rsync,
    own_descriptors,
    own_folders,
    server_argv,
    user_variables,
)
from .shards import Lists, decode_lists, divide, encode_lists, for_files_from, list_source
from .watch import Vitals, decode, own_vitals

_GONE = r"transfer that this key was made for is not running|Permission denied \("
DIVIDE = "longhaul divide"  # the command that has the source divided among the runs
VITALS = "longhaul vitals"  # the command that has the serving end tell whether its rsync is alive
_ANSWER = 30.0  # seconds for the answer
_LOOK = 0.5  # seconds between looks at the stop event


class _RsyncServer(SshServer):
    """An ssh server for rsync.

    ``ready`` also holds ``root``, as messages name it, ``leftover``, ``private`` and how rsync is ``confined``.
    """

    def __init__(self, context: Context, confinement: RootConfinement) -> None:
        super().__init__(context, rsync_handler(context, confinement), chroots=confinement.kind == CHROOT)
        self.ready["root"] = "/" if confinement.kind == CHROOT else os.fsdecode(context.root)
        self.ready["confined"] = confinement.kind
        self.ready["leftover"] = bool(context.serve.get("leftover"))
        self.ready["private"] = context.serve["ssh"] == "private"


def serve(context: Context) -> Server:
    """Be ready for the driving end's ssh; what it may run is one direction of rsync in this root."""
    versions(context.settings)
    return _RsyncServer(context, own_confinement(context))


def own_confinement(context: Context) -> RootConfinement:
    """Decide what confines rsync on the serving end. Raises TransferFailed if it must be confined and cannot be."""
    settings = context.settings
    found = decide_confinement(settings, context.side, tuple(settings["rsync"][context.side]), may_change_root())
    why = why_not_untrusted(settings, context.side, found) if settings["trust"] == "none" else ""
    if why:
        raise TransferFailed(
            f"trust is none, and rsync cannot be confined to {os.fsdecode(context.root)} here: {why}. Use method "
            "stream, or set trust: full if you trust root on both hosts"
        )
    return found


def rsync_handler(context: Context, confinement: RootConfinement) -> Handler:
    """Return what decides on each command that the driving end asks for."""
    confined = confinement.kind
    folders, keeps = own_folders(context, confined), own_descriptors(context)
    run = chrooting(context) if confined == CHROOT else None
    if context.side == "source":
        lists = os.path.join(context.folder, LISTS)
        os.makedirs(lists, mode=0o700, exist_ok=True)
        if context.settings["only"] is not None:
            with open(os.path.join(lists, "only"), "wb") as stream:
                stream.write(for_files_from(os.fsencode(context.settings["only"])))

    def handle(command: str, is_alone: bool) -> Work:
        if command == DIVIDE and context.side == "source" and context.settings["only"] is None:
            return lambda _stdin, stdout: _divide(context, stdout)
        if command == VITALS:
            return own_vitals(os.getpid(), lambda: Tickets(context.folder).read().paused)
        if not is_rsync(command):
            raise CommandRefusal(f"{command[:200]!r} is no part of a transfer with rsync")
        argv = server_argv(command, context.side, folders, context.settings, confined)
        if context.side == "dest" and not context.settings["check"] and is_alone:
            adopt(open_staging(context))  # an earlier receiver may have been killed
        if run is not None:
            return run(argv)
        if confined == CONFINE_ROOT:
            withheld = [os.fsencode(f"--filter={rule}") for rule in withheld_rules(context.settings, context.side)]
            argv[2:2] = [b"--confine-root=" + context.root, *withheld]
        return Service(argv=argv, cwd=context.top, extra_environment=user_variables(), keeps=keeps)

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
    line = RsyncPeer(
        far=Far(address=f"{bracketed_host(peer['address'])}:./", shell=rsync_shell(ssh)),
        far_roots=(peer.get("root", ""), "/"),
        explain=lambda stderr, code: explain(stderr, code) or "",
        vitals=lambda: _far_vitals(context, ssh),
        keeps_lists=not peer.get("confined"),
        gone=_GONE + ("|Connection refused" if peer.get("private") else ""),
    )
    outcome = rsync_passes.transfer(context, line, lambda: _divide_far(context, ssh))
    outcome.cmd = _commands(outcome.cmd, context.side)
    return outcome


def _commands(cmd: dict[str, list[str]], side: str) -> dict[str, list[str]]:
    other = {"source": "dest", "dest": "source"}[side]
    sender = ["--sender"] if other == "source" else []
    return {side: cmd.get("drive", []), other: ["rsync", "--server", *sender, "...", ".", "./"]}


def _far_vitals(context: Context, ssh: list[str]) -> Vitals | None:
    """Ask the peer what its rsync has done."""
    said: list[bytes] = []
    argv = [*ssh, ssh_host(context.peer["address"]), VITALS]
    rsync_child.run(argv, said.append, lambda _text: None, stop=context.stop, limit=_ANSWER)
    return decode(b"".join(said))


def _divide(context: Context, stdout: int) -> int:
    """Divide the source into lists in the job's folder, and say what is in them."""
    with os.fdopen(stdout, "wb") as stream:
        found = list_source(context.root, context.settings, top=context.top)
        lists = divide(found, context.settings["streams"], os.path.join(context.folder, LISTS))
        stream.write(encode_lists(lists))
    return 0


def _divide_far(context: Context, ssh: list[str]) -> Lists:
    """Have the source divided by the peer. Raise ValueError if that fails."""
    process = subprocesses.start(
        [*ssh, ssh_host(context.peer["address"]), DIVIDE], stdout=subprocess.PIPE, die_with_parent=True
    )
    try:
        while True:
            try:
                said, _nothing = process.communicate(timeout=_LOOK)
            except subprocess.TimeoutExpired:
                if context.stop.is_set():
                    raise TransferFailed(rsync_passes.STOPPED) from None
                continue
            return decode_lists(said, FAR_LIST)
    finally:
        process.kill()
        process.wait()
