# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Forecasts from what was measured of a pair, of a job and of a group."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.measurement import (
    BenchmarkResult,
    DiskMeasurement,
    PairMeasurement,
    Prediction,
    Recommendation,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate import forecast
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.forecast import BenchmarkRates
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import (
    ComparisonResult,
    MeasuredRates,
    TransferSummary,
    TreeCount,
    parse_state,
)

GIB = 2**30
IDENTITY = {"src_host": "old", "src": "/srv/", "dest_host": "new", "dest": "/srv"}
SEED = {"duration": 1000.0, "files_total": 5000, "bytes_total": 100 * GIB, "bytes_apparent": 200 * GIB, "at": "1"}
PASS = {**SEED, "duration": 40.0, "bytes_content": 0, "at": "2"}


def state(name="data", passes=(), seed=SEED, rates=None, verify="checksum", **changes):
    phases = {
        "sync": {"at": "x", "passes": list(passes)},
        **({"seed": seed} if seed else {}),
        **changes.pop("phases", {}),
    }
    kept = {"name": name, "identity": IDENTITY, "phases": phases, "run": {"verify": verify}, **changes}
    return parse_state({**kept, **({"rates": rates} if rates else {})})


@pytest.mark.parametrize(
    ("one", "entries", "copied"),
    [
        ({"bytes_content": 0}, 125.0, 0),  # nothing to send
        ({"bytes_content": 100 * GIB}, 0, 2.5 * GIB),  # all of it
        ({"bytes_content": 100 * GIB, "phases": {"transfer": 20.0, "probe": 20.0}}, 0, 5 * GIB),
        ({"bytes_content": 10}, 125.0, 0),  # next to nothing: that is no rate of reading
        ({"bytes_content": 2 * GIB}, 0, 2 * GIB / 40),
        ({"bytes_content": None, "bytes_sent": 100 * GIB}, 0, 2.5 * GIB),  # of an earlier version
        ({"bytes_content": 0, "attached": True}, 0, 0),
        ({"bytes_content": 100 * GIB, "resumed": True}, 0, 0),
        ({"bytes_content": 0, "duration": 0.0}, 0, 0),
    ],
)
def test_a_pass_measures_entries_or_contents_by_what_it_had_to_do(one, entries, copied):
    summary = TransferSummary(files_total=5000, bytes_total=100 * GIB, at="now")
    vars(summary).update({"duration": 40.0, **one})
    found = forecast.with_pass(MeasuredRates(), summary)
    assert (found.entries, found.copied) == (pytest.approx(entries), pytest.approx(copied, abs=0.1))
    assert (found.entries_at, found.copied_at) == ("now" if entries else "", "now" if copied else "")
    before = MeasuredRates(entries=7.0, copied=8.0, compared=9.0)
    kept = forecast.with_pass(before, summary)
    assert (kept.entries, kept.copied) == (found.entries or 7.0, found.copied or 8.0) and kept.compared == 9.0


def test_a_prediction_measures_entries_whatever_it_would_send():
    summary = TransferSummary(files_total=5000, bytes_total=GIB, bytes_content=GIB, bytes_sent=GIB, duration=10.0)
    found = forecast.with_prediction(MeasuredRates(copied=8.0), summary)
    assert (found.entries, found.copied) == (500.0, 8.0)
    summary.duration = 0.0  # in which nothing was measured
    assert forecast.with_prediction(found, summary) == found and forecast.with_prediction(None, summary).entries == 0


@pytest.mark.parametrize(
    ("compared", "duration", "rates"),
    [
        ("checksum", 20.0, MeasuredRates(compared=5.0, compared_at="now")),
        ("size", 20.0, MeasuredRates(compared_entries=0.5, compared_entries_at="now")),
        ("checksum", 0.0, MeasuredRates()),
    ],
)
def test_a_comparison_measures_the_slower_tree(compared, duration, rates):
    found = ComparisonResult(compared=compared, at="now", duration=duration)
    found.source, found.dest = TreeCount(entries=9, bytes=90), TreeCount(entries=10, bytes=100)
    assert forecast.with_comparison(None, found) == rates


@pytest.mark.parametrize(
    ("kept", "benchmark", "copy", "compare", "said"),
    [
        (state(seed=None), None, None, None, "no copy was made"),
        (state(), None, None, None, "no pass was made after the first copy"),
        (state(seed={**SEED, "duration": 60.0}), None, 60.0, None, "no longer than the first copy"),
        (state(rates={"entries": 500.0}), None, 10.0, None, "5,000 entries at 500 a second, as measured before"),
        (state(), BenchmarkRates(entries=250.0, compared=GIB), 20.0, 200.0, "as in the benchmark"),
        (state(), BenchmarkRates(250.0, GIB, 3.0, 4.0), 23.0, 204.0, "as in the benchmark"),
        (state(verify="size"), BenchmarkRates(250.0, GIB, 3.0, 4.0), 23.0, 24.0, "as in the benchmark"),
        (state(passes=[PASS]), None, 40.0, None, "as long as the last pass"),
        (state(passes=[PASS], rates={"copied": 4.0 * GIB}), None, 40.0, 50.0, "no slower than the first copy"),
        (state(passes=[PASS], rates={"copied": 1.0, "compared": 2.0 * GIB}), None, 40.0, 100.0,
         "200.0 GiB at 2.0 GiB/s, as in an earlier comparison"),
        (state(passes=[PASS], rates={"copied": 1.0}), BenchmarkRates(compared=GIB), 40.0, 200.0, "as in the benchmark"),
        (state(passes=[PASS], verify="size", rates={"entries": 500.0}), None, 40.0, 10.0, "as in the last pass"),
        (state(passes=[PASS], verify="size", rates={"entries": 5.0, "compared_entries": 1000.0}), None, 40.0, 5.0,
         "as in an earlier comparison"),
        (state(passes=[PASS], verify="none"), None, 40.0, 0.0, "no comparison"),
    ],
)  # fmt: skip
def test_a_job_takes_what_its_own_rates_say(kept, benchmark, copy, compare, said):
    found = forecast.forecast_job(kept, benchmark)
    assert (found.copy.seconds, found.compare.seconds) == (copy, compare)
    assert said in f"{found.copy.why}; {found.compare.why}"
    assert found.seconds == (None if None in (copy, compare) else copy + compare)


def test_a_pass_that_had_nothing_to_send_says_nothing_of_a_comparison():
    """Of two hours that a comparison would take at the rate of such a pass nothing must be left."""
    empty = TransferSummary(files_total=5000, bytes_total=100 * GIB, bytes_content=0, bytes_sent=70_000, duration=7.0)
    rates = forecast.with_pass(None, empty)
    found = forecast.forecast_job(state(passes=[PASS], rates=vars(rates)))
    assert found.compare.seconds is None and "no rate of reading was measured" in found.compare.why


def test_of_a_benchmark_the_slower_host_counts():
    fast, slow = DiskMeasurement(entries=9.0, compared=4.0), DiskMeasurement(entries=7.0, compared=5.0)
    nothing = Recommendation("", "", 1, "", "", "", *[Prediction(0.0, 0.0, 0.0)] * 3)
    for disks, rates in (({"source": fast, "dest": slow}, (7.0, 4.0)), ({"source": fast}, (0.0, 0.0))):
        measured = BenchmarkResult(PairMeasurement(disks=disks, execution=2.0), (), nothing)
        assert forecast.rates_of(measured) == BenchmarkRates(*rates, pytest.approx(8.6), pytest.approx(7.4))
    assert forecast.rates_of(None) is None


def serial(seconds):
    return sum(seconds.values())


def longest(seconds):
    return max(seconds.values())


KNOWN = {"passes": [PASS], "rates": {"compared": 2.0 * GIB}}
REHEARSED = {"rehearsal": {"from": "2026-01-01T02:00:00Z", "at": "2026-01-01T02:02:05Z"}}
SHORTER = {"rehearsal": {"from": "2026-01-01T02:00:05Z", "at": "2026-01-01T02:01:00Z"}}


def of(*states, time_of=serial, **absent):
    return forecast.forecast_downtime(states[0], {**{one.name: one for one in states}, **absent}, time_of)


def test_the_forecast_of_one_job():
    found = of(state(**KNOWN))
    assert (found["seconds"], found["lasted"], found["with_hooks"]) == (140.0, "2 min 20 s", False)
    assert found["why"] == (
        "the final pass 40 s (as long as the last pass), the comparison 1 min 40 s (200.0 GiB at 2.0 GiB/s, as in an "
        "earlier comparison); hooks come on top"
    )
    alone = of(state(passes=[PASS], verify="none"))
    assert alone["why"] == "the final pass 40 s (as long as the last pass); hooks come on top"


def test_the_forecast_of_a_group_is_the_time_in_which_all_of_it_runs():
    slow = state("slow", passes=[{**PASS, "duration": 90.0}], rates={"compared": 2.0 * GIB})
    for time_of, seconds in ((serial, 330.0), (longest, 190.0)):
        found = of(state(**KNOWN), slow, time_of=time_of)
        assert (
            found["seconds"] == seconds and "of 2 jobs. slow takes longest, 3 min 10 s: the final pass" in found["why"]
        )


def test_what_was_not_measured_is_not_known_and_the_job_is_named():
    found = of(state(**KNOWN), state("other", passes=[PASS]))
    assert found == {"lasted": "not known yet", "why": "other: no rate of reading was measured"}
    assert of(state(**KNOWN), third=None)["why"] == "third: no run has begun it"
    assert of(state(passes=[PASS])) == {"lasted": "not known yet", "why": "no rate of reading was measured"}


def test_a_rehearsal_of_the_whole_group_says_it_better():
    found = of(state(phases=REHEARSED), state("b", phases=SHORTER))
    assert (found["seconds"], found["lasted"], found["with_hooks"]) == (125.0, "2 min 5 s", True)
    assert "as in the rehearsal of 2026-01-01T02:02:05Z" in found["why"]
    assert "rehearsal" not in of(state(phases=REHEARSED), state("b", **KNOWN))["why"]


def test_nothing_is_forecast_where_nothing_will_be_stopped():
    assert of(state(**KNOWN, switch={"done": False, "steps": 0})) == {}
    assert of(state(**{**KNOWN, "identity": {**IDENTITY, "dest": "/srv.from-new"}})) == {}
    assert of(state(seed=None)) == {}
