# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every way in which a hostile host can answer, in every playbook and role, with the ansible-core versions of CORES."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ansible_collections.longhaul.fleet.tests.support.collections_folder import collections_folder
from ansible_collections.longhaul.fleet.tests.support.hostile_answers import (
    EVERY_MODE,
    HOSTS,
    MIXED,
    Stage,
    Trial,
    ended_at_facts,
)
from ansible_collections.longhaul.fleet.tests.support.hostile_trials import TRIALS
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

CORES = {"2.17": "oldest", "2.19": "core-2.19", "2.21": "dev"}  # the virtual environments that have them
AFTER = (0, 3, 8)  # honest answers: what comes first, in the middle of a job, and near its end
_VENV = Path(__file__).resolve().parents[1] / "tools/venv.py"
_WIDTH = 300


class Round(NamedTuple):
    """One run."""

    core: str
    trial: Trial
    modes: tuple[str, ...]
    after: int

    @property
    def name(self) -> str:
        """What ``--attack`` picks by, and a line shows."""
        named = "mixed" if self.modes == MIXED else "+".join(self.modes)
        return f"{self.core}\t{self.trial.name}\t{named}\tafter {self.after}"


def rounds(words: Sequence[str]) -> Iterator[Round]:
    """Yield all rounds, or those whose name has all of these words. What only adds to answers begins at once."""
    for core in CORES:
        for trial in TRIALS:
            for modes in (MIXED, *((mode,) for mode in EVERY_MODE)):
                for after in AFTER if not set(modes) & {*MIXED, "facts_variables", "tags"} else AFTER[:1]:
                    found = Round(core, trial, modes, after)
                    if all(word in found.name for word in words):
                        yield found


def run(words: Sequence[str], shows: bool) -> int:
    """Make the rounds, and print a line for each with what is wrong; return an exit code."""
    count = wrong = 0
    programs: dict[str, Path] = {}
    with Testbed(HOSTS) as bed, tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        playbooks = Playbooks(Path(folder), Path(folder), collections_folder())
        stage = Stage(bed, playbooks)
        for one in rounds(words):
            if one.core not in programs:
                made = subprocess.run(
                    [sys.executable, _VENV, CORES[one.core]], check=True, capture_output=True, text=True
                )
                programs[one.core] = Path(made.stdout.strip()) / "bin"
            playbooks.programs = programs[one.core]
            found = stage.attempt(one.trial, *one.modes, after=one.after)
            # A job may end before the hostile host begins to lie.
            problems = found.problems if found.altered or not one.after else []
            count, wrong = count + 1, wrong + bool(problems)
            outcome = "HARMED" if problems else "held"
            if ended_at_facts(found.output):
                outcome += ", ended as facts were gathered"
            print(f"{one.name}\t{found.altered} answers\t{outcome}", flush=True)
            for line in problems:
                print(f"  {line[:_WIDTH]}")
            if shows and problems:
                print(found.output)
    print(f"{count} rounds: {count - wrong} held")
    return int(bool(wrong))
