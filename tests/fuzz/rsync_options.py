# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate of method rsync: whatever command is asked for, what is served is what an honest rsync asks for."""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path
from typing import Any, Iterator

from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync import server_options
from ansible_collections.longhaul.fleet.tests.fuzz.chance import Chance
from ansible_collections.longhaul.fleet.tests.support.rsync_commands import (
    PLANS,
    USER,
    mutated,
    options_of,
    parse,
    runs,
    sent,
    why_not,
)
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import settings

_ASKED: list[dict[str, Any]] = [*PLANS, *({"rsync_opts": [option]} for option in USER)]


_HONEST = Path(".build/fuzz/rsync-commands.json")  # what samples() heard from the real rsync
_SIDES = ("source", "dest")


@functools.lru_cache(maxsize=None)
def _honest() -> list[dict[str, list[list[str]]]]:
    """Return, for each plan and side, the options of the commands that the real rsync asks for."""
    found: list[dict[str, list[list[str]]]] = json.loads(_HONEST.read_text())
    return found


def ask(data: bytes) -> None:
    """Ask for a command that is like an honest one, or for any words at all."""
    chance = Chance(data)
    number, side = chance.randrange(len(_ASKED)), chance.choice(_SIDES)
    confined = side == "dest" or chance.randrange(2) == 0
    commands = _honest()[number][side]
    options = mutated(commands, chance)
    if chance.randrange(8) == 0:
        options = chance.text().split()
    try:
        server_options.check_options(options, side, settings(**_ASKED[number]), confined)
    except server_options.NotPlanned:
        return
    asked = parse(options)
    reasons = [why_not(asked, parse(honest), side) for honest in commands]
    assert "" in reasons or _brings_its_list(asked.words, confined), (number, side, options, min(reasons, key=len))


def _brings_its_list(words: Any, confined: bool) -> bool:
    """Whether it is a confined source that is told the names: the honest commands here are of one that is not."""
    return confined and "--files-from=-" in words


def samples() -> Iterator[bytes]:
    """Ask the real rsync what it says under each plan; yield something to begin with."""
    with tempfile.TemporaryDirectory() as folder:
        names = Path(folder, "names")
        names.write_bytes(b"./a\0")
        heard = [
            {side: [options_of(sent(side, run, **plan)) for run in runs(side, plan, str(names))] for side in _SIDES}
            for plan in _ASKED
        ]
    _HONEST.write_text(json.dumps(heard))
    for number in range(64):
        yield bytes([number]) * 40
