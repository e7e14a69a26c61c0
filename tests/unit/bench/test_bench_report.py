# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The benchmark judges and shows figures right."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.bench import cases, disk, image_backup, long_line, page, run, table
from ansible_collections.longhaul.fleet.tests.bench.measuring import Figure
from ansible_collections.longhaul.fleet.tests.bench.ours import TRANSFERS
from ansible_collections.longhaul.fleet.tests.bench.targets import TARGETS, Target, judge, verdict
from ansible_collections.longhaul.fleet.tests.unit.bench.test_bench_counters import MACHINE

FASTER = Target("faster", "large", "ours", ("slow", "quick"), least=1.5, aim=2)
LESS = Target("less", "changed", "ours", metric="share", least=2, aim=1.1, low=True)


def _figure(part, tool, *seconds, **more):
    return Figure(part, tool, [{"seconds": value, **more} for value in seconds])


@pytest.mark.parametrize(
    "target, value, expected",
    [
        (FASTER, 2.0, "aim"),
        (FASTER, 1.99, "at least"),
        (FASTER, 1.49, "missed"),
        (FASTER, None, "not measured"),
        (LESS, 1.1, "aim"),
        (LESS, 2.0, "at least"),
        (LESS, 2.1, "missed"),
        (Target("only an aim", "x", "y", aim=0.8), 0.79, "missed"),
        (Target("only an aim", "x", "y", aim=0.8), 0.8, "aim"),
        (Target("neither", "x", "y"), 5.0, ""),
    ],
)
def test_verdict(target: Target, value: float | None, expected: str) -> None:
    assert verdict(target, value) == expected


def test_the_fastest_of_the_others_counts_and_the_median_of_each() -> None:
    figures = [
        _figure("large", "ours", 1.0, 9.0, 2.0, phase=3.0, task=4.0),
        _figure("large", "slow", 8.0),
        _figure("large", "quick", 3.0, 100.0, 1.0),
        _figure("small", "quick", 0.001),
    ]
    (seen,) = judge(figures, [FASTER])
    assert (seen.value, seen.phase, seen.task, seen.verdict) == (1.5, 1.0, 0.75, "at least")


def test_a_failed_tool_is_no_measure() -> None:
    failed = _figure("large", "quick", 0.1)
    failed.failed = "no port"
    ours = _figure("large", "ours", 1.0)
    assert judge([ours, failed, _figure("large", "slow", 2.0)], [FASTER])[0].value == 2.0
    assert judge([ours, failed], [FASTER])[0].verdict == "not measured"
    assert judge([failed], [FASTER])[0].value is None


def test_a_quantity_is_scaled() -> None:
    target = Target("memory", "entries", "ours", metric="memory", least=150, low=True, scale=1 << 20)
    (seen,) = judge([_figure("entries", "ours", 1.0, memory=100 << 20)], [target])
    assert (seen.value, seen.verdict) == (100, "at least")


def test_targets_name_parts_and_transfers_that_there_are() -> None:
    parts = {*cases.PARTS, "prune", *disk.TITLES, *image_backup.TITLES, *long_line.TITLES}
    assert {target.part for target in TARGETS} <= parts
    tools = {name for target in TARGETS for name in (target.tool, *target.against) if name.startswith("transfer ")}
    assert tools <= set(TRANSFERS)
    peers = {name for target in TARGETS if target.part in ("large", "small") for name in target.against}
    assert peers - set(TRANSFERS) <= set(cases.ALL_PEERS)


@pytest.mark.parametrize(
    "value, text", [(None, ""), (0.126, "0.13"), (9.99, "9.99"), (12.34, "12.3"), (1234.5, "1234"), (0.0, "0.00")]
)
def test_number(value: float | None, text: str) -> None:
    assert table.number(value) == text


def test_a_table_is_aligned() -> None:
    assert table.table(("tool", "s"), [("rsync", "1.00"), ("a", "10.0")]) == (
        "| tool  |    s |\n| ----- | ---: |\n| rsync | 1.00 |\n| a     | 10.0 |\n"
    )


def test_figures_have_rates_and_stand_beside_the_reference() -> None:
    failed = Figure("large", "broken", [], "no port")
    shown = table.figures_table(
        [_figure("large", "daemon", 2.0, 4.0, 2.0), _figure("large", "ours", 1.0, task=3.0, wire=5e6), failed],
        size=100_000_000,
        reference="daemon",
    )
    cells = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in shown.splitlines()]
    assert cells[0] == ["tool", "s", "MB/s", "times daemon", "whole task, s", "wire, MB", "spread"]
    assert cells[2] == ["daemon", "2.00", "50.0", "1.00", "", "", "2.00"]
    assert cells[3] == ["ours", "1.00", "100", "2.00", "3.00", "5.00", "1.00"]
    assert cells[4] == ["broken", "", "", "", "", "", "failed"]


def test_the_report_says_what_was_not_measured() -> None:
    failed = Figure("large", "scp", [], "TestbedError: lost: /some/path\nand more")
    options = {"mib": 32, "files": 5000, "repeat": 3}
    notes = ["large: rclone sftp was not measured: it is not there"]
    report = page.as_json(
        MACHINE, options, {"large": "large files"}, {}, [_figure("large", "iperf3", 1.0), failed], notes
    )
    text = page.markdown(json.loads(json.dumps(report)))
    assert (
        "* large: scp failed: TestbedError, see the report\n" in text
        and "* large: rclone sftp was not measured" in text
    )
    assert "### large: large files" in text and "5,000 small ones; median of 3" in text
    assert text.count("not measured |") == len(TARGETS) == len(report["targets"])


def test_what_was_not_measured_again_comes_from_the_last_report() -> None:
    def report(figures: list[Figure], notes: list[str], entries: int = 0) -> dict[str, Any]:
        options = {"mib": 32, "files": 5000, "repeat": 3, "entries": entries}
        titles = {"large": "large files", "small": "small ones", "entries": "many", "small: xfs": "of it"}
        return page.as_json(MACHINE, options, titles, {}, figures, notes)

    last = report(
        [_figure("large", "iperf3", 1.0), _figure("small", "iperf3", 2.0), _figure("entries", "iperf3", 3.0)]
        + [_figure("small: xfs", "iperf3", 4.0)],
        ["small: scp was not measured: old", "entries: scp was not measured: old"],
        1000,
    )
    again = page.joined(last, report([_figure("small", "iperf3", 9.0)], ["small: scp was not measured: new"]))
    assert [(one["part"], one["median"]["seconds"]) for one in again["figures"]] == [
        ("large", 1.0),
        ("small", 9.0),
        ("small: xfs", 4.0),
        ("entries", 3.0),
    ]
    assert again["notes"] == ["entries: scp was not measured: old", "small: scp was not measured: new"]
    assert again["options"]["entries"] == 1000 and len(again["targets"]) == len(TARGETS)
    with pytest.raises(page.OtherReport, match="another machine or of other sizes"):
        page.joined({**last, "options": {**last["options"], "mib": 64}}, again)


def test_only_what_is_between_the_markers_is_replaced() -> None:
    old = f"# Title\n\n{page.BEGIN}\n\nold\n\n{page.END}\n\nafter\n"
    new = page.replace_figures(old, "\nnew | table\n\n")
    assert new == f"# Title\n\n{page.BEGIN}\n\nnew | table\n\n{page.END}\n\nafter\n"
    assert page.replace_figures(new, "new | table") == new


@pytest.mark.parametrize("text", ["", page.BEGIN, f"{page.END}{page.BEGIN}", f"{page.BEGIN}{page.BEGIN}{page.END}"])
def test_a_page_without_its_markers_is_left_alone(text: str) -> None:
    with pytest.raises(ValueError, match="once each"):
        page.replace_figures(text, "new")


def test_there_is_no_report_yet(tmp_path, capsys):
    assert run.main(["--show", "--out", str(tmp_path / "none.json")]) == 1
    assert "there is no report to show" in capsys.readouterr().err


def test_what_cannot_be_added_to_is_told_before_anything_is_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(run, "why_not", lambda: "")
    out = tmp_path / "report.json"
    options = {"mib": 32, "files": 5000, "repeat": 3, "entries": 0}
    out.write_text(json.dumps(page.as_json(MACHINE, options, {}, {}, [], [])))
    assert run.main(["--add", "--mib", "1", "--out", str(out)]) == 1
    assert "of other sizes" in capsys.readouterr().err
