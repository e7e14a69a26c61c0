# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a method is handed on one end of a transfer."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Callable

from .settings import Settings


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # pylint: disable=ansible-bad-function


class Progress:
    """How far an end is; the job writes it to the status file once a second."""

    def __init__(self) -> None:
        self.phase = "starting"
        self.bytes_done = 0
        self.bytes_total = 0  # 0: not known yet
        self.files_done = 0
        self.files_total = 0
        self.current = ""  # the path at work, escaped

    def moved(self, count: int) -> None:
        """So many bytes more went by; less than 0: of files that must come again."""
        self.bytes_done += count

    def as_dict(self) -> dict[str, Any]:
        """Give plain data. What travels twice, since a connection was lost, is done once."""
        done = max(0, self.bytes_done)
        return dict(vars(self), bytes_done=min(done, self.bytes_total) if self.bytes_total else done)


class Context:
    """One end of one transfer: where it is, what it shall do, and what it may use."""

    def __init__(
        self,
        side: str,
        part: str,
        root: bytes,
        settings: Settings,
        folder: str,
        peer: dict[str, Any] | None = None,
        serve: dict[str, Any] | None = None,
        secrets: dict[str, str] | None = None,
        progress: Progress | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        self.side = side  # "source" or "dest"
        self.part = part  # "drive" or "serve"
        self.root = root  # absolute and real; the contents of the source's root arrive in the destination's
        self.settings = settings
        self.folder = folder  # this job's own folder, 0700
        self.peer = {} if peer is None else peer  # for the driving end: address, port, user, known_hosts ...
        self.serve = {} if serve is None else serve  # for the serving end: address, ports, allowed peer ...
        self.secrets = {} if secrets is None else secrets
        self.progress = Progress() if progress is None else progress
        self.stop = threading.Event()  # set when the job shall end early
        self.log = _print if log is None else log
        self.staged: Any = None  # the open staging folders: see open_staging

    @property
    def staging(self) -> bytes:
        """The folder below the destination root that belongs to this transfer alone."""
        return os.path.join(self.root, os.fsencode(staging_name(self.settings["id"])))

    def secret_file(self, text: str, name: str = "secret") -> str:
        """Give a path at which programs of this user can read the text while this process lives.

        On Linux it is a memfd, so nothing reaches a disk; elsewhere a 0600 file in the job's folder.
        """
        data = text.encode()
        if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
            fd = os.memfd_create(name)
            path = f"/proc/{os.getpid()}/fd/{fd}"
        else:
            import tempfile

            fd, path = tempfile.mkstemp(prefix=name, dir=self.folder)
        os.fchmod(fd, 0o600)
        os.write(fd, data)
        return path


class Server:
    """What a method's ``serve(context)`` gives back: the serving end, ready to be connected to.

    The job publishes ``ready`` for the driving end, waits until it is told to stop or nobody was
    connected for a while, and then closes it. ``close`` leaves no process, port, key or file behind.
    """

    ready: dict[str, Any]  # becomes the driving end's Context.peer, on top of what the controller knows

    def active(self) -> bool:
        """Whether the driving end is connected at this moment."""
        raise NotImplementedError

    def close(self) -> None:
        """End everything that serve started."""
        raise NotImplementedError


def staging_name(transfer_id: str) -> str:
    """Name the folder below the destination root that holds temporary and partial files."""
    return f".longhaul-{transfer_id}"
