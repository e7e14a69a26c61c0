# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The methods by their names. Each is imported where it is used: out of an archive an import costs its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from .._core.errors import TransferFailed

if TYPE_CHECKING:
    from .._tree.staging import Staging


OVER_SSH = ("rsync", "scp", "sftp")  # the connecting side runs ssh, the listening side may run an sshd


def load(name: str) -> Any:
    """Return the module of a method."""
    if name == "rsync":
        from .rsync import method as rsync

        return rsync
    if name == "rsyncd":
        from .rsyncd import method as rsyncd

        return rsyncd
    if name == "scp":
        from .copy import scp

        return scp
    if name == "sftp":
        from .copy import sftp

        return sftp
    if name == "stream":
        from . import stream

        return stream
    if name == "tar_nc":
        from .copy import tar_nc

        return tar_nc
    raise TransferFailed(f"there is no method {name} in this version")


def leftover_adopter(method: str) -> Callable[[Staging], Any] | None:
    """Return what makes use of the temporary files that an interrupted run of a method left."""
    if method not in ("rsync", "rsyncd"):
        return None
    from .rsync import leftover

    return leftover.adopt
