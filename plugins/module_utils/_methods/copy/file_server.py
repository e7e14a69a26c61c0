# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The server of scp and sftp for one client, in a process of its own."""

from __future__ import annotations

import os
from typing import Callable, Sequence

from ..._core.errors import ProtocolError
from ..._engine.net.control_channel import enlarge_pipe
from ..._engine.net.rate_limit import TokenBucket
from .shard_files import Files

_COMPLAINTS = 10  # of one session, for the client's standard error: its own words do not say why


class PeerPipe:
    """The connection to the client, under a limit on what it moves. All methods raise OSError."""

    def __init__(self, stdin: int, stdout: int, bucket: TokenBucket) -> None:
        for fd in (stdin, stdout):
            os.set_blocking(fd, True)
            enlarge_pipe(fd)
        self._stdin, self._stdout, self._bucket = stdin, stdout, bucket
        self._complaints = _COMPLAINTS

    def read_into(self, buffer: memoryview) -> int:
        """Read what is there; return how many bytes, 0 at the end."""
        count = os.readv(self._stdin, [buffer])
        if count:
            self._bucket.take(count)
        return count

    def send(self, parts: Sequence[bytes]) -> None:
        """Send all of it."""
        length = sum(map(len, parts))
        self._bucket.take(length)
        written = os.writev(self._stdout, parts)
        if written < length:
            rest = memoryview(b"".join(parts))[written:]
            while rest:
                rest = rest[os.write(self._stdout, rest) :]

    def complain(self, text: str) -> None:
        """Say something on the client's standard error, but not without end."""
        if self._complaints:
            self._complaints -= 1
            os.write(2, f"longhaul: {text}\n".encode("utf-8", "replace"))


Talk = Callable[[Files, PeerPipe], bool]  # holds a conversation, and returns whether all went well


class FileServer:
    """A function for a connection (see ``ssh.service.Work``).

    ``talk`` holds the conversation. ``make_files`` and ``make_bucket`` are called in
    the new process; ``keeps`` are the descriptors that it needs.
    """

    def __init__(
        self,
        talk: Talk,
        make_files: Callable[[], Files],
        keeps: tuple[int, ...],
        make_bucket: Callable[[], TokenBucket] = lambda: TokenBucket(0),
    ) -> None:
        self._talk, self._make_files, self.keeps, self._make_bucket = talk, make_files, keeps, make_bucket

    def __call__(self, stdin: int, stdout: int) -> int:
        pipe = PeerPipe(stdin, stdout, self._make_bucket())
        files = self._make_files()
        try:
            return 0 if self._talk(files, pipe) else 1
        except ProtocolError as error:
            pipe.complain(f"protocol error: {error}. The session ends")
            return 1
        except (BrokenPipeError, ConnectionResetError):
            return 1
        finally:
            files.close()
