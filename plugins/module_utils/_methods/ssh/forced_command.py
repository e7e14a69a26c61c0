# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The forced command of a one-time ssh key: hand the connection over to the running job.

It decides nothing. Its three descriptors and the command that the peer asked for go to the job through a Unix
socket in the job's folder; the job answers with an exit code. It runs once for every connection, so it imports little.
"""

from __future__ import annotations

import os
import socket
import sys

SOCKET = "gate"  # its name in the job's folder
LOST = 255  # what ssh itself gives back when a connection fails


def main(argv: list[str]) -> int:
    """Run for the job in the folder ``argv[0]``; give the exit code of what the job ran."""
    try:
        connection = connect(argv[0])
    except OSError as problem:
        sys.stderr.write(
            f"longhaul: the transfer that this key was made for is not running ({problem.strerror}). "
            "Run the play again: it makes a new key and goes on where the transfer stopped.\n"
        )
        return LOST
    command = os.environb.get(b"SSH_ORIGINAL_COMMAND", b"")
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, _ints(0, 1, 2))
    connection.sendmsg([len(command).to_bytes(4, "big")], [rights])
    if command:  # to send nothing could meet a connection that the job has ended already
        connection.sendall(command)
    # From here on the pipes to sshd belong to the job's program alone, so that its end of file is seen at once.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    try:
        code = connection.recv(1)
    except OSError:
        code = b""
    if not code:
        sys.stderr.write("longhaul: the transfer's job ended while this connection was open\n")
        return LOST
    return code[0]


def connect(folder: str) -> socket.socket:
    """Connect to the job's socket. A socket's path may have no more than about 100 bytes, hence the chdir."""
    os.chdir(folder)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(SOCKET)
    os.chdir("/")
    return connection


def _ints(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, sys.byteorder) for number in numbers)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
