# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports of migrations as pages: what stands where, of any number of jobs, whatever hosts say."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report_charts import sum_over_time
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report_facts import (
    RunFacts,
    find_downtimes,
    parse_report,
    parse_reports,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report_page import (
    make_job_page,
    make_overview,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.model import (
    ChartRow,
    EarlierReport,
    LineChart,
    Point,
    Table,
    Timeline,
    Tone,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.page import render_page
from ansible_collections.longhaul.fleet.tests.support.html_outline import Outline
from ansible_collections.longhaul.fleet.tests.support.report_examples import (
    BEGIN,
    HOSTILE,
    at,
    fleet,
    job_report,
    transfer,
)

RUN = RunFacts(at(91_000), "ada@control", "cutover")
BEFORE = Path(__file__).parent / "states_before.json"


def overview(reports, earlier=()):
    """Return the page on reports as their files have them."""
    return make_overview([parse_report(one) for one in reports], RUN, earlier)


def plain(page):
    """Return the text of a page, which is well-formed."""
    outline = Outline.of(render_page(page))
    assert outline.problems == []
    return outline.plain


def rows(page):
    """Return the first texts of each row of the table of all jobs."""
    (table,) = page.sections[0].blocks
    assert isinstance(table, Table)
    return {row[0].text: [cell.text for cell in row] for row in table.rows}


def blocks_of(page, kind):
    """Return the blocks of a kind in all sections, and those in rows of charts."""
    found = []
    for section in page.sections:
        for block in section.blocks:
            found += [
                one for one in (block.charts if isinstance(block, ChartRow) else [block]) if isinstance(one, kind)
            ]
    return found


def test_the_headline_says_what_moved_when_and_what_needs_attention():
    page = overview(fleet(12))
    facts = {fact.label: (fact.value, fact.note) for fact in page.facts}
    assert page.verdict == "4 of 12 jobs stopped; 6 of 12 switched over." and page.tone is Tone.BAD
    assert facts["What moved"][0] == "258.0 GiB in 4,227,192 entries"
    assert facts["Began"][0].startswith("2026-09-21 14:13:30 UTC") and facts["Ended"][0].startswith(
        "2026-09-22 15:19:42"
    )
    assert facts["Downtime"][0] == "3 min 22 s at most" and "group shop 3 min 22 s" in facts["Downtime"][1]
    assert facts["Verified"][0] == "6 of 12 jobs" and "by content (blake2b)" in facts["Verified"][1]
    assert facts["Run by"] == ("ada@control", "up to phase cutover")
    assert [one.subject.partition(" ")[0] for one in page.attention[:4]] == ["web-001", "web-002", "web-009", "web-010"]
    assert page.attention_left == 1 and len(page.attention) == 5


def test_the_sick_jobs_come_first_each_with_its_figures():
    found = rows(overview(fleet(12)))
    assert list(found)[:4] == ["web-001", "web-002", "web-009", "web-010"] and list(found)[-1] == "web-011"
    assert found["web-002"][1:4] == ["stopped in seed", "61 %", "6.5 GiB"]
    assert found["web-001"][1:4] == ["stopped in verify", "100 %", "0 B"]
    assert found["web-001"][7:] == ["different", "1 min 35 s", "stopped"]
    assert found["web-000"][7:] == ["the same", "", "1 min 22 s"]
    assert found["web-006"][1:4] == ["preflight passed", "0 %", "5.0 GiB"]
    assert found["web-004"][1] == "up to date" and found["web-004"][8:] == ["1 min 35 s", ""]


def test_time_left_and_the_last_error_stand_in_the_table():
    text = plain(overview(fleet(12)))
    assert "| 61 % | 6.5 GiB 24 min 40 s at 4.5 MiB/s |" in text
    assert "| ✕ stopped in seed The connection to old2.example was lost: no answer for 300 s. It was tried 4" in text
    assert "| Sum of 12 | 4 stopped |" in text


def test_a_group_has_one_downtime_with_the_steps_of_its_jobs():
    page = overview(fleet(12))
    unit = next(one for one in find_downtimes([parse_report(one) for one in fleet(12)]) if one.name == "group shop")
    assert (unit.real, unit.begin, unit.end) == (202.0, at(90180), at(90382))
    (drawn,) = [one for one in blocks_of(page, Timeline) if one.title == "Downtime of group shop"]
    assert [span.label for span in drawn.spans] == [
        *("web-003: stop on old3.example", "web-003: final pass", "web-003: comparison"),
        *("web-003: start on new1.example", "web-005: stop on old1.example", "web-005: final pass"),
        *("web-005: comparison", "web-005: start on new1.example"),
    ]


@pytest.mark.parametrize(
    ("switched", "rehearsal", "downtime"),
    [
        (False, False, (0.0, "")),
        (False, True, (30.0, at(10))),
        (True, True, (40.0, at(200))),
        (True, False, (40.0, at(200))),
    ],
)  # fmt: skip
def test_a_cutover_that_failed_has_no_downtime(switched, rehearsal, downtime):
    """Neither alone nor as the beginning of the downtime of the switch after it."""
    report = job_report(1)
    failed = {"from": at(100), "to": at(190), "serves": "the old host"}
    tried = {"from": at(10), "to": at(40), "serves": "the old host", "rehearsal": True}
    done = {"from": at(200), "to": at(240), "serves": "the new host"}
    report["switch"] = report["switch"] if switched else {}
    report["downtimes"] = [*([tried] if rehearsal else []), failed, *([done] if switched else [])]
    (unit,) = find_downtimes([parse_report(report)])
    assert (unit.real, unit.begin) == downtime


@pytest.mark.parametrize(
    ("hooks", "steps", "why"),
    [
        (slice(0), 0, "no hook stopped or started anything"),
        (slice(1, 2), 1, "no hook stopped the source"),
        (slice(0), 1, "no hook stopped the source"),
    ],
)  # fmt: skip
def test_the_downtime_of_a_switch_without_hooks_was_not_measured(hooks, steps, why):
    report = job_report(1)
    report.update(downtimes=[], hooks=report["hooks"][hooks], quiesced_at="")
    report["switch"]["steps"] = steps
    page = overview([report])
    (fact,) = [one for one in page.facts if one.label.startswith("Downtime")]
    assert (fact.label, fact.value, fact.note) == ("Downtime", "not measured", why)
    assert rows(page)["web-001"][-1] == "not measured" and "not yet" not in plain(page)
    assert plain(page).count(f"not measured {why}") >= 2
    assert [one.title for one in blocks_of(page, Timeline)] == ["Cutover of web-001"]
    report["switch"] = {}
    assert "not measured" not in plain(overview([report]))


def test_what_was_left_is_drawn_with_a_forecast_where_a_pass_is_not_over():
    (left,) = [one for one in blocks_of(overview([job_report(2, "copying")]), LineChart) if one.title == "Bytes left"]
    assert [curve.name for curve in left.curves] == ["left", "forecast"] and left.curves[1].parts[0][-1].value == 0
    assert "At the rate of late nothing is left at 2026-09-21" in left.summary
    (done,) = [one for one in blocks_of(overview([job_report(2)]), LineChart) if one.title == "Bytes left"]
    assert [curve.name for curve in done.curves] == ["left"] and done.curves[0].parts[-1][-1].value == 0


def test_the_limit_of_a_job_is_drawn_beside_its_throughput():
    report = job_report(1, "copying", "n1")
    for sample in report["samples"][5:30]:
        sample["bwlimit"] = 5 << 20
    chart = next(one for one in blocks_of(overview([report]), LineChart) if one.title == "Throughput")
    rates, limit = chart.curves
    assert (limit.name, limit.is_forecast, rates.is_forecast) == ("bwlimit of n1", True, False)
    assert [len(part) for part in limit.parts] == [25] and {point.value for point in limit.parts[0]} == {5 << 20}
    assert "A broken line is the bwlimit of a job." in chart.summary
    (alone,) = next(one for one in blocks_of(overview([job_report(1)]), LineChart) if one.title == "Throughput").curves
    assert not alone.is_forecast


def test_after_the_cutover_the_forecast_with_which_it_began_stands_beside_the_real_downtime():
    report = job_report(1)
    report["forecast"] = {}
    report["cutover_forecast"] = {"at": at(30_000), "seconds": 75.0, "lasted": "0:01:15", "why": "as in the last pass"}
    (row,) = rows(overview([report])).values()
    assert row[-2] == "1 min 15 s" and row[-1], row


def test_after_a_rehearsal_nothing_is_left():
    """Its final pass is none of the passes of the job, and the last sample was taken in the middle of it."""
    report = job_report(2, "up to date")
    last = {"at": BEGIN + 30_050, "phase": "cutover", "bytes_done": 100, "bytes_total": 1000}
    report["samples"].append(last)
    assert rows(overview([report]))["web-002"][1:4] == ["up to date", "99 %", "900 B"]
    report["phases"]["rehearsal"] = {"from": at(30_000), "at": at(30_070), "cutover": transfer(30_060, 20, 1000, 900)}
    assert rows(overview([report]))["web-002"][1:4] == ["rehearsed", "100 %", "0 B"]


def test_lines_are_summed_with_their_last_values():
    lines = {"a": [Point(0, 10), Point(10, 0)], "b": [Point(5, 20), Point(10, 10), Point(20, 0)]}
    assert sum_over_time(lines) == [Point(0, 30), Point(5, 30), Point(10, 10), Point(20, 0)]
    assert len(sum_over_time({"a": [Point(number, 1) for number in range(1000)]}, 50)) == 50


def test_a_job_has_its_passes_hooks_proof_owners_and_differences():
    text = plain(make_job_page(parse_report(job_report(1, "failed")), RUN))
    assert text.index("web-001 stopped in phase verify") < text.index("| first copy |") < text.index("| final pass |")
    assert "| stop systemctl stop | before_cutover | old1.example | 1 |" in text
    assert "| ✕ failed (rc 0) |" in text and "✕ the trees differ in 1 place" in text
    assert "| log/web-001.log | ✕ differs | size, mtime |" in text
    assert "| user mysql | 103 | none | 101 | number | 214 | var/lib/mysql |" in text
    assert "old1.example is stopped since 2026-09-22 15:14:20 UTC" in text
    proven = plain(make_job_page(parse_report(job_report(1)), RUN))
    assert "✓ 163,850 of 163,850 entries are the same" in proven and "then served by the new host" in proven
    assert "No pass sends more than the one before." in proven


def test_one_entry_is_told_in_the_singular():
    report = job_report(1)
    report["totals"]["entries"] = 1
    report["phases"]["verify"]["source"]["entries"] = report["phases"]["verify"]["dest"]["entries"] = 1
    report["phases"]["cutover"].update(files_created=0, files_updated=1, attributes_changed=0, files_total=1)
    text = plain(overview([report]))
    assert "1 of 1 entry is the same" in text and "1 entry changed" in text and "1 entries" not in text
    report["phases"]["verify"] = {}
    assert "0 of 1 job the trees were not compared yet" in plain(overview([report]))


def test_attempts_of_a_hook_are_counted():
    report = job_report(1)
    report["hooks"] = [report["hooks"][0]] * 3
    text = plain(make_job_page(parse_report(report), RUN))
    assert [f"old1.example | {number} |" in text for number in (1, 2, 3, 4)] == [True, True, True, False]


def test_deletions_are_named():
    report = job_report(1)
    report["phases"]["cutover"].update(files_deleted=2, deleted=["a/b", "c"])
    text = plain(make_job_page(parse_report(report), RUN))
    assert "Deleted at the destination (2 of 5)" in text and "| a/b |" in text


def test_a_report_that_cannot_be_read_costs_itself_alone():
    broken = {**job_report(2), "name": "web\x1b-002", "phases": 7}
    found, (warning,) = parse_reports([job_report(1), broken, job_report(3)])
    assert [one.state.name for one in found] == ["web-001", "web-003"]
    assert "leaves out job web\\x1b-002, since web\\x1b-002.json cannot be read: " in warning


@pytest.mark.parametrize("name", json.loads(BEFORE.read_text()))
def test_a_report_of_the_version_before_can_be_shown(name):
    report = parse_report(json.loads(BEFORE.read_text())[name])
    for page in (make_overview([report], RUN), make_job_page(report, RUN)):
        assert "data" in plain(page)


def test_a_job_that_goes_back_is_in_no_sum_and_has_no_downtime():
    back = job_report(2, "up to date", name="web.from-new")
    back["identity"]["dest"] = "/srv.from-new"
    page = overview([job_report(1), back])
    assert rows(page)["web.from-new"][1] == "copied back" and rows(page)["web.from-new"][8] == ""
    assert "| Sum of 1 |" in plain(page)


def test_no_job_is_a_page_as_well():
    assert "No job has run" in plain(overview([]))


def test_whatever_a_host_says_is_shown_as_text():
    report = job_report(1, "failed")
    report["failure"]["reason"] = report["warnings"][0] = report["next"] = HOSTILE + "x" * 10_000
    report["identity"] = dict.fromkeys(report["identity"], HOSTILE)
    report["hooks"][0].update(name=HOSTILE, what=HOSTILE, host=HOSTILE)
    report["phases"]["verify_failed"]["differences"][0].update(path=HOSTILE * 100, fields=[HOSTILE])
    report["phases"]["cutover"].update(files_deleted=1, deleted=[HOSTILE], method=HOSTILE, method_reason=HOSTILE)
    report["phases"]["cutover"]["owner_mismatches"][0].update(name=HOSTILE, path=HOSTILE)
    clean = render_page(overview([job_report(1, "failed")]))
    for page in (overview([report], [EarlierReport(HOSTILE, HOSTILE)]), make_job_page(parse_report(report), RUN)):
        html = render_page(page)
        outline = Outline.of(html)
        assert outline.problems == [] and set(outline.names) <= {*Outline.of(clean).names, "li", "code", "a"}
        assert "</script>" not in html and "\u202e" not in html and len(html) < len(clean) + 60_000


def test_a_job_in_the_table_alone_takes_little_room():
    sizes = [len(render_page(overview(fleet(count))).encode()) for count in (40, 80)]
    assert (sizes[1] - sizes[0]) / 40 < 2_500


@pytest.mark.long
def test_a_thousand_jobs_are_less_than_three_megabytes(record_property):
    reports = fleet(1000)
    began = time.process_time()
    html = render_page(overview(reports))
    record_property("processor_seconds", time.process_time() - began)
    assert len(html.encode()) < 3_000_000
    outline = Outline.of(html)
    assert outline.problems == [] and outline.plain.count("| ✓ switched over |") > 500


def test_predictions_of_a_benchmark_stand_beside_reality():
    checks = [
        {"what": "first copy", "predicted": 60, "low": 50, "high": 80, "real": 66},
        {"what": "pass without changes", "predicted": 4, "low": 3, "high": 6, "real": 12},
        {"what": "comparison by content", "predicted": 70, "low": 60, "high": 90, "real": None},
    ]
    text = plain(make_job_page(parse_report({**job_report(1), "benchmark": checks}), RUN))
    assert "| first copy | 1 min | 50 s to 1 min 20 s | 1 min 6 s | ✓ +10% within the range |" in text
    assert "| pass without changes | 4 s | 3 s to 6 s | 12 s | ▲ +200% outside of the range |" in text
    assert "| comparison by content | 1 min 10 s | 1 min to 1 min 30 s | not made yet |" in text
    assert "Predictions of the benchmark" not in plain(make_job_page(parse_report(job_report(1)), RUN))
