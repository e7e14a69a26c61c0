# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the report of a job says beside its state."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report import make_report
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import TransferSummary, parse_state

FRESH = {"name": "data", "identity": {"src_host": "old", "src": "/srv/", "dest_host": "new", "dest": "/srv"}}
CHANGED = {"changed_meanwhile": {"count": 2, "example": "log", "only": "unread"}}
QUIET = {"changed_meanwhile": {"count": 0, "example": "", "only": ""}}


def report(phases=None, warnings=(), **changes):
    return make_report(parse_state({**FRESH, "phases": phases or {}, **changes}), warnings)


def test_what_changed_meanwhile_is_a_hint_until_a_pass_has_brought_it():
    (hint,) = report({"seed": CHANGED}, ["no ACLs"])["hints"]
    assert "2 entries changed" in hint and "log" in hint and "final pass" in hint
    assert report({"seed": CHANGED}, ["no ACLs"])["warnings"] == [hint, "no ACLs"]
    assert report({"seed": QUIET, "sync": {"passes": [QUIET, CHANGED]}})["hints"] == [hint]
    assert report({"seed": CHANGED, "sync": {"passes": [CHANGED, QUIET]}})["hints"] == []
    assert report({"seed": CHANGED, "sync": {"passes": [CHANGED]}, "cutover": QUIET})["hints"] == []
    assert report({"seed": {}})["hints"] == []  # of a run of an older version


def test_a_prediction_is_told_until_a_transfer_was_made():
    told = {"predicted": TransferSummary(at="2026-01-02T00:00:00Z"), "deletions": "would delete 5"}
    found = make_report(parse_state(FRESH), ["no ACLs"], **told)
    assert (found["predicted"]["at"], found["deletions"]) == ("2026-01-02T00:00:00Z", "would delete 5")
    assert found["hints"] == ["would delete 5"] and found["warnings"] == ["would delete 5", "no ACLs"]
    for at, expected in (("2026-01-01T23:59:59Z", True), ("2026-01-02T00:00:01Z", False)):
        found = make_report(parse_state({**FRESH, "phases": {"seed": {"at": at}}}), ["no ACLs"], **told)
        assert (
            bool(found["predicted"]) == bool(found["deletions"]) == ("would delete 5" in found["warnings"]) == expected
        )


def test_totals_downtimes_and_hooks():
    seed = {
        "files_total": 9,
        "bytes_total": 90,
        "bytes_apparent": 900,
        "bytes_sent": 80,
        "files_deleted": 1,
        "at": "2026-01-01T00:00:00Z",
    }
    last = {
        "files_total": 10,
        "bytes_total": 95,
        "bytes_apparent": 950,
        "bytes_sent": 5,
        "files_deleted": 2,
        "at": "2026-01-01T01:00:00Z",
    }
    found = report(
        {"seed": seed, "cutover": last},
        downtimes=[{"from": "2026-01-01T00:00:50Z", "to": "2026-01-01T00:05:11Z", "serves": "the new host"}],
        hooks=[{"name": "stop", "kind": "before_cutover", "result": "done", "began": 100.0, "ended": 102.54}],
    )
    assert found["totals"] == {
        "entries": 10, "bytes": 95, "bytes_apparent": 950, "bytes_sent": 85, "files_deleted": 3,
    }  # fmt: skip
    (stop,), (hook,) = found["downtimes"], found["hooks"]
    assert (stop["seconds"], stop["lasted"], stop["serves"]) == (261.0, "4 min 21 s", "the new host")
    assert (hook["seconds"], hook["lasted"], hook["name"]) == (2.5, "2.5 s", "stop")
    assert report()["totals"] == {} and report()["downtimes"] == report()["hooks"] == []


def test_before_the_first_copy_the_totals_are_those_of_the_prediction():
    predicted = TransferSummary(at="2026-01-02T00:00:00Z", files_total=7, bytes_total=70, bytes_sent=70)
    found = make_report(parse_state(FRESH), predicted=predicted)["totals"]
    assert found == {"entries": 7, "bytes": 70, "bytes_apparent": 0, "bytes_sent": 70, "files_deleted": 0}


FORESEEN = {"at": "2026-01-01T00:00:00Z", "lasted": "40 s", "why": "as before", "seconds": 40.0}


@pytest.mark.parametrize(
    ("kept", "to", "real", "of"),
    [
        ({**FORESEEN, "began": 5.0, "took": 33.3}, "2026-01-01T00:05:00Z", 33.3, "the final passes and comparisons"),
        ({**FORESEEN, "began": 5.0}, "2026-01-01T00:05:00Z", None, "the final passes and comparisons"),
        ({**FORESEEN, "with_hooks": True}, "2026-01-01T00:05:00Z", 290.0, "the downtime"),
        ({**FORESEEN, "with_hooks": True}, "2025-12-31T00:05:00Z", None, "the downtime"),  # of an earlier cutover
    ],
)
def test_the_forecast_of_a_cutover_stands_beside_what_it_took(kept, to, real, of):
    downtimes = [{"from": "2026-01-01T00:00:10Z", "to": to, "serves": "the new host"}]
    found = report(cutover_forecast=kept, downtimes=downtimes)["foreseen"]
    assert (found["forecast"], found["forecast_lasted"], found["of"]) == (40.0, "40 s", of)
    assert found.get("real") == real
    assert report(cutover_forecast={**kept, "seconds": None})["foreseen"].get("forecast") is None
    assert report()["foreseen"] == {}
