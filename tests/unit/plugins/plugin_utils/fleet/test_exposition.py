# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file for Prometheus, as its own library reads it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.exposition import render_metrics
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.rows import Row, State, sum_up

ROW = Row(
    *("n01", "old01", "/srv/", "new01", "/srv", "seed", State.RUNNING, "stream", 350, 1000, 1, 2), rate=100.0, age=2.25
)
HOSTILE = replace(ROW, name='a"} 1\nevil{x="\\', src_host="\x1b[2J\udcff", dest_host="日本", rate=None, bytes_total=0)


def families(rows, unreachable=0):
    parser = pytest.importorskip("prometheus_client.parser", reason="cannot run here: prometheus-client is missing")
    return {
        family.name: family
        for family in parser.text_string_to_metric_families(render_metrics(rows, sum_up(rows), unreachable))
    }


def test_the_library_of_prometheus_reads_it():
    found = families([ROW, HOSTILE], unreachable=2)
    assert all(family.documentation and family.type == "gauge" for family in found.values())
    (rate,) = found["longhaul_fleet_job_rate_bytes_per_second"].samples
    assert (rate.labels, rate.value) == ({"job": "n01", "source": "old01", "dest": "new01"}, 100.0)
    assert [one.value for one in found["longhaul_fleet_job_eta_seconds"].samples] == [6.5]
    assert [one.value for one in found["longhaul_fleet_job_age_seconds"].samples] == [2.25, 2.25]
    states = {one.labels["state"]: one.value for one in found["longhaul_fleet_jobs"].samples}
    assert states == {state.value: 2 if state is State.RUNNING else 0 for state in State}
    assert [one.value for one in found["longhaul_fleet_unreachable_hosts"].samples] == [2]


def test_contents_the_wire_and_the_size_with_holes_are_told_apart():
    found = families([replace(ROW, bytes_sent=40, bytes_apparent=90_000)])
    for where in ("fleet", "fleet_job"):
        figures = [found[f"longhaul_{where}_{name}_bytes"].samples[0].value for name in ("size", "sent", "apparent")]
        assert figures == [1000, 40, 90_000]


def test_labels_are_escaped():
    info = families([HOSTILE])["longhaul_fleet_job_info"].samples
    assert len(info) == 1
    assert info[0].labels["job"] == 'a"} 1 evil{x="\\' and info[0].labels["source"] == "\\x1b[2J\\udcff"


def test_what_is_not_known_has_no_sample():
    found = families([replace(ROW, rate=None, age=None, bytes_total=0)])
    assert "longhaul_fleet_job_rate_bytes_per_second" not in found and "longhaul_fleet_eta_seconds" not in found
    assert "longhaul_fleet_job_done_bytes" in found


def test_no_two_samples_have_the_same_labels():
    assert len(families([ROW, ROW])["longhaul_fleet_job_info"].samples) == 1


def test_an_empty_fleet():
    assert "longhaul_fleet_job_info" not in families([])


def test_the_names_say_their_units():
    text = render_metrics([ROW], sum_up([ROW]), 0)
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    counts = {"jobs", "job_info", "unknown_sizes", "unreachable_hosts"}
    units = ("_bytes", "_seconds", "_bytes_per_second")
    assert {name for name in names if not name.endswith(units)} == {f"longhaul_fleet_{one}" for one in counts}
    assert text.endswith("\n") and all(line.strip() for line in text.splitlines())
