# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The figures of migrations for Prometheus."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.rows import State
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.metrics import (
    LiveTransfer,
    figures_of,
    write_migration_metrics,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import Identity, parse_state
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import Status, parse_progress
from prometheus_client import parser

IDENTITY = Identity("old", "/a/", "new", "/a")
FRESH = {"name": "data", "identity": vars(IDENTITY), "phases": {}, "quiesced": False, "switch": {}, "failure": {}}
SEED = {"bytes_total": 100, "files_total": 7, "duration": 8.0, "at": "2026-11-21T12:00:00Z"}
PREFLIGHT = {"at": "2026-11-21T11:00:00Z", "predicted": {"bytes_total": 70, "files_total": 6}}
PREDICTED = {**FRESH, "phases": {"preflight": PREFLIGHT}}
SEEDED = {**FRESH, "phases": {"preflight": PREFLIGHT, "seed": SEED}}
SAME = {"identical": True, "at": "2026-11-21T13:10:00Z", "compared": "checksum"}
DOWN = {"from": "2026-11-21T13:00:00Z", "to": "2026-11-21T13:05:00Z", "serves": "the new host"}
REHEARSED = {**DOWN, "to": "2026-11-21T13:59:00Z", "rehearsal": True}
SWITCHED = {
    **FRESH,
    "phases": {"preflight": PREFLIGHT, "seed": SEED, "verify": SAME},
    "switch": {"done": True, "at": "2026-11-21T13:05:00Z"},
    "downtimes": [DOWN, REHEARSED],
}
STOPPED = {**SEEDED, "quiesced": True, "quiesced_at": "2026-11-21T13:00:00Z"}
FAILED = {**SEEDED, "failure": {"phase": "sync", "at": "2026-11-21T12:30:00Z", "reason": "no space"}}
NOON = 1795262400  # 2026-11-21T12:00:00Z


def live(rate=None, paused=False, **progress):
    return LiveTransfer(Status("running", alive=True, progress=parse_progress(progress), paused=paused), rate)


def samples(*figures, active=True):
    """Return the values of all samples by name and labels, which must all be different."""
    found = {}
    for family in parser.text_string_to_metric_families(write_migration_metrics(figures, now=5.0, active=active)):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found
            found[key] = sample.value
    return found


def value(figures, name, **labels):
    return samples(figures).get((f"longhaul_migrate_{name}", tuple(sorted({**WHERE, **labels}.items()))))


WHERE = {"job": "data", "source": "old", "dest": "new"}


@pytest.mark.parametrize(
    "state, running, expected",
    [
        (None, None, {"state": State.NOT_BEGUN, "left_bytes": None, "last_success": None, "forecast": None}),
        (PREDICTED, None, {"state": State.WAITING, "phase": "preflight", "left_bytes": 70, "left_entries": 6}),
        (
            PREDICTED,
            live(2.5, bytes_done=10, bytes_total=90, files_done=1, files_total=5),
            {"state": State.RUNNING, "phase": "seed", "left_bytes": 80, "left_entries": 4, "rate": 2.5},
        ),
        (PREDICTED, live(), {"left_bytes": 70, "left_entries": 6, "rate": None}),
        (PREDICTED, live(0.0, paused=True), {"state": State.PAUSED}),
        (SEEDED, live(bytes_done=200, bytes_total=90), {"phase": "sync", "left_bytes": 0}),
        (SEEDED, None, {"left_bytes": 0, "left_entries": 0, "last_success": NOON, "forecast": 8.0, "downtime": None}),
        (FAILED, None, {"state": State.FAILED, "phase": "sync", "failed": True, "failed_at": NOON + 1800}),
        (STOPPED, None, {"state": State.STOPPED, "stopped_since": NOON + 3600}),
        ({**SEEDED, "quiesced_at": "2026-11-21T13:00:00Z"}, None, {"stopped_since": None}),
        (
            SWITCHED,
            None,
            {"state": State.DONE, "verified": True, "verified_at": NOON + 4200, "last_success": NOON + 4200,
             "downtime": 300, "forecast": None, "stopped_since": None, "left_bytes": 0},
        ),
        ({**FAILED, "downtimes": [DOWN]}, None, {"state": State.FAILED, "downtime": None}),  # a cutover that failed
        ({**SWITCHED, "switch": {"done": False, "steps": 1}}, None, {"downtime": None}),
        ({**SEEDED, "run": {"at": "yesterday"}}, None, {"last_run": None}),
    ],
)  # fmt: skip
def test_each_stage_has_its_figures(state, running, expected):
    found = figures_of("data", IDENTITY, parse_state(state) if state else None, running, 8.0)
    assert {name: getattr(found, name) for name in expected} == expected


def test_the_forecast_is_the_one_that_is_handed_in_and_none_for_what_goes_back():
    back = Identity("new", "/a/", "old", "/a.from-new")
    for identity, kept, forecast in ((IDENTITY, SEEDED, 8.0), (IDENTITY, SWITCHED, None), (back, SEEDED, None)):
        state = parse_state({**kept, "identity": vars(identity)})
        assert figures_of("data", identity, state, None, 8.0).forecast == forecast
    assert figures_of("data", IDENTITY, parse_state(SEEDED), None).forecast is None


def test_the_state_of_other_trees_says_nothing_of_a_job():
    other = Identity("old", "/b/", "new", "/b")
    assert figures_of("data", other, parse_state(SWITCHED), None).state is State.NOT_BEGUN


def test_prometheus_reads_the_file():
    found = figures_of("data", IDENTITY, parse_state(SWITCHED), None)
    assert value(found, "state", state="done") == 1 and value(found, "state", state="failed") == 0
    assert value(found, "phase", phase="verify") == 1 and value(found, "downtime_seconds") == 300
    assert value(found, "verified") == 1 and value(found, "failed") == 0
    assert value(found, "rate_bytes_per_second") is None
    assert samples(active=False) == {
        ("longhaul_migrate_active", ()): 0,
        ("longhaul_migrate_written_timestamp_seconds", ()): 5,
    }


def test_names_that_are_odd_or_there_twice_leave_the_file_valid():
    odd = figures_of('a"b\\\n\x1b[2J', IDENTITY, None, None)
    names = {dict(labels).get("job") for _name, labels in samples(odd, odd)} - {None}
    assert names == {'a"b\\ \\x1b[2J'}
