# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Conversations: with a real end as a peer that knows the secret and lies, or between two ends without files."""

from __future__ import annotations

import contextlib
import gc
import io
import tempfile
from pathlib import Path
from typing import Callable

from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire import conversation
from ansible_collections.longhaul.fleet.tests.fuzz.chance import Chance
from ansible_collections.longhaul.fleet.tests.support import liar, walkers


def converse(side: str) -> Callable[[bytes], None]:
    """Return the liar for that side."""

    def lie(data: bytes) -> None:
        chance = Chance(data)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            end = liar.End(Path(folder), side)
            liar.tell_lies(end, chance, chance.random() < 0.5)
            ended = end.finish()
            assert isinstance(ended, TransferFailed), repr(ended)
            assert sorted(path.name for path in Path(folder).iterdir()) == ["job", "root"]
        del end, ended
        gc.unfreeze()  # a job rests from this
        gc.collect()

    return lie


def take_turns(data: bytes) -> None:
    """Let two ends talk, which must agree on everything, or let a peer lie to one."""
    chance = Chance(data)
    contents = chance.choice(list(conversation.Contents))
    role = chance.choice([None, *conversation.Role])
    if role is not None:
        walkers.lie(contents, role, chance, turns=100)
        return
    ends = walkers.walk(contents, chance, turns=200)
    assert (ends.source.sent, ends.dest.sent) == (ends.dest.received, ends.source.received)
