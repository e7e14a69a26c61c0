# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep a snapshot from being pruned while it is read. Private to the collection.

Who reads one in this process has a shared ``flock`` on its folder. Transfers and comparisons that read from it are jobs
of their own, and are known by the locks that they hold anyway. Both die with their processes, so nothing is ever held
by what is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import Callable, Iterator

from .repository import Series, SnapshotFolder


def open_to_read(series: Series, name: str) -> SnapshotFolder:
    """Open a snapshot that stays while it is open. Raise FileNotFoundError if there is none any more."""
    snapshot = series.snapshot(name)
    try:
        with contextlib.suppress(OSError):  # a network file system may have no locks on folders
            fcntl.flock(snapshot.fd, fcntl.LOCK_SH)  # a prune has it for the moment of a rename only
        if not os.path.samestat(os.fstat(snapshot.fd), os.stat(name, dir_fd=series.fd, follow_symlinks=False)):
            raise FileNotFoundError(name)
    except BaseException:
        os.close(snapshot.fd)
        raise
    return snapshot


@contextlib.contextmanager
def unless_read(series: Series, name: str, reader: Callable[[str], str | None]) -> Iterator[str | None]:
    """Yield None if no process reads a snapshot, and keep others from beginning to; else yield who does.

    ``reader`` says which job reads at or below a path.
    """
    with contextlib.ExitStack() as stack:
        try:
            snapshot = stack.enter_context(series.snapshot(name))
            fcntl.flock(snapshot.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield "a restore"
            return
        except OSError:
            pass
        yield reader(os.path.join(series.path, name))  # a copy reads the manifest, too
