# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The benchmark measures what it says, from the command line to the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.bench import run
from ansible_collections.longhaul.fleet.tests.support import earlier_commit
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

MIB = 1 << 20


def _report(tmp_path: Path, capsys: pytest.CaptureFixture[str], *chosen: str) -> tuple[dict[str, Any], str]:
    """Run a small benchmark; give its report, and what a person saw."""
    out = tmp_path / "report/bench.json"
    code = run.main(["--quick", *chosen, "--out", str(out)])
    said = capsys.readouterr().out
    assert code == 0, said
    return json.loads(out.read_text()), said


def test_a_small_run_measures_a_transfer_beside_a_program(
    testbed: Testbed,  # skips if there can be none; the benchmark brings up its own
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tools = ["rsync -aHAX daemon", "transfer stream TLS"]
    report, said = _report(tmp_path, capsys, "--mib", "4", "--only", "large", "--tools", ",".join(tools))
    assert [figure["tool"] for figure in report["figures"]] == tools
    for figure in report["figures"]:
        (sample,) = figure["runs"]
        assert sample["seconds"] > 0 and not figure["failed"]
        assert 4 * MIB < sample["wire"] < 5 * MIB  # all of it travelled, and nothing else did
    ours = report["figures"][1]["runs"][0]
    assert ours["task"] > ours["phase"] > ours["seconds"] - 0.05  # which is seen from outside, a little late
    reached = {target["what"]: target for target in report["targets"]}
    assert reached["large files, TLS, against the plain rsync daemon"]["seen"] > 0
    assert reached["large files, plain, against iperf3"]["verdict"] == "not measured"
    assert run.main(["--show", "--out", str(tmp_path / "report/bench.json")]) == 0
    shown = capsys.readouterr().out
    assert "| transfer stream TLS |" in shown and shown in said


@pytest.mark.long
def test_what_is_killed_at_half_sends_again_what_it_lost_and_the_first_file_is_seen(
    testbed: Testbed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ("--mib", "16", "--only", "killed,entries", "--entries", "5000")
    report, _said = _report(tmp_path, capsys, *chosen, "--tools", "rsync --inplace daemon,rsync -aHAX daemon")
    killed, entries = (figure["median"] for figure in report["figures"])
    assert killed["sent again"] < 12 * MIB  # the half that had arrived is no more than compared
    assert 0 < entries["first byte"] < entries["seconds"] + 1
    assert entries["memory source"] > 100_000 and entries["memory dest"] > 100_000


@pytest.mark.long
def test_an_earlier_version_takes_turns_with_todays(
    testbed: Testbed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = earlier_commit.why_not()
    if reason:
        pytest.skip(f"cannot run here: {reason}")
    tools = "rsync -aHAX daemon,transfer stream TLS"
    report, said = _report(tmp_path, capsys, "--only", "start", "--tools", tools, "--against", earlier_commit.EARLIER)
    assert [figure["tool"] for figure in report["figures"]] == ["transfer stream TLS (earlier)", "transfer stream TLS"]
    assert all(figure["runs"][0]["processor"] > 0 for figure in report["figures"])
    assert "### Today's version by the earlier one" in said and "start, transfer stream TLS" in said
