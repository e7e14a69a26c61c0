# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every state of a job has words that say which host serves and how to go on."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.advice import advice
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import MigrationState, parse_state


def state(**changes) -> MigrationState:
    made = {"name": "data", "identity": {"src_host": "old", "src": "/srv/", "dest_host": "new", "dest": "/srv"}}
    return parse_state({**made, **changes})


FAILED = {"failure": {"phase": "seed", "at": "x", "reason": "no space"}}
SENT, PREFLIGHT = {"at": "x"}, {"at": "x"}
BEGUN = {"switch": {"done": False, "steps": 1}}
GROUP = {"group": {"name": "server", "run": "1", "stands": "ready", "members": ["data", "home"]}}
MADE = {"switch": {"done": True, "steps": 2}}


@pytest.mark.parametrize(
    "changes, words, absent",
    [
        ({}, ["Nothing was done yet"], []),
        ({"phases": {"preflight": PREFLIGHT}}, ["migrate_phase=sync", "old still serves"], []),
        ({"phases": {"preflight": PREFLIGHT, "seed": SENT}}, ["migrate_phase=sync", "old still serves"], []),
        (
            {"phases": {"seed": SENT, "sync": {"passes": [SENT]}}},
            ["migrate_phase=cutover (this switches over)", "old still serves"],
            [],
        ),
        (FAILED, ["Nothing was switched over", "old still serves", "run the same command again"], ["migrate_reset"]),
        (
            {**FAILED, "quiesced": True},
            ["may still be stopped", "cutover_failed", "migrate_phase=cutover"],
            ["still serves"],
        ),
        ({"quiesced": True}, ["may still be stopped"], ["still serves"]),
        (
            {**FAILED, **BEGUN, "quiesced": True},
            [
                "1 of its steps is done",
                "old is stopped",
                "migrate_phase=cutover",
                "migrate_reset=true",
                '"migrate_only": ["data"]',
            ],
            ["serves"],
        ),
        ({**BEGUN, **GROUP}, ["migrate_reset=true", '{"migrate_only": ["data", "home"]}'], []),
        ({**BEGUN, "quiesced": True}, ["continue the switch: -e migrate_phase=cutover"], ["named above", "serves"]),
        ({**MADE, "phases": {"verify": {"identical": True}}}, ["Done"], ["migrate_phase"]),
        (MADE, ["not compared", "migrate_phase=verify"], []),
        ({**FAILED, **MADE}, ["switch was made and is not undone"], ["serves"]),
    ],
)
def test_words(changes, words, absent):
    text = advice(state(**changes))
    assert all(word in text for word in words), text
    assert not any(word in text for word in absent), text
