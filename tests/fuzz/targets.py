# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can be fuzzed: each target takes an input, and raises where something ended otherwise than it may."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Callable, Iterator, NamedTuple

from ansible_collections.longhaul.fleet.tests.fuzz import decoders, rsync_options, scp, sftp, talks

FOUND = Path(".build/fuzz")


def _nothing() -> Iterator[bytes]:
    return iter(())


def _noise() -> Iterator[bytes]:
    """Yield decisions for long conversations, which a fuzzer that begins with nothing is slow to find."""
    chance = random.Random(0)
    for size in (30, 100, 300, 1000) * 8:
        yield chance.randbytes(size)


class Target(NamedTuple):
    """One kind of input."""

    take: Callable[[bytes], None]
    code: tuple[str, ...]  # what it is to reach, below plugins/module_utils
    samples: Callable[[], Iterator[bytes]] = _nothing  # to begin with


_WIRE = "_engine/wire/*.py"
_FILES = "_methods/copy/shard_files.py"
TARGETS = {
    "bytes": Target(decoders.read_bytes, (_WIRE,), decoders.samples),
    "turns": Target(talks.take_turns, (_WIRE,), _noise),
    "dest": Target(talks.converse("dest"), ("_engine/receiver/*.py",), _noise),
    "source": Target(talks.converse("source"), ("_engine/sender/*.py",), _noise),
    "scp": Target(scp.talk, ("_methods/copy/rcp_*.py", _FILES), scp.samples),
    "sftp": Target(sftp.talk, ("_methods/copy/sftp_*.py", _FILES), sftp.samples),
    "options": Target(rsync_options.ask, ("_methods/rsync/server_options.py",), rsync_options.samples),
}
