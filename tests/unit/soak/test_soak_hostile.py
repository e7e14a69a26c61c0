# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attacks by a hostile host during a transfer do no harm, and harm would be seen."""

from __future__ import annotations

import os
from typing import Callable

import pytest
from ansible_collections.longhaul.fleet.tests.soak.hostile import attempt
from ansible_collections.longhaul.fleet.tests.soak.hostile_attacks import ATTACKS, Attack
from ansible_collections.longhaul.fleet.tests.soak.hostile_ground import EVIL, STAGING, Ground

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: needs root"),
]


def variants() -> list[object]:
    """Return the attacks: the first of each critical finding is in make test, the others in make unit-long."""
    found, seen = [], set()
    for attack in ATTACKS:
        is_first = attack.finding.startswith("C") and attack.finding not in seen
        seen.add(attack.finding)
        found.append(pytest.param(attack, id=attack.id, marks=() if is_first else pytest.mark.long))
    return found


@pytest.mark.parametrize("attack", variants())
def test_an_attack_does_no_harm(attack):
    tried = attempt(attack)
    assert not tried.harms and not tried.problems, tried


def _dress(ground: Ground) -> None:
    os.chmod(ground.older / "same", 0o4755)


def _encrypt(ground: Ground) -> None:
    """Write into an older copy, and put its time back."""
    before = (ground.older / "same").stat()
    (ground.older / "same").write_text("the CONTENTS of same")
    os.utime(ground.older / "same", ns=(before.st_atime_ns, before.st_mtime_ns))


HARMS: dict[str, Callable[[Ground], object]] = {
    "secret was read": lambda ground: (ground.loot / "secret").write_text((ground.outside / "secret").read_text()),
    "evil is new": lambda ground: (ground.outside / "evil").write_text(EVIL),
    "secret is gone": lambda ground: (ground.outside / "secret").unlink(),
    "outside/tmp/x is new": lambda ground: (ground.outside / "tmp/x").mkdir(),
    "same: mode was": _dress,
    "same: content was": _encrypt,
}


@pytest.mark.parametrize("said", HARMS)
def test_harm_is_seen(tmp_path, said):
    ground = Ground(tmp_path)
    ground.watch()
    HARMS[said](ground)
    assert [line for line in ground.look() if said in line], ground.look()


def test_what_a_transfer_does_in_its_own_root_is_no_harm(tmp_path):
    ground = Ground(tmp_path)
    ground.watch()
    (ground.root / STAGING).mkdir()
    (ground.root / "file").write_text("arrived")
    os.link(ground.older / "zz", ground.root / "zz")
    assert ground.look() == []


def test_an_honest_transfer_that_fails_is_a_problem(tmp_path):
    """Else an attack would pass because nothing was transferred at all."""

    def run(ground: Ground) -> None:
        ground.watch()
        pair = ground.ends("stream", "dest")
        pair.plans["source"] = {"id": "f" * 16}
        ground.expect_well(pair.transfer())

    assert attempt(Attack("", "", run, "")).problems


def test_each_critical_finding_is_tried():
    assert {attack.finding for attack in ATTACKS} >= {f"C{number}" for number in range(1, 7)}
