# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder in which this user's jobs keep what they must remember on a host."""

from __future__ import annotations

import contextlib
import os
import stat
import sys


class StateError(Exception):
    """The state folder cannot be used; the text says why and what to do."""


def state_root() -> str:
    """Return this user's state root: /var/lib/longhaul for root (/var/db on FreeBSD), else below the home folder."""
    if os.geteuid() == 0:
        return "/var/db/longhaul" if sys.platform.startswith("freebsd") else "/var/lib/longhaul"
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "longhaul")


def private_folder(path: str) -> str:
    """Make the folder where it is missing; refuse one that another user could have put there or can write to."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.lstat(path)
    except OSError as error:
        raise StateError(
            f"the state folder {path} cannot be made: {error.strerror}. A transfer keeps its lock and progress there; "
            "make it writable for this user, or run the task with become"
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise StateError(f"{path} is not a folder of this user, so it is not safe to keep a transfer's state there")
    if stat.S_IMODE(found.st_mode) & 0o077:
        os.chmod(path, 0o700)
    return path


def replace_file(path: str, data: bytes, partial: str) -> None:
    """Replace a file of a private folder, mode 0600, as a whole; it is on the disk when this returns. Raises OSError.

    ``partial`` is the path at which it is written first, which nobody else writes at the same time.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(partial, flags, 0o600), "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
