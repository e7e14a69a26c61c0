# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which ``rsync --server`` commands the serving end runs for the other end, and as what. Private to the collection.

The other end asks over a one-time key for a command, in text. What runs is made anew from it: one direction, one root
(entered by chdir, so the argument is always ``./``), options from a list, and own folders in place of the tokens.
The options are those which ``server_options()`` in rsync's options.c sends, from 3.1 to 3.5.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import Any

from .rsync_argv import FAR_LINK, FAR_PARTIAL, FAR_TMP

ENVIRONMENT_DROPPED = "RSYNC_"  # rsync reads options and passwords from such variables


class CommandRefused(Exception):
    """The command is none that this transfer may ask for. The text says what was found and why it matters."""


# One bundle of short options, with what -e stands for on a server: the capabilities of the client.
_BUNDLE = re.compile(r"^-[vqbunldKmOJyLkWHogDtUNpEAXrcCIRxSz]*e\d*\.[\d.]*[A-Za-z]*$")
_WORD = re.compile(
    r"^(?:"
    r"--(?:timeout|bwlimit|max-delete|modify-window|checksum-seed|compress-level)=-?\d+"
    r"|-@-?\d+|-B\d+"
    r"|--(?:checksum-choice|compress-choice|skip-compress|iconv|usermap|groupmap|max-alloc|min-size|max-size|info)=[^/]*"
    r"|--log-format=(?:%i|%i%I|%o|X)"
    r"|--(?:delete|delete-before|delete-during|delete-delay|delete-after|delete-excluded|force|partial|numeric-ids"
    r"|stats|size-only|existing|ignore-existing|copy-unsafe-links|safe-links|specials|no-specials|no-r|no-relative"
    r"|no-implied-dirs|new-compress|old-compress|msgs2stderr|no-msgs2stderr|super|fsync|inplace|no-W|append"
    r"|preallocate|open-noatime|use-qsort)"
    r")$"
)
_SENDER_ONLY = frozenset(["--files-from=-", "--from0"])
_FOLDERS = frozenset(["--temp-dir", "--partial-dir", "--link-dest"])


def is_rsync(command: str) -> bool:
    """Whether the command claims to be a server of rsync."""
    return command.startswith("rsync --server ")


def server_argv(command: str, side: str, staging: bytes, settings: dict[str, Any]) -> list[bytes]:
    """Give the argv to run in the serving end's root for a command of the other end; raises CommandRefused.

    ``side`` is what the serving end is; ``staging`` its folder for temporary and partial files.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CommandRefused(f"it cannot be split into words: {error}") from error
    if words[:2] != ["rsync", "--server"] or words[-2:] != [".", "./"]:
        raise CommandRefused("only `rsync --server ... . ./` is served: the root is decided on this host")
    words = words[2:-2]
    sends = words[:1] == ["--sender"]
    if sends != (side == "source"):
        raise CommandRefused(f"this end is the {side} of the transfer, and serves that direction only")
    argv = [b"rsync", b"--server"] + ([b"--sender"] if sends else [])
    waiting = iter(words[1:] if sends else words)
    for word in waiting:
        name, equals, value = word.partition("=")
        if name in _FOLDERS and not sends:
            folder = value if equals else next(waiting, "")
            argv += [name.encode(), _own_folder(name, folder, staging, settings)]
        elif _BUNDLE.match(word) or _WORD.match(word) or (sends and word in _SENDER_ONLY):
            argv.append(os.fsencode(word))
        else:
            raise CommandRefused(f"the option {word!r} is not among those that a transfer uses")
    return argv + [b".", b"./"]


def _own_folder(option: str, token: str, staging: bytes, settings: dict[str, Any]) -> bytes:
    folders = {
        ("--temp-dir", FAR_TMP): os.path.join(staging, b"tmp"),
        ("--partial-dir", FAR_PARTIAL): os.path.join(staging, b"partial"),
    }
    for number, path in enumerate(settings["link_dest"]):
        folders["--link-dest", f"{FAR_LINK}/{number}"] = os.fsencode(path)
    if (option, token) not in folders:
        raise CommandRefused(f"the folder {token!r} for {option} is none of this transfer")
    return folders[option, token]


def clean_environment() -> dict[str, str]:
    """Give this process's environment for a run of rsync: messages in English, no options from variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ENVIRONMENT_DROPPED)}
    for name in [name for name in kept if name.startswith("LC_") or name in ("LANG", "LANGUAGE")]:
        del kept[name]
    return dict(kept, LC_ALL="C")
