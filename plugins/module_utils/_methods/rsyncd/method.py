# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Method rsyncd: rsync to a daemon, one that is there or one for this transfer."""

from __future__ import annotations

import os
import re
import tempfile

from ..._core.context import Context, Server, staging_name
from ..._core.counted import counted
from ..._core.errors import PeerUnreachable, TransferFailed
from ..._core.outcome import Outcome
from ..._core.settings import DaemonModule
from ..._model.entry import SYMLINK
from ..._model.filters import Filters
from ..._model.paths import escape
from ..._tree.walk import walk
from ..rsync import passes as rsync_passes
from ..rsync.argv import Far, RsyncRun, versions
from ..rsync.run import RsyncPeer, RsyncRunner
from ..rsync.tally import Tally
from ..ssh.client_command import bracketed_host
from .conf import MODULE, USER, boolean
from .server import ConfiguredDaemon, OwnDaemon, far_terms

_ROOTS = ("root", "0", "*")


def serve(context: Context) -> Server:
    """Start a daemon for this transfer, or stand by the one that is configured (``settings["rsyncd_module"]``).

    ``context.serve``: ``address`` to listen at, ``ports`` to try (0: any), ``allow``: addresses that may connect.
    ``context.secrets["daemon"]``: the password. Raises TransferFailed, and then nothing is left behind.
    """
    versions(context.settings)
    module = context.settings.get("rsyncd_module")
    if module:
        return ConfiguredDaemon(context, module)
    return OwnDaemon(context)


def drive(context: Context) -> Outcome:
    """Run rsync here, against the daemon; asks the daemon first whether it will do what is needed."""
    versions(context.settings)
    line = daemon_line(context)
    _ask(context, line)
    if context.side == "source" and not symlinks_kept(context):
        _refuse_rewritten_symlinks(context)
    outcome = rsync_passes.transfer(context, line)
    outcome.warnings += module_warnings(context.settings.get("rsyncd_module"), context.side)
    other = {"source": "dest", "dest": "source"}[context.side]
    outcome.cmd = {
        context.side: outcome.cmd.get("drive", []),
        other: list(context.peer.get("cmd", ["rsync", "--daemon"])),
    }
    return outcome


def daemon_line(context: Context) -> RsyncPeer:
    """Return how the daemon is reached; its password goes to rsync's standard input."""
    module, peer, settings = context.settings.get("rsyncd_module"), context.peer, context.settings
    password = context.secrets.get("rsyncd_password" if module else "daemon", "")
    user = (module.get("user") if module else USER) or ""
    subpath = str(peer.get("subpath", module.get("subpath", "") if module else "")).strip("/")
    place = f"{module['name'] if module else MODULE}/" + (f"{subpath}/" if subpath else "")
    login = f"{user}@" if user else ""
    port = module["port"] if module else peer["port"]
    base, link_dest = far_terms(subpath, staging_name(settings["id"])), peer.get("link_dest")
    far = Far(
        address=f"rsync://{login}{bracketed_host(peer['address'])}:{port}/{place}",
        password_on_stdin=bool(password),
        daemon=True,
        base=base,
        link_dest=tuple(link_dest or ()),
    )
    return RsyncPeer(
        far=far,
        stdin=f"{password}\n".encode() if password else b"",
        far_roots=(peer.get("root", ""), f"/{subpath}"),
        gone="" if module else "Connection refused",  # a configured daemon may be restarted
    )


def symlinks_kept(context: Context) -> bool:
    """Return whether the daemon stores symlinks unchanged: only in a plain chroot (rsync's clientserver.c)."""
    module = context.settings.get("rsyncd_module")
    if not module:
        return bool(context.peer.get("chroot", True))
    options = module.get("options") or {}
    return (
        boolean(options.get("use chroot"), True)
        and not boolean(options.get("munge symlinks"), False)
        and "/./" not in options.get("path", "")
    )


def module_warnings(module: DaemonModule | None, side: str) -> list[str]:
    """Return what a configured module silently loses, as far as its options are known."""
    options = module.get("options") if module else None
    if not module or not options or side == "dest":  # the daemon is the sender then, and reads what its user may
        return []
    user = options.get("uid", "nobody")
    if user in _ROOTS:
        return []
    return [
        f"the module {module['name']} works as user {user}: owners, devices and trusted attributes are not preserved. "
        "Set `uid = root` in its part of rsyncd.conf where they matter"
    ]


def kept_without_chroot(path: bytes, target: bytes) -> bool:
    """Return whether a daemon without chroot keeps this symlink's target, which it cleans as it does paths."""
    parts = target.split(b"/")
    climbs = 0
    while climbs < len(parts) and parts[climbs] == b"..":
        climbs += 1
    tidy = not any(part in (b"", b".", b"..") for part in parts[climbs:])
    return tidy and climbs <= path.count(b"/")


def _ask(context: Context, line: RsyncPeer) -> None:
    """Make a trial run over no file at all, with every option of the real one; raises where the daemon declines."""
    with tempfile.NamedTemporaryFile(dir=context.folder, prefix="nothing-") as nothing:
        silent = Tally(Outcome(), type(context.progress)(), 0)
        delete = bool(context.settings["delete"]) and context.settings["only"] is None
        # No name but the root's: an empty list would end before the module's own checks.
        nothing.write(b"./\0")
        nothing.flush()
        result = RsyncRunner(context, line, silent).run(RsyncRun(dry=True, delete=delete, files_from=nothing.name))
    if result.failure is not None:
        kind = PeerUnreachable if result.failure.transient else TransferFailed
        where = re.sub(r"^rsync://(?:[^@]*@)?", "", line.far.address).rstrip("/")
        raise kind(f"the rsync daemon at {where}: {result.failure.text}")


def _refuse_rewritten_symlinks(context: Context) -> None:
    """Refuse a tree whose symlinks would not arrive as they are."""
    settings = context.settings
    try:
        filters = Filters.parse(settings["rules"])
    except ValueError as error:  # a rule that only rsync can follow
        raise TransferFailed(f"the symlinks of the source cannot be checked beforehand: {error}") from error
    only = os.fsencode(settings["only"]) if settings["only"] is not None else None
    changed = [
        entry.path
        for entry in walk(
            context.root,
            filters=filters,
            one_file_system=settings["one_file_system"],
            only=only,
            on_error=lambda _path, _error: None,
        )
        if entry.type == SYMLINK and not kept_without_chroot(entry.path, entry.target)
    ]
    if changed:
        raise TransferFailed(
            f"{counted(len(changed), 'symlink is', 'symlinks are')} absolute or out of the tree, for example "
            f"{escape(changed[0])}, and a daemon without `use chroot = yes` (which needs root) would rewrite that. "
            "Nothing was transferred. Use become at the destination, connect: pull, or method rsync"
        )
