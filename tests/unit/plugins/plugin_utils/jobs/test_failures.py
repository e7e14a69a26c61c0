# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All failures of a run: each once, with its reason and what to do, and never without bounds."""

from __future__ import annotations

import json

from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.failures import (
    ReportedFailure,
    keep_failures,
    read_failures,
    render_failures,
    sum_up,
)

FULL = ReportedFailure(
    "data", "stopped in phase seed", "the preflight found these problems:\n- no room\n", "Make room."
)


def many(count: int) -> list[ReportedFailure]:
    return [FULL._replace(name=f"n{number}") for number in range(count)]


def test_each_is_shown_with_its_reason_and_what_to_do() -> None:
    bare = ReportedFailure("log", "failed", "", "")
    assert render_failures([FULL, bare]) == [
        "data stopped in phase seed: the preflight found these problems:",
        "- no room",
        "  next: Make room.",
        "log failed: no reason is known",
    ]


def test_of_two_with_one_name_the_last_counts() -> None:
    assert read_failures([{"name": "data", "what": "failed", "reason": "a"}, FULL._asdict()]) == [FULL]


def test_more_than_a_terminal_shows_are_counted() -> None:
    lines = render_failures(many(1000))
    assert 390 < len(lines) <= 401 and lines[-1] == "... and 867 more, which are in the report"
    assert "n133" not in "\n".join(lines) and lines[-2] == "  next: Make room."


def test_one_failure_is_shown_whole_whatever_its_length() -> None:
    assert len(render_failures([FULL._replace(reason="line\n" * 1000)])) == 1001


def test_one_sentence_sums_them_up() -> None:
    said = sum_up([FULL], 3, "/srv/report.html")
    assert said == "1 of 3 jobs failed: data. Why, and what to do, is listed above and in /srv/report.html"
    aside = FULL._replace(what="was set aside")
    assert "1 of 3 jobs needs attention: data" in sum_up([aside], 3, "") and "2 of 3 jobs failed" in sum_up(
        [aside, FULL], 3, ""
    )
    assert "n9 and 990 more" in sum_up(many(1000), 2000, "") and "report" not in sum_up(many(2), 2, "")


def test_what_is_kept_is_bounded_and_json() -> None:
    kept = keep_failures([one._replace(reason="x" * 10_000 + "\udcff\x1b[0m") for one in many(1000)])
    assert len(kept) == 50 and len(json.dumps(kept).encode()) < 60_000 and len(kept[0]["reason"]) == 500
    assert keep_failures([FULL])[0]["reason"] == "the preflight found these problems: - no room"
