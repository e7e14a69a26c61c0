# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file of metrics of a run."""

from __future__ import annotations

from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.metrics_file import MetricsFile, states_in
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import MigrationState
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.store import MigrationStore
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import Status, parse_progress

JOB = {"name": "data", "src_host": "old", "src": "/a/", "dest_host": "new", "dest": "/a"}


def status(done):
    return Status("running", alive=True, progress=parse_progress({"bytes_done": done, "bytes_total": 100}))


def expect(states):
    return {state.name: 90.0 for state in states}


def test_the_forecast_is_that_of_the_states_there_are(tmp_path):
    path, line = tmp_path / "longhaul.prom", "longhaul_migrate_downtime_forecast_seconds{"
    for state, expected in ((MigrationState.fresh(JOB), ["90"]), (None, [])):
        MetricsFile(str(path), [JOB], lambda _job, state=state: state, expect).write(active=True)
        assert [one.split()[1] for one in path.read_text().splitlines() if one.startswith(line)] == expected


def test_the_rate_is_that_since_the_file_was_written_before(tmp_path):
    path, clock = tmp_path / "metrics/longhaul.prom", [0.0]
    file = MetricsFile(str(path), [JOB], lambda _job: MigrationState.fresh(JOB), expect, lambda: clock[0])
    rates = []
    for at, running in ((0, {"data": status(0)}), (10, {"data": status(50)}), (20, {}), (30, {"data": status(60)})):
        clock[0], file.running = at, running
        file.write(active=True)
        lines = path.read_text().splitlines()
        rates += [[line.split()[1] for line in lines if line.startswith("longhaul_migrate_rate_bytes_per_second{")]]
    assert rates == [[], ["5"], [], []]
    assert path.stat().st_mode & 0o777 == 0o644 and [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_file_that_cannot_be_written_is_a_warning_as_long_as_that_lasts(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    file = MetricsFile(str(blocked / "longhaul.prom"), [JOB], lambda _job: None, expect)
    file.write(active=True)
    assert "migrate_textfile" in file.warning and str(blocked) in file.warning
    blocked.unlink()
    file.write(active=False)
    assert file.warning == "" and "longhaul_migrate_active 0\n" in (blocked / "longhaul.prom").read_text()


def test_without_a_path_nothing_is_written_or_asked(tmp_path):
    MetricsFile("", [JOB], lambda job: 1 / 0, expect).write(active=True)
    assert list(tmp_path.iterdir()) == []


def test_a_state_that_cannot_be_read_is_none(tmp_path):
    store = MigrationStore(str(tmp_path), writes=True)
    store.save(MigrationState.fresh(JOB))
    read = states_in(store)
    assert read("data") == MigrationState.fresh(JOB) and read("other") is None
    (tmp_path / "state/data.json").write_text("{")
    assert read("data") is None
