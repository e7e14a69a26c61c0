# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options and the result of the action; the work itself has tests of its own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible_collections.longhaul.fleet.plugins.action import benchmark
from ansible_collections.longhaul.fleet.plugins.modules.benchmark import DOCUMENTATION, RETURN
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.abilities import PairRules, find_abilities
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.candidates import list_candidates
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.kept import find_recent
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.recommend import conclude
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal

from tests.support.measured_pairs import end, measured

OPTIONS = {name: one.get("default") for name, one in yaml.safe_load(DOCUMENTATION)["options"].items()}
learnt: list[tuple[object, ...]] = []
TREE = {"src": "/srv/", "dest": "/srv"}


@pytest.fixture(name="act")
def _act(monkeypatch, tmp_path: Path):
    """Return a function that runs the action, and returns the result and the lines."""

    def run(check: bool = False, no_log: bool = False, folder: Path = tmp_path, **options: Any) -> Any:
        abilities = find_abilities(end("source"), end("dest"), PairRules())
        concluded = conclude(measured(), abilities, list_candidates(measured(), abilities), "/srv/", "/srv")
        monkeypatch.setattr(benchmark, "benchmark_pair", lambda *_asked: concluded)
        monkeypatch.setattr(benchmark, "keep_measured_line", lambda *given: learnt.append(given[1:]))
        action: Any = object.__new__(benchmark.ActionModule)
        action._task, action.interruption = SimpleNamespace(check_mode=check, no_log=no_log), None
        hosts = [SimpleNamespace(name=name, variables={}) for name in ("old", "new")]
        lines: list[str] = []
        learnt.clear()
        return action.run_pair(*hosts, {**OPTIONS, "folder": str(folder), **TREE, **options}, lines.append), lines

    return run


def test_the_result_is_what_is_documented(act):
    result, lines = act()
    documented = yaml.safe_load(RETURN)
    assert set(result) - {"changed"} == set(documented)
    for name in ("measurement", "recommendation"):
        assert set(result[name]) == set(documented[name]["contains"])
    assert {member for one in result["candidates"] for member in one} == set(documented["candidates"]["contains"])
    assert any(line.startswith("Recommended: ") for line in lines)
    assert learnt == [(("old", "new"), 4, 0.0002)]


def test_the_result_is_kept_unless_told_otherwise(act, tmp_path: Path):
    assert act(keep=False)[0]["kept"] == "" and list(tmp_path.iterdir()) == []
    result, _lines = act()
    assert Path(result["kept"]).parent == tmp_path
    found = find_recent(str(tmp_path), "old", "new", 1.8e9)
    assert found is not None and found.src == "/srv/"


def test_a_result_that_cannot_be_kept_is_a_warning(act, tmp_path: Path):
    (tmp_path / "file").write_text("")
    result, _lines = act(folder=tmp_path / "file")
    assert result["kept"] == "" and "longhaul_state_dir" in result["warnings"][0]
    assert result["recommendation"]["method"] == "stream"


def test_the_page_has_the_newest_result_of_each_pair(act, tmp_path: Path):
    result = act()[0]
    kept = Path(result["kept"])
    other = kept.read_text().replace('"dest": "new"', '"dest": "third"')
    (tmp_path / "old_to_third-0123456789ab.json").write_text(other)
    (tmp_path / "report.json").write_text(other.replace("third", "fourth"))
    (tmp_path / "broken-0123456789ab.json").write_text("{")
    result, lines = act(started_by="ada@control")
    page = (tmp_path / "report.html").read_text()
    assert "warnings" not in result and lines[-1] == f"Report: {tmp_path}/report.html"
    assert "Measured 2 pairs." in page and "ada@control" in page and "third" in page and "fourth" not in page


def test_a_page_that_cannot_be_written_is_a_warning(act, tmp_path: Path):
    (tmp_path / "report.html").mkdir()
    result, lines = act()
    assert Path(result["kept"]).is_file() and not any(line.startswith("Report:") for line in lines)
    assert f"{tmp_path}/report.html could not be written: Is a directory" in result["warnings"][0]


def test_nothing_is_measured_in_check_mode(act, tmp_path: Path):
    assert act(check=True)[0]["skipped"] and list(tmp_path.iterdir()) == []


def test_nothing_is_shown_with_no_log(act):
    assert act(no_log=True)[1] == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"src": None}, "dest is set and src is not"),
        ({"dest": None}, "src is set and dest is not"),
        ({"src": "srv"}, "src is 'srv'"),
        ({"bytes": "much"}, "bytes is 'much'"),
        ({"exclude": ["- x"]}, "that is a rule"),
        ({"port_range": "9-1"}, "port_range"),
        ({"rsync_floor": "new"}, "rsync_floor"),
    ],
)
def test_options_that_cannot_be_met_are_refused(options: dict[str, Any], why: str):
    with pytest.raises(Refusal, match=why):
        benchmark.parse_request({**OPTIONS, **TREE, **options}, "full")


def test_options_are_passed_on():
    given = {"exclude": ["*.tmp"], "seconds": 30, "bytes": "500M", "port": 5000, "methods": "measured"}
    request = benchmark.parse_request({**OPTIONS, **TREE, **given}, "none")
    assert (request.measure.seconds, request.measure.bytes) == (30, 500 << 20)
    assert list(request.measure.rules) == ["- *.tmp"] and list(request.measure.ports) == [5000]
    assert (request.tries, request.trust) == (True, "none")
    alone = benchmark.parse_request(OPTIONS, "full")
    assert (alone.measure.src, alone.measure.dest) == ("", "")
