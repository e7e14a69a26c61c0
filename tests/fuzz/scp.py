# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our scp server: whatever a client says, no file is opened but those of the plan."""

from __future__ import annotations

from functools import partial
from typing import Iterator

from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy import rcp_server
from ansible_collections.longhaul.fleet.tests.fuzz.served_files import AT_DEST, AT_SOURCE, SHARD, serve
from ansible_collections.longhaul.fleet.tests.support import scp_client


def talk(data: bytes) -> None:
    """Let a client talk to a source (the first byte is even) or a destination."""
    is_dest = bool(data and data[0] % 2)
    serve(is_dest, data[1:], rcp_server.take_files if is_dest else partial(rcp_server.send_files, SHARD))


def samples() -> Iterator[bytes]:
    """Yield sessions as clients hold them."""
    yield b"\0" + bytes(2 + 2 * len(AT_SOURCE) + 1)
    yield b"\0" + bytes(3) + b"\1scp: no space left\n" + bytes(9)
    files = [(b"%d" % number, b"text") for number in range(len(AT_DEST))]
    yield b"\1" + scp_client.pushed(b"view-%d" % SHARD, files)
    for said in scp_client.evil(SHARD, "/etc/passwd"):
        yield b"\1" + said
