# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers of a hostile host take effect on no other host and not on the control node, and harm no other job."""

from __future__ import annotations

from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.support.collections_folder import collections_folder
from ansible_collections.longhaul.fleet.tests.support.hostile_answers import HOSTS, MIXED, Stage, Trial
from ansible_collections.longhaul.fleet.tests.support.hostile_trials import TRIALS, UNPROTECTED
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.prepared_ansible import Prepared
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.testbed import Testbed, why_not

MIGRATE, BACKUP = TRIALS[0], next(one for one in TRIALS if one.name == "backup of the hostile host")
# Their siblings are in make test.
RARE = ("migrate to", "migrate in a play", "backup on", "restore to", "hooks of tasks", "tune", "ssh_client")


@pytest.fixture(name="stage", scope="module")
def _stage(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Stage]:
    reason = why_not()
    if reason:
        pytest.skip(f"cannot run here: {reason}")
    folder = tmp_path_factory.mktemp("hostile")
    with Testbed(HOSTS) as bed:
        playbooks = Playbooks(folder / "inventory.yml", folder, collections_folder(), prepared)
        yield Stage(bed, playbooks)
        playbooks.end()


def test_harm_is_seen(stage: Stage) -> None:
    """What plain Ansible lets a host do, this collection must not: else the tests below would show nothing."""
    found = stage.attempt(UNPROTECTED, *MIXED)
    assert "shell-ansible_remote_tmp on beta" in found.canaries, found.output
    assert found.raw and found.suffered and found.altered == 1, found.output
    assert not stage.attempt(UNPROTECTED).canaries


def variants() -> list[object]:
    """Return the trials, the rare ones marked as long."""
    return [
        pytest.param(
            trial, id=trial.name.replace(" ", "-"), marks=[pytest.mark.long] * any(w in trial.name for w in RARE)
        )
        for trial in TRIALS
    ]


@pytest.mark.parametrize("trial", variants())
def test_what_is_added_to_answers_has_no_effect_elsewhere(stage: Stage, trial: Trial) -> None:
    found = stage.attempt(trial, *MIXED)
    assert not found.problems, "\n".join([*found.problems, found.output])


@pytest.mark.parametrize("trial", [MIGRATE, BACKUP], ids=["migrate", "backup"])
@pytest.mark.parametrize(
    "modes",
    [
        ("types",),
        *rarely(
            (("facts_variables", "tags"),),
            (("templates",),),
            (("deep",),),
            (("abyss",),),
            (("nested", "failing"),),
            (("gigantic",),),
        ),
    ],
    ids="-".join,
)
def test_an_answer_that_cannot_be_used_ends_its_own_job(stage: Stage, trial: Trial, modes: tuple[str, ...]) -> None:
    found = stage.attempt(trial, *modes)
    assert not found.problems, "\n".join([*found.problems, found.output])


@pytest.mark.long
@pytest.mark.parametrize("trial", [MIGRATE], ids=["migrate"])
def test_a_host_that_never_answers_holds_up_its_own_job(stage: Stage, trial: Trial) -> None:
    found = stage.attempt(trial, "silence")
    assert not found.problems, "\n".join([*found.problems, found.output])
