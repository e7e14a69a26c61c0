# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our SFTP server: whatever a client says, no file is opened but those of the plan."""

from __future__ import annotations

import os
from typing import Iterator

from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy import sftp_server
from ansible_collections.longhaul.fleet.tests.fuzz.served_files import AT_SOURCE, SHARD, serve
from ansible_collections.longhaul.fleet.tests.support import sftp_client


def talk(data: bytes) -> None:
    """Let a client talk to a source (the first byte is even) or a destination."""
    serve(bool(data and data[0] % 2), data[1:], sftp_server.answer_requests)


def samples() -> Iterator[bytes]:
    """Yield sessions as clients hold them."""
    for is_dest, access in ((1, sftp_client.FOR_WRITING), (0, sftp_client.FOR_READING)):
        said = sftp_client.packet(sftp_client.INIT, b"\0\0\0\3")
        for number in range(len(AT_SOURCE)):
            path, handle = b"view-%d/%d" % (SHARD, number), sftp_client.string(b"\0\0\0\1")
            said += sftp_client.request(sftp_client.STAT, 9, sftp_client.string(path))
            said += sftp_client.request(sftp_client.OPEN, 1, sftp_client.opening(path, access))
            if is_dest:
                said += sftp_client.request(sftp_client.WRITE, 2, sftp_client.writing(b"\0\0\0\1", 0, b"text"))
            else:
                said += sftp_client.request(sftp_client.READ, 2, handle, bytes(8), b"\0\0\1\0")
            said += sftp_client.request(sftp_client.FSTAT, 4, handle)
            said += sftp_client.request(sftp_client.CLOSE, 3, handle)
            yield bytes([is_dest]) + said
        folder = sftp_client.string(b"view-%d" % SHARD)
        said += sftp_client.request(sftp_client.OPENDIR, 5, folder)
        said += sftp_client.request(sftp_client.READDIR, 6, sftp_client.string(b"\0\0\0\1"))
        said += sftp_client.request(sftp_client.REALPATH, 7, folder)
        for kind, fields in list(sftp_client.evil(access, os.fsencode("/etc/passwd")))[::97]:
            yield bytes([is_dest]) + said + sftp_client.request(kind, 8, fields)
