# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The job's side of the gate: its socket, and what a connection hands over."""

from __future__ import annotations

import array
import os
import socket
import tempfile
from dataclasses import dataclass

from .forced_command import SOCKET

_PATH_MAX = 100  # bytes in a socket's path: 108 on Linux, 104 on FreeBSD, with the final zero
_COMMAND_MAX = 16 * 1024 * 1024  # more than any system lets a command line have
_PATIENCE = 10.0  # seconds for the gate to say what it was asked


@dataclass(frozen=True)
class ClientConnection:
    """The three descriptors of a connection through ssh. They belong to the job now."""

    stdin: int
    stdout: int
    stderr: int

    def close(self) -> None:
        """Close the job's copies."""
        for fd in (self.stdin, self.stdout, self.stderr):
            os.close(fd)


def listen(folder: str, uid: int) -> socket.socket:
    """Listen for gates in a folder that nobody else can write to; only the user ``uid`` and root may connect."""
    path = os.path.join(folder, SOCKET)
    if os.path.lexists(path):  # of a job that was killed: this job holds the folder's lock
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if len(os.fsencode(path)) <= _PATH_MAX:
        listener.bind(path)
    else:
        with tempfile.TemporaryDirectory() as short:
            link = os.path.join(short, "f")
            os.symlink(folder, link)
            listener.bind(os.path.join(link, SOCKET))
    os.chmod(path, 0o600)
    if uid != os.geteuid():
        os.chown(path, uid, -1)
    listener.listen(64)
    return listener


def receive(connection: socket.socket) -> tuple[str, ClientConnection]:
    """Read what a gate sends. Raise OSError if it is no gate, or was cut off."""
    connection.settimeout(_PATIENCE)
    fds = array.array("i")
    try:
        head, ancillary, _flags, _address = connection.recvmsg(4, socket.CMSG_SPACE(3 * fds.itemsize))
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
        length = int.from_bytes(head, "big")
        if len(head) != 4 or len(fds) != 3 or length > _COMMAND_MAX:
            raise OSError("this was no gate")
        command = b""
        while len(command) < length:
            more = connection.recv(length - len(command))
            if not more:
                raise OSError("the gate went away")
            command += more
    except BaseException:
        for fd in fds:
            os.close(fd)
        raise
    connection.settimeout(None)
    for fd in fds:
        os.set_inheritable(fd, False)
    return os.fsdecode(command), ClientConnection(*fds)
