# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The benchmark measures what it says, from the command line to the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.bench import run
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

MIB = 1 << 20


def test_a_small_run_measures_a_transfer_beside_a_program(
    testbed: Testbed,  # it says where none can be had; the benchmark brings up its own
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "report/bench.json"
    tools = ["rsync -aHAX daemon", "transfer stream TLS"]
    chosen = ["--quick", "--mib", "4", "--only", "large", "--tools", ",".join(tools), "--out", str(out)]
    assert run.main(chosen) == 0, capsys.readouterr().out
    report = json.loads(out.read_text())
    assert [figure["tool"] for figure in report["figures"]] == tools
    for figure in report["figures"]:
        (sample,) = figure["runs"]
        assert sample["seconds"] > 0 and not figure["failed"]
        assert 4 * MIB < sample["wire"] < 5 * MIB  # all of it travelled, and nothing else did
    ours = report["figures"][1]["runs"][0]
    assert ours["task"] > ours["seconds"]
    reached = {target["what"]: target for target in report["targets"]}
    assert reached["large files, TLS, against the plain rsync daemon"]["seen"] > 0
    assert reached["large files, plain, against iperf3"]["verdict"] == "not measured"
    said = capsys.readouterr().out
    assert run.main(["--show", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "| transfer stream TLS |" in shown and shown in said
