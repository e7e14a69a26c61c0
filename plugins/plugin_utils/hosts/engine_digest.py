# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The digest of the engine, which the control node remembers: to pack the engine takes longer than most imports."""

from __future__ import annotations

import functools

from ..common.memory import Memory
from . import engine

_KIND = "engine"  # of what the control node remembers


@functools.lru_cache(maxsize=1)
def engine_digest() -> str:
    """Return the digest of the engine, which is all that a host needs that keeps it.

    It is packed for that only if a file of it has changed since it was packed the last time; ``preload`` has that done
    before Ansible forks its workers.
    """
    memory, place = Memory(), str(engine.MODULE_UTILS)
    state = engine.state_of_sources()  # before the files are read: of what changes meanwhile nothing is remembered
    digest = memory.recall(_KIND, place).get(state)
    if isinstance(digest, str):
        return digest
    digest = engine.packed_engine().digest
    memory.keep(_KIND, place, {state: digest})
    return digest


def forget_digest() -> None:
    """Have the next run pack the engine, and remember its digest again."""
    Memory().keep(_KIND, str(engine.MODULE_UTILS), {})
