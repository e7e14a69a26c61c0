# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report on benchmarks as a page."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.measurement import (
    BenchmarkResult,
    Candidate,
    DiskMeasurement,
    LinkMeasurement,
    LinkRates,
    PairMeasurement,
    Prediction,
    ProcessorMeasurement,
    Recommendation,
    TreeMeasurement,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.report_page import make_benchmark_page
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.page import render_page
from ansible_collections.longhaul.fleet.tests.support.html_outline import Outline
from ansible_collections.longhaul.fleet.tests.support.report_examples import BEGIN, HOSTILE

MIB = 1 << 20
MEASURED = PairMeasurement(
    "old", "new", BEGIN, 18.5, 700 * MIB,
    LinkMeasurement(LinkRates(90 * MIB, 110 * MIB, 4, 100 * MIB), LinkRates(80 * MIB), "push", 0.0123, 0.001, 1500,
                    4 * MIB, "cubic", {"source": 125e6}, {"source": "802.3ad"}),
    {"source": DiskMeasurement(60 * MIB, 900, 40_000, 55 * MIB, note="a ZFS pool, 81 % full")},
    {"source": ProcessorMeasurement(4, 0.1, {"tls": 900 * MIB}, {"blake2b": 700 * MIB}, {"zstd-3": 300 * MIB})},
    TreeMeasurement(12_345, 12_000, 5 << 30, 4 << 30), ("The disk of new was not measured: no room.",),
)  # fmt: skip
CHOSEN = Recommendation(
    "stream", "TLS", 4, "zstd", "push", "It is limited by the disk of the source alone.", Prediction(60, 50, 80),
    Prediction(4, 3, 6), Prediction(70, 60, 90),
)  # fmt: skip
RESULT = BenchmarkResult(
    MEASURED,
    (Candidate("stream", "TLS", 55 * MIB, 60 * MIB, 0.4, {"source": 0.7}, "range", True, limited_by="source_disk"),
     Candidate("tar_nc", "plain", 59 * MIB, resumes="no", allowed=False, refused="it must encrypt", derived=False)),
    CHOSEN, "The disk of old holds the transfer back", "Use a faster disk", "/srv", "/srv",
)  # fmt: skip


def plain(results):
    """Return the text of the page, which is well-formed."""
    outline = Outline.of(render_page(make_benchmark_page(results, BEGIN + 60, "ada@control")))
    assert outline.problems == []
    return outline.plain


def test_the_recommendation_and_the_predictions_of_each_pair_come_first():
    text = plain([RESULT])
    tree = "| old → new 12,345 entries, 4.0 GiB (5.0 GiB with holes) |"
    use = "| stream (TLS) 4 connections, compress: zstd, connect: push | 60.0 MiB/s | about 1 min 50 s to 1 min 20 s |"
    assert f"{tree}{use[1:]}" in text
    assert "It is limited by the disk of the source alone." in text and "Use a faster disk" in text
    assert "The slowest is disk of the source, read and compared, 55.0 MiB/s." in text
    assert "▲ old → new" in text and "no room" in text and "a ZFS pool, 81 % full" in text and "802.3ad" in text


def test_methods_that_are_not_allowed_say_why():
    text = plain([RESULT])
    assert "| ▲ no it must encrypt | measured |" in text and "| yes | ✓ yes | derived | source disk |" in text


def test_predictions_have_a_range():
    text = plain([RESULT])
    assert "| first copy | 1 min | 50 s to 1 min 20 s |" in text
    assert "| pass without changes | 4 s | 3 s to 6 s |" in text


def test_a_pair_without_a_method_needs_attention():
    text = plain([RESULT, replace(RESULT, recommendation=None, advice="Install rsync")])
    assert "✕ 1 of 2 pairs have no method that can run." in text and "| ✕ nothing can run |" in text
    assert "Install rsync" in text and "Measured 0 pairs." in plain([])


def test_what_was_not_measured_is_not_shown_as_nothing():
    text = plain([BenchmarkResult(PairMeasurement("a", "b"), (), None)])
    assert "0 B/s" not in text


def test_whatever_a_host_says_is_shown_as_text():
    disk = replace(MEASURED.disks["source"], note=HOSTILE)
    measured = replace(MEASURED, disks={"source": disk}, gaps=(HOSTILE,), source=HOSTILE)
    made = replace(RESULT, measurement=measured, bottleneck=HOSTILE, candidates=(Candidate(HOSTILE, HOSTILE, 5.0),))
    page = render_page(make_benchmark_page([made], BEGIN, HOSTILE))
    assert Outline.of(page).problems == [] and "</script>" not in page and "\u202e" not in page
