# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remove what jobs leave: what a killed one could not take back, and the folders that nobody came back for.

Private to the collection. What a job cannot take back is its one-time key, its daemon and that one's password, and its
staging folder; one that ends in order leaves none of this.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal

from .._core import subprocesses
from .._core.context import Serve, staging_name
from .._core.errors import TransferFailed
from .._core.json_shape import WrongShape
from .._core.state_folder import StateError
from .request import Request
from .state import JobFolder, all_folders

_FORGOTTEN = 30 * 86400  # seconds without a change, after which nobody comes back for the state of a transfer


def clean_up(folder: JobFolder) -> str:
    """Clear up after the dead job of a folder, whose request says what it made. Never call it while the job lives.

    Return why its staging folder stays, though the transfer succeeded; empty if it is gone, or is of use to a rerun.
    """
    request = folder.request
    serve = request.get("serve") or {}
    if serve.get("ssh") == "system":
        _take_key_back(folder.transfer_id, serve)
    if request.get("settings", {}).get("method") == "rsyncd" and request.get("part") == "serve":
        from .._methods.rsyncd import server as rsyncd_server  # only here, as below: most executions need neither

        _end_daemon(folder)
        for path in rsyncd_server.password_files(folder.transfer_id):
            with contextlib.suppress(OSError):
                os.unlink(path)
    is_done = folder.side == "dest" and os.path.exists(folder.file("succeeded"))
    return _remove_staging(folder.transfer_id, request) if is_done else ""


def remove_forgotten(now: float) -> None:
    """Remove what nobody came back for: folders of transfers, and leases; ``now``: seconds since 1970.

    What has arrived at the destinations stays, and a rerun goes on from there.
    """
    from .leases import remove_forgotten_leases  # only here: most executions start no job

    remove_forgotten_leases(now - _FORGOTTEN)
    for folder in all_folders():
        with contextlib.suppress(OSError, StateError):  # another user of this root is at it, or it stays
            if folder.last_change() < now - _FORGOTTEN and not folder.is_running():
                clean_up(folder)
                folder.remove()


def _remove_staging(transfer_id: str, request: Request) -> str:
    """Remove the staging folder that is left of a transfer that succeeded; return why it stays, empty if it is gone."""
    root, name = os.fsencode(request.get("root", "")), os.fsencode(staging_name(transfer_id))
    settings = request.get("settings", {})
    if settings.get("check", True) or not os.path.lexists(os.path.join(root, name)):  # the usual case
        return ""
    from .._tree import staging
    from .._tree.held_root import open_held, parse_probed

    probed = request.get("probed")
    try:
        root_fd = open_held(root, None if probed is None else parse_probed(probed))
        try:
            with contextlib.closing(staging.Staging(root, name, staging.owners_of(root, settings), root_fd)) as staged:
                return staged.settle(keep_partial=False)
        finally:
            os.close(root_fd)
    except (OSError, TransferFailed, WrongShape) as error:
        return str(error)


def _take_key_back(transfer_id: str, serve: Serve) -> None:
    from .._methods.ssh import authorized_keys

    try:
        user = pwd.getpwnam(serve["user"]) if serve.get("user") else pwd.getpwuid(os.geteuid())
        path = serve.get("authorized_keys") or os.path.join(user.pw_dir, ".ssh", "authorized_keys")
        authorized_keys.remove(path, transfer_id, user.pw_uid, user.pw_gid)
    except (KeyError, TransferFailed):  # the line opens nothing without its job, and the next run replaces it
        pass
    if os.geteuid() == 0:  # where the gate of another login user stood
        shutil.rmtree(f"/run/longhaul-{transfer_id}", ignore_errors=True)


def _end_daemon(folder: JobFolder) -> None:
    """End a daemon whose job and guard were both killed, where the process of that number is still ours."""
    try:
        with open(folder.file("rsyncd.pid"), encoding="ascii") as stream:
            pid = int(stream.read())
    except (OSError, ValueError):
        return
    if f"--config={folder.file('rsyncd.conf')}" in _command_line(pid):
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)


def _command_line(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            return os.fsdecode(stream.read().replace(b"\0", b" "))
    except OSError:
        pass
    with contextlib.suppress(OSError):
        argv = ["ps", "-ww", "-o", "args=", "-p", str(pid)]
        return os.fsdecode(subprocesses.run(argv).stdout)
    return ""
