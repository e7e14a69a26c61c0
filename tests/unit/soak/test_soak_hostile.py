# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a hostile host could do with 0.1.0: seen to do harm there, and to do none here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.soak.hostile import BEFORE, COMMIT, attempt, here
from ansible_collections.longhaul.fleet.tests.soak.hostile_attacks import ATTACKS
from ansible_collections.longhaul.fleet.tests.soak.hostile_ground import Release
from ansible_collections.longhaul.fleet.tests.support import earlier_commit

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: needs root"),
    pytest.mark.skipif(bool(earlier_commit.why_not(COMMIT)), reason=f"cannot run here: no history that has {BEFORE}"),
]


@pytest.fixture(name="before", scope="module")
def _before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    folder = tmp_path_factory.mktemp("release")
    yield Release(BEFORE, Path(earlier_commit.unpack(folder, COMMIT)))


def variants() -> list[object]:
    """Return the attacks: the first of each critical finding is in make test, the others in make unit-long."""
    found, seen = [], set()
    for attack in ATTACKS:
        is_first = attack.finding.startswith("C") and attack.finding not in seen
        seen.add(attack.finding)
        found.append(pytest.param(attack, id=attack.id, marks=() if is_first else pytest.mark.long))
    return found


@pytest.mark.parametrize("attack", variants())
def test_what_did_harm_in_0_1_0_does_none_now(before, attack):
    then, now = attempt(attack, before), attempt(attack, here())
    for _again in range(4):  # some attacks need luck: the attacker's process must be seen at the right moment
        if not then.harms and not then.problems:
            then = attempt(attack, before)
    assert then.harms and not then.problems, then
    assert not now.harms and not now.problems, now


def test_each_critical_finding_is_tried():
    assert {attack.finding for attack in ATTACKS} >= {f"C{number}" for number in range(1, 7)}
