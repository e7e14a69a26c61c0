# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a task returns, made of invented accounts."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Progress
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import (
    shape_result,
    shorten_lists,
    summary_line,
    with_earlier,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import Status


def result(
    method: str, outcome: Outcome | None, relabel: str = "", progress: Progress | None = None, check: bool = False
) -> dict[str, Any]:
    """Return the result of a transfer that was planned with two streams."""
    plan: Any = SimpleNamespace(
        transfer_id="0" * 16,
        choice=SimpleNamespace(method=method, reason="it was named"),
        encrypted=True,
        trust="full",
        driver="source",
        settings={"streams": 2, "preserve": [], "bwlimit": 0, "check": check},
        warnings=(),
        line_rate=0,
        relabel=relabel,
    )
    state = "finished" if outcome else "running"
    said = Outcome.from_json(json.loads(json.dumps(outcome.as_dict()))) if outcome else None
    status = Status(state, outcome is None, outcome=said, progress=progress or Progress())
    return shape_result(plan, status, state, {"transfer": 9.0}, {})


def test_relabelling_is_advised_where_something_was_made():
    assert result("stream", Outcome(files_created=1), "run restorecon")["warnings"] == ["run restorecon"]
    assert "warnings" not in result("stream", Outcome(attributes_changed=1), "run restorecon")
    assert "warnings" not in result("stream", Outcome(files_created=1))


@pytest.mark.parametrize(("used", "said"), [(8, 8), (0, 2)])
def test_the_streams_that_were_used_are_returned(used, said):
    assert result("stream", Outcome(streams=used))["streams"] == said
    assert result("stream", None)["streams"] == 2  # while it runs


def test_a_failure_for_nothing_but_changing_files_is_told_from_others():
    def said(failure: str = "", unstable: int = 2, others: int = 0) -> bool:
        outcome = Outcome(failure=failure)
        for number in range(unstable):
            outcome.unstable(f"log{number}", "unstable: sent 2 times")
        for number in range(others):
            outcome.error(f"closed{number}", "Permission denied")
        return result("stream", outcome)["only_unstable"]

    assert said()
    assert not said(unstable=0) and not said(others=1) and not said(failure="max_delete allows 0 to be deleted")


def test_the_bottleneck_is_judged_by_the_streams_that_were_used():
    ends = {side: {"wall": 10.0, "processor": 30.0, "cores": 8, "roles": {}} for side in ("source", "dest")}
    for used, name in ((1, "source_cpu"), (8, "none")):
        assert result("rsync", Outcome(streams=used, bytes_content=1, spent=ends))["bottleneck"]["name"] == name
    links = {"send": [80.0, 1.0]}, {"receive": [80.0, 1.0]}
    ends = {
        side: {"wall": 10.0, "processor": 1.0, "cores": 8, "roles": {"link": spent}}
        for side, spent in zip(("source", "dest"), links)
    }
    found = result("stream", Outcome(streams=8, bytes_content=1, spent=ends))["bottleneck"]
    assert found["name"] == "network" and "over 8 connections" in found["evidence"]


@pytest.mark.parametrize("changed", [{}, {"attributes_changed": 3}, {"files_deleted": 3}])
def test_no_bottleneck_is_named_where_nothing_was_sent(changed):
    links = {"source": {"send": [80.0, 1.0]}, "dest": {"receive": [80.0, 1.0]}}
    ends = {side: {"wall": 10.0, "processor": 1.0, "roles": {"link": spent}} for side, spent in links.items()}
    found = result("stream", Outcome(files_total=9, spent=ends, **changed))["bottleneck"]
    assert found["name"] == "none" and found["sentence"] == "Nothing was sent, so nothing held the transfer back."
    predicted = result("stream", Outcome(files_created=9, bytes_content=90, spent=ends, **changed), check=True)
    assert predicted["bottleneck"]["name"] == "none"
    moved = result("stream", Outcome(files_created=9, spent=ends, **changed))
    assert moved["bottleneck"]["name"] == "network"


@pytest.mark.parametrize(("count", "left"), [(0, 0), (20, 20), (21, 20), (300, 20)])
def test_a_result_lists_as_many_changes_as_a_terminal_has_room_for(count, left):
    outcome = Outcome()
    for number in range(count):
        outcome.change(f">f+++++++++ {number}", 200)
    shortened = result("stream", outcome)
    assert shortened["changes_truncated"] is (count > 200)
    shorten_lists(shortened)
    assert shortened["changes"] == [f">f+++++++++ {number}" for number in range(left)]
    assert shortened["changes_total"] == count
    assert shortened["changes_truncated"] is (count > left)


@pytest.mark.parametrize("count", [0, 20, 21, 200])
def test_a_result_lists_as_many_paths_as_a_terminal_has_room_for(count):
    paths = [str(number) for number in range(count)]
    outcome = Outcome(errors=[{"path": path, "reason": "denied"} for path in paths], errors_total=count)
    shortened = result("stream", outcome)
    shortened["differences"] = [{"path": path} for path in paths]
    shortened["repaired"] = paths
    shorten_lists(shortened)
    found = [len(shortened[name]) for name in ("errors", "differences", "repaired")]
    assert found == [min(count, 20)] * 3 and shortened["errors_total"] == count


def test_what_an_earlier_run_did_that_nobody_waited_for_counts_too():
    earlier = Outcome(files_created=3, bytes_content=60, bytes_sent=30, changes=["old"], changes_total=1, deleted=["x"])
    status = Status("finished", False, outcome=Outcome(files_total=5, files_updated=1, bytes_sent=1, changes=["new"]))
    both = with_earlier(status, earlier).outcome
    assert (both.files_created, both.files_updated, both.files_unchanged, both.bytes_sent) == (3, 1, 1, 31)
    assert both.bytes_content == 60
    assert (both.changed, both.changes, both.changes_total, both.deleted) == (True, ["old", "new"], 1, ["x"])
    assert with_earlier(status, Outcome(bytes_sent=5)) is status and with_earlier(status, None) is status
    assert status.outcome.files_created == 0


def test_the_throughput_is_of_the_wire_and_the_rest_of_contents():
    found = result("stream", Outcome(bytes_apparent=3000, bytes_total=100, bytes_content=60, bytes_sent=18))
    assert [found[f"bytes_{name}"] for name in ("apparent", "total", "content", "matched", "sent")] == [
        *(3000, 100, 60, 40, 18)
    ]
    assert found["throughput"] == 2


def test_of_a_transfer_that_runs_the_progress_is_told():
    progress = Progress()
    progress.bytes_apparent, progress.bytes_total, progress.bytes_done, progress.bytes_sent = 3000, 100, 60, 20
    found = result("stream", None, progress=progress)
    assert [found[f"bytes_{name}"] for name in ("apparent", "total", "content", "sent")] == [3000, 100, 60, 20]


def test_a_transfer_ends_in_one_line():
    outcome = Outcome(files_total=9, files_created=2, files_deleted=1, bytes_total=2**20, bytes_apparent=2**21)
    outcome.bytes_content = outcome.bytes_sent = 2**19
    done = {**result("stream", outcome), "verified": "checksum", "phases": {"transfer": 1.25}}
    tree = "old -> new: 9 entries, 1.0 MiB (2.0 MiB with holes); 2 new, 1 deleted"
    assert summary_line("old -> new", done, check=False) == (
        f"{tree}; sent 512.0 KiB in 1.2 s (stream, encrypted); compared by checksum: identical"
    )
    assert "; attached to a running transfer: sent 512.0 KiB in 1.2 s in all (stream" in summary_line(
        "old -> new", done, False, "attached to a running transfer"
    )
    assert summary_line("old -> new", done, check=True) == f"{tree} (check mode); 512.0 KiB to send"
    assert "identical but for 1 entry that changed" in summary_line("", {**done, "unstable": 1}, check=False)
    same = {**done, "files_created": 0, "files_deleted": 0, "bytes_content": 0}
    assert summary_line("", same, check=True).endswith("; nothing to change (check mode)")
    assert "Run the task again" in summary_line("", {**done, "state": "running"}, check=False)
