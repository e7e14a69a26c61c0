# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.kept import (
    RECENT,
    file_name,
    find_recent,
    keep_result,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.measurement import BenchmarkResult
from ansible_collections.longhaul.fleet.tests.support.measured_pairs import concluded, measured

NOW = 1_800_000_000.0


def result(at: float, source: str = "old", dest: str = "new") -> BenchmarkResult:
    pair = dataclasses.replace(measured(gaps=("The disk was not measured.",)), source=source, dest=dest, at=at)
    return dataclasses.replace(concluded(pair), src="/srv/", dest="/srv")


def test_a_result_is_found_as_it_was_kept(tmp_path: Path):
    path = keep_result(str(tmp_path / "made"), result(NOW))

    assert find_recent(str(tmp_path / "made"), "old", "new", NOW + 60) == result(NOW)
    assert Path(path).parent == tmp_path / "made"


def test_the_last_five_of_a_pair_are_kept(tmp_path: Path):
    for minute in range(8):
        path = keep_result(str(tmp_path), result(NOW + 60 * minute))
    keep_result(str(tmp_path), result(NOW, source="other"))

    times = [one["measurement"]["at"] for one in json.loads(Path(path).read_text())["results"]]
    assert times == [NOW + 60 * minute for minute in (7, 6, 5, 4, 3)]
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("now", "counts"), [(NOW, True), (NOW + RECENT, True), (NOW + RECENT + 1, False), (NOW - 600, False)]
)
def test_only_a_recent_one_counts(tmp_path: Path, now: float, counts: bool):
    keep_result(str(tmp_path), result(NOW))
    assert (find_recent(str(tmp_path), "old", "new", now) is not None) == counts


def test_each_direction_has_its_own(tmp_path: Path):
    keep_result(str(tmp_path), result(NOW))
    assert find_recent(str(tmp_path), "new", "old", NOW) is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"results": 5}', '{"results": [{"measurement": {"at": "x"}}]}'])
def test_a_damaged_file_counts_as_none_and_is_replaced(tmp_path: Path, text: str):
    path = tmp_path / file_name("old", "new")
    path.write_text(text)

    assert find_recent(str(tmp_path), "old", "new", NOW) is None
    keep_result(str(tmp_path), result(NOW))
    assert find_recent(str(tmp_path), "old", "new", NOW) == result(NOW)


def test_a_file_of_another_pair_is_not_taken_for_this_one(tmp_path: Path):
    path = Path(keep_result(str(tmp_path), result(NOW)))
    path.rename(tmp_path / file_name("other", "new"))
    assert find_recent(str(tmp_path), "other", "new", NOW) is None


def test_a_folder_that_is_missing_or_cannot_be_read_has_none(tmp_path: Path):
    assert find_recent(str(tmp_path / "no"), "old", "new") is None
    (tmp_path / file_name("old", "new")).mkdir()
    assert find_recent(str(tmp_path), "old", "new") is None


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "", ".", "x" * 300, "\n", "ü"])
def test_no_name_of_a_host_leaves_the_folder(name: str):
    found = file_name(name, "new")
    assert "/" not in found and not found.startswith(".") and len(found) < 200
    assert found != file_name(name + "2", "new")


def test_an_older_file_without_later_fields_is_read(tmp_path: Path):
    path = Path(keep_result(str(tmp_path), dataclasses.replace(result(NOW), candidates=())))
    written = json.loads(path.read_text())
    del written["results"][0]["src"], written["results"][0]["measurement"]["gaps"]
    path.write_text(json.dumps(written))

    found = find_recent(str(tmp_path), "old", "new", NOW)
    assert found is not None and found.src == "" and found.measurement.gaps == ()
