# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``rsync --server`` commands: the serving end checks those of the peer, and runs its own version of them.

The peer asks over a one-time key for a command, in text. What runs is recreated from it: one direction, one root
(entered by chdir, so the argument is always ``./``), the options that the plan leads to (``server_options``), and own
folders in place of the tokens.
"""

from __future__ import annotations

import os
import shlex
from typing import Mapping

from ..._core.context import Context, staging_name
from ..._core.errors import CommandRefusal
from ..._core.settings import Settings
from ..._core.subprocesses import own_variables
from ..._tree.held_root import program_path
from ..._tree.staging import PARTIAL, TEMPORARY, open_staging
from .argv import FAR_LINK, FAR_LIST, FAR_PARTIAL, FAR_TMP
from .confinement import CHROOT, NOTHING
from .server_options import NotPlanned, check_options

LISTS = "lists"  # in the source's job folder: the names that it lets rsync send


def is_rsync(command: str) -> bool:
    """Return whether the command claims to be a server of rsync."""
    return command.startswith("rsync --server ")


def server_argv(
    command: str, side: str, folders: Mapping[str, bytes], settings: Settings, confined: str = NOTHING
) -> list[bytes]:
    """Return the argv to run in the serving end's root for a command of the peer; raises CommandRefusal.

    ``side`` is what the serving end is; ``folders`` has what each token (``argv.TOKENS``) stands for here. Where rsync
    is ``confined``, the peer may send the list of names itself.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CommandRefusal(f"it cannot be split into words: {error}") from error
    if words[:2] != ["rsync", "--server"] or words[-2:] != [".", "./"]:
        raise CommandRefusal("only `rsync --server ... . ./` is served: the root is decided on this host")
    words = words[2:-2]
    sends = words[:1] == ["--sender"]
    if sends != (side == "source"):
        raise CommandRefusal(f"this end is the {side} of the transfer, and serves that direction only")
    try:
        options = check_options(words[1:] if sends else words, side, settings, bool(confined))
    except NotPlanned as error:
        raise CommandRefusal(str(error)) from error
    argv = [b"rsync", b"--server"] + ([b"--sender"] if sends else [])
    for option, token in options:
        argv.append(os.fsencode(option))
        if token and token not in folders:
            raise CommandRefusal(f"the folder {token!r} for {option} is none of this transfer")
        argv += [folders[token]] if token else []
    return argv + [b".", b"./"]


def own_folders(context: Context, confined: str = NOTHING) -> dict[str, bytes]:
    """Return what the tokens of the peer's commands stand for on this host, by how rsync is confined here.

    Where a descriptor has a path (Linux), what the peer puts in the place of the staging folder leads nowhere; in a
    chroot it leads nowhere else in any case.
    """
    settings = context.settings
    if context.side == "source":
        if confined:
            return {}
        names = ["only", "directories", *(f"shard-{number}" for number in range(settings["streams"]))]
        return {f"{FAR_LIST}/{name}": os.fsencode(os.path.join(context.folder, LISTS, name)) for name in names}
    folders = {f"{FAR_LINK}/{number}": path for number, path in enumerate(older_paths(context))}
    if not settings["check"] and confined == CHROOT:
        staging = b"/" + os.fsencode(staging_name(settings["id"]))
        folders.update({FAR_TMP: staging + b"/" + TEMPORARY, FAR_PARTIAL: staging + b"/" + PARTIAL})
    elif not settings["check"]:
        staged = open_staging(context)
        temporary, partial = os.path.join(staged.path, TEMPORARY), os.path.join(staged.path, PARTIAL)
        if os.path.isdir("/proc/self/fd"):
            temporary = b"/proc/self/fd/%d" % staged.temporary_fd
            # rsync takes no symlink for this one, and what /proc has is one.
            partial = b"/proc/self/fd/%d/%s" % (staged.fd, PARTIAL)
        folders.update({FAR_TMP: temporary, FAR_PARTIAL: partial})
    return folders


def older_paths(context: Context) -> list[bytes]:
    """Return the folders of link_dest, as a program finds them that inherits ``older_fds``."""
    paths = [os.fsencode(path) for path in context.settings["link_dest"]]
    return [program_path(path, fd) for path, fd in zip(paths, context.older_fds or [-1] * len(paths))]


def own_descriptors(context: Context) -> tuple[int, ...]:
    """Name the descriptors that the paths of ``own_folders`` need."""
    if context.side == "source":
        return ()
    older = tuple(fd for fd in context.older_fds or () if fd >= 0)
    return older if context.settings["check"] else (*older, *open_staging(context).descriptors)


def user_variables() -> dict[str, str]:
    """Return what a run of rsync sees beyond the environment of all programs: whose run it is.

    ``--cvs-exclude`` and popt read files below HOME. Variables of its own (``RSYNC_*``), which hold options and
    passwords, it does not see.
    """
    return own_variables("HOME", "USER", "LOGNAME")
