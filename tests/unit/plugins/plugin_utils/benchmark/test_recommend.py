# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.abilities import PairRules, find_abilities
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.candidates import list_candidates
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.measurement import (
    Prediction,
    Recommendation,
    TreeMeasurement,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.recommend import conclude
from hypothesis import given
from hypothesis import strategies as some

from tests.support.measured_pairs import GB, MB, concluded, end, measured


def recommended(*given: Any, **named: Any) -> Recommendation:
    found = concluded(*given, **named).recommendation
    assert found is not None
    return found


OPEN = PairRules(encryption="none")
SMALL = {"files": 200_000, "size": 1.6 * GB, "large": 0.0}
TEXT = {"ratio": 4.0, "size": 20 * GB}
FAST = {"line": 1.2 * GB, "several": 1.2 * GB, "encrypted": 0.9 * GB}
LONG = {"line": 10 * MB, "several": 100 * MB, "trip": 0.1}


@pytest.mark.parametrize(
    ("pair", "rules", "ends", "wanted", "slowest"),
    [
        pytest.param({}, PairRules(), {}, ("stream", "TLS", "none"), "network", id="a slow line"),
        pytest.param(FAST, PairRules(), {}, ("stream", "TLS", "none"), "core of", id="a fast line"),
        pytest.param(
            FAST, OPEN, {}, ("stream", "plain", "none"), "destination's disk", id="a fast line, plain allowed"
        ),
        pytest.param({}, OPEN, {}, ("stream", "TLS", "none"), "network", id="a slow line, plain allowed and no faster"),
        pytest.param(LONG, PairRules(), {}, ("stream", "TLS", "none"), "network", id="a long line"),
        pytest.param(TEXT, PairRules(), {}, ("stream", "TLS", "auto"), "network", id="text on a slow line"),
        pytest.param({**TEXT, **FAST}, OPEN, {}, ("stream", "TLS", "auto"), "destination's disk", id="text, fast line"),
        pytest.param(
            {**SMALL, **FAST, "small": 8_000},
            PairRules(),
            {},
            ("stream", "TLS", "none"),
            "destination's disk",
            id="small",
        ),
        pytest.param({"read": 30 * MB}, PairRules(), {}, ("stream", "TLS", "none"), "source's disk", id="a slow disk"),
        pytest.param(
            {**FAST, "connect": ""},
            PairRules(connect=""),
            {},
            ("sftp", "aes128-gcm@openssh.com", "none"),
            "core of",
            id="no port but ssh's",
        ),
        pytest.param(
            {**TEXT, "connect": ""},
            PairRules(connect=""),
            {},
            ("rsync", "aes128-gcm@openssh.com", "zstd"),
            "core of",
            id="text, no port but ssh's",
        ),
        pytest.param(
            {**FAST, "connect": ""},
            PairRules(connect=""),
            {"dest": end("dest", ("rsync",))},
            ("sftp", "aes128-gcm@openssh.com", "none"),
            "core of",
            id="no port, no rsync",
        ),
        pytest.param(
            {**SMALL, "connect": "", "trip": 0.02},
            PairRules(connect=""),
            {},
            ("rsync", "aes128-gcm@openssh.com", "none"),
            "core of",
            id="small files, no port but ssh's",
        ),
        pytest.param(
            {**FAST, "cores": 1}, PairRules(), {}, ("stream", "TLS", "none"), "core of", id="one core, encrypted"
        ),
    ],
)
def test_the_best_way_is_recommended(pair: dict, rules: PairRules, ends: dict, wanted: tuple, slowest: str):
    result = concluded(measured(**pair), rules, **ends)
    found = result.recommendation
    assert found is not None
    assert (found.method, found.variant, found.compress) == wanted
    assert slowest in result.bottleneck, result.bottleneck
    assert result.advice


@pytest.mark.parametrize("by", [(), ("rsync",), ("rsync", "ssh", "tar")])
def test_where_nothing_can_run_nothing_is_recommended(by: tuple[str, ...]):
    pair = measured(connect="")
    result = concluded(pair, PairRules(connect=""), source=end("source", (*by, "ssh")))
    assert result.recommendation is None
    assert all(one.refused for one in result.candidates)
    assert (result.bottleneck, result.advice) == ("", "")


def test_several_connections_are_recommended_where_they_carry_more():
    assert recommended(measured(**LONG)).streams == 4
    assert recommended(measured(connect=""), PairRules(connect="")).streams == 1


def test_the_reason_has_numbers():
    reason = recommended(measured(**TEXT)).reason
    assert "446" in reason and "4.0" in reason and "rsync" in reason, reason
    assert reason.endswith(".")


@pytest.mark.parametrize("has_tree", [True, False])
def test_the_reason_tells_why_a_method_with_a_higher_rate_is_not_chosen(has_tree: bool):
    pair = measured(**FAST, **({"files": 100_000, "large": 0.0} if has_tree else {}))
    pair = pair if has_tree else replace(pair, tree=TreeMeasurement())
    abilities = find_abilities(end("source"), end("dest"), PairRules())
    listed = [replace(one, plain=9 * GB) if one.method == "scp" else one for one in list_candidates(pair, abilities)]
    found = conclude(pair, abilities, tuple(listed)).recommendation
    assert found is not None and found.method == "stream"
    why = "takes longer" if has_tree else "start later"
    assert f"{why}" in found.reason and ": scp (aes128-gcm@openssh.com) 8.4 GiB (" in found.reason, found.reason


def test_a_disk_that_is_slow_with_small_files_is_told_so():
    slow = concluded(measured(**{**SMALL, **FAST, "small": 4_000})).bottleneck
    assert "destination's disk with small files, with" in slow, slow
    assert "small files" not in concluded(measured(read=30 * MB)).bottleneck


def test_a_method_that_ran_counts_as_it_ran():
    pair = measured(**FAST)
    abilities = find_abilities(end("source"), end("dest"), PairRules())
    slow = [
        replace(one, plain=20 * MB, compressed=20 * MB, derived=False) if one.method == "stream" else one
        for one in list_candidates(pair, abilities)
    ]
    found = conclude(pair, abilities, tuple(slow)).recommendation
    assert found is not None and found.method == "sftp"


# Figures of docs/benchmarks.md on the reference machine: 2 GiB of large files and 50,000 small ones, in memory.
BARE = {
    "line": 3800 * MB,
    "several": 3800 * MB,
    "encrypted": 1000 * MB,
    "trip": 0.00003,
    "read": 5 * GB,
    "written": 3 * GB,
    "small": 60_000,
    "cores": 2,
}
FILES = {"files": 50_000, "size": 0.41 * GB, "large": 0.0}
GIGABIT = {**BARE, "line": 119 * MB, "several": 119 * MB, "encrypted": 119 * MB}


@pytest.mark.parametrize(
    ("pair", "rules", "seen"),
    [
        pytest.param(BARE, PairRules(), 3.83, id="large TLS"),
        pytest.param(BARE, OPEN, 2.15, id="large plain"),
        pytest.param({**BARE, **FILES}, PairRules(), 4.40, id="small TLS"),
        pytest.param({**BARE, **FILES}, OPEN, 4.06, id="small plain"),
        pytest.param(GIGABIT, PairRules(), 19.8, id="gigabit TLS"),
        pytest.param({**GIGABIT, "ratio": 4.0, "size": 0.537 * GB}, PairRules(), 2.38, id="text at a gigabit"),
        pytest.param({**BARE, "connect": ""}, PairRules(connect=""), 5.86, id="large, scp"),
        pytest.param({**BARE, **FILES, "connect": ""}, PairRules(connect=""), 6.91, id="small, rsync"),
    ],
)
def test_first_copies_of_the_published_benchmarks_are_within_30_per_cent(pair: dict, rules: PairRules, seen: float):
    took = recommended(measured(**pair), rules).first_copy
    assert took.seconds == pytest.approx(seen, rel=0.3)
    assert took.low <= seen <= took.high


def test_passes_without_changes_of_the_published_benchmarks_are_within_30_per_cent():
    for rules, seen in ((PairRules(), 2.84), (OPEN, 2.96), (PairRules(connect=""), 3.83)):
        took = recommended(measured(**{**BARE, **FILES}, connect=rules.connect), rules).unchanged
        assert took.seconds == pytest.approx(seen, rel=0.3), rules
        assert took.low <= seen <= took.high


def test_a_comparison_takes_as_long_as_the_slower_side_reads():
    took = recommended(measured(read=2 * GB, written=0.1 * GB, size=100 * GB)).comparison
    assert took.seconds == pytest.approx(1000, rel=0.05)
    one = recommended(measured(read=0.2 * GB, written=2 * GB, size=100 * GB)).comparison
    assert one.seconds == pytest.approx(500, rel=0.05)


def test_what_is_not_known_widens_the_range():
    def width(**more: Any) -> float:
        took = recommended(measured(**more)).first_copy
        return took.high - took.low

    assert width(gaps=("a", "b")) > width()
    assert width(is_complete=False) > width()
    assert width(load=0.5) > width()


def test_without_a_tree_nothing_is_sent_and_the_rates_decide():
    pair = replace(measured(), tree=TreeMeasurement())
    result = concluded(pair)
    assert result.recommendation is not None
    assert "network" in result.bottleneck
    assert result.recommendation.first_copy.seconds < 2


def test_a_prediction_has_the_seconds_in_which_ansible_asks_the_hosts():
    unknown, quick, slow = (recommended(replace(measured(), execution=seconds)) for seconds in (0.0, 0.25, 2.25))
    for one, executions in (("first_copy", 6.5), ("unchanged", 4.3), ("comparison", 3.7)):
        seconds = getattr(quick, one).seconds
        assert getattr(unknown, one).seconds == pytest.approx(seconds, abs=0.5)
        assert getattr(slow, one).seconds == pytest.approx(seconds + 2 * executions)


def test_files_take_longer_where_entries_are_looked_at_slowly():
    pair = measured(**SMALL, line=GB)
    slow = replace(pair, disks={**pair.disks, "dest": replace(pair.disks["dest"], entries=50_000)})
    quick, slower = recommended(pair), recommended(slow)
    for one in ("first_copy", "unchanged", "comparison"):
        assert 2 < (getattr(slower, one).seconds - 1.4) / (getattr(quick, one).seconds - 1.4) < 4.2, one


def test_hosts_that_are_one_machine_share_its_processors():
    pair = measured(line=5 * GB, written=5 * GB, read=5 * GB, cores=2)
    apart, shared = (recommended(replace(pair, is_one_machine=one)).first_copy.seconds for one in (False, True))
    assert shared > apart * 1.15


def test_holes_are_hashed_in_a_comparison():
    sparse = measured(size=20 * GB)
    sparse = replace(sparse, tree=replace(sparse.tree, bytes_on_disk=int(GB), large_bytes=int(GB)))
    assert 1.4 + 1 + 19 / 1.7 < recommended(sparse).comparison.seconds < 1.4 + 1 + 19 / 1.5


def test_holes_are_not_sent_by_stream():
    pair = measured()
    sparse = replace(pair, tree=replace(pair.tree, bytes_on_disk=10**6, large_bytes=10**6, bytes_apparent=10**12))
    assert recommended(sparse).first_copy.seconds < 3
    assert recommended(replace(sparse), PairRules(connect="")).first_copy.seconds > 1000


RATES = some.floats(1e3, 1e11)


@given(RATES, RATES, RATES, some.floats(0, 1), some.floats(0, 1), some.integers(0, 10**7), some.floats(0, 1e14))
def test_a_range_holds_its_estimate(line, read, written, trip, load, files, size):
    found = recommended(
        measured(line, line, line, trip, read, written, load=load, files=files, size=size, large=size / 2)
    )
    predictions = (found.first_copy, found.unchanged, found.comparison)
    for took in predictions:
        assert isinstance(took, Prediction)
        assert 0 <= took.low <= took.seconds <= took.high
    assert found.first_copy.seconds >= size * 0.99 / max(line, line) * 0.99 or found.compress != "none"
