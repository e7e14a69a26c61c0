# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a job stands by its state."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.rows import State
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.job_status import standing_of
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import parse_state

SENT = {"bytes_total": 100, "at": "2026-11-21T12:00:00Z"}
FRESH = {
    "name": "data",
    "identity": {"src_host": "old", "src": "/a/", "dest_host": "new", "dest": "/a"},
    "phases": {},
    "quiesced": False,
    "switch": {},
    "failure": {},
}
PREFLIGHT = {"preflight": {"at": "x", "predicted": {"bytes_total": 70}}}
SEEDED = {**PREFLIGHT, "seed": SENT}
SYNCED = {**SEEDED, "sync": {"passes": [{**SENT, "bytes_total": 120}]}}


@pytest.mark.parametrize(
    "changes, phase, state, running, size",
    [
        ({}, "", State.NOT_BEGUN, "seed", (0, 0)),
        ({"phases": PREFLIGHT}, "preflight", State.WAITING, "seed", (0, 70)),
        ({"phases": PREFLIGHT, "seeding": {"at": "x", "limit": -1}}, "seed", State.WAITING, "seed", (0, 70)),
        ({"phases": SEEDED}, "seed", State.WAITING, "sync", (100, 100)),
        ({"phases": SYNCED}, "sync", State.WAITING, "sync", (120, 120)),
        ({"phases": SYNCED, "quiesced": True}, "cutover", State.STOPPED, "cutover", (120, 120)),
        ({"phases": SYNCED, "switch": {"done": False}}, "switch", State.SWITCHING, "verify", (120, 120)),
        ({"phases": SYNCED, "switch": {"done": True}}, "switch", State.SWITCHED, "verify", (120, 120)),
        (
            {"phases": {**SYNCED, "verify": {"identical": True}}, "switch": {"done": True}},
            "verify",
            State.DONE,
            "verify",
            (120, 120),
        ),
    ],
)
def test_each_stage(changes, phase, state, running, size):
    found = standing_of(parse_state({**FRESH, **changes}), 5.0)
    assert (found.phase, found.state, found.running_phase) == (phase, state, running)
    assert (found.bytes_done, found.bytes_total) == size and found.age == 5.0


def test_a_failure_has_its_reason_and_what_to_do():
    failure = {"phase": "seed", "at": "x", "reason": "no\nspace\x1b[2J"}
    found = standing_of(parse_state({**FRESH, "phases": PREFLIGHT, "failure": failure}), 5.0)
    assert (found.phase, found.state, found.error) == ("seed", State.FAILED, "no space\\x1b[2J")
    assert "old still serves" in found.next


def test_what_held_back_the_last_transfer_is_told():
    passes = {**SEEDED, "seed": {**SENT, "bottleneck": "The disk\nwas slow."}}
    assert standing_of(parse_state({**FRESH, "phases": passes}), 5.0).bottleneck == "The disk was slow."
    assert standing_of(parse_state({**FRESH, "phases": SEEDED}), 5.0).bottleneck == ""
