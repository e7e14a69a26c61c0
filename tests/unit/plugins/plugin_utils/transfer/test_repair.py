# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is done about differences after a transfer: which paths are sent again how, and what is said of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.module_utils._model.filters import Filters
from ansible_collections.longhaul.fleet.plugins.module_utils._model.paths import escape
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.walk import walk
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer import repair
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.comparison import ComparisonOutcome

SETTINGS = {
    "delta": "auto",
    "checksum": False,
    "suspects": [],
    "only": None,
    "rules": ["- *.tmp"],
    "delete": True,
    "max_delete": 5,
}
NAMES = (b"plain", b"s t a r *", b"[x]", b"back\\slash", b"back\\slash*", b"q?", b"nl\nname", b" blank ", b"\xff\xfe")


def difference(path, kind="differs", fields=("content",), unstable=False):
    return {"path": path, "kind": kind, "fields": list(fields), "unstable": unstable}


@pytest.mark.parametrize(
    ("method", "only", "paths", "number", "expected"),
    [
        ("stream", None, {"b", "a"}, 1, {"suspects": ["a", "b"]}),
        ("stream", None, {"a"}, 3, {"suspects": ["a"]}),
        ("sftp", "a", {"a"}, 1, {"suspects": ["a"]}),
        ("stream", None, None, 1, {"checksum": True}),
        (
            "rsync",
            None,
            {"d/a"},
            1,
            {"checksum": True, "rules": ["+ /d", "+ /d/a", "- *"], "delete": False, "max_delete": None},
        ),
        ("rsyncd", None, {"d/a"}, 2, {"checksum": True}),
        ("rsync", "a", {"a"}, 1, {"checksum": True}),
        ("rsync", None, None, 1, {"checksum": True}),
    ],
)
def test_only_what_differs_is_looked_at_again(method, only, paths, number, expected):
    settings = dict(SETTINGS, method=method, only=only)
    assert repair.settings_for_repair(settings, paths, number) == {**settings, **expected}


def test_a_repair_leaves_nothing_to_rsync():
    settings = dict(SETTINGS, method="stream", delta="rsync")
    assert repair.settings_for_repair(settings, {"a"}, 1)["delta"] == "blocks"


@pytest.fixture(name="tree")
def tree_of_hard_names(tmp_path):
    """Return a folder with a file of each hard name, in a folder of that name and beside it, and more of the like."""
    for name in (*NAMES, b"other", b"xx", b"qq"):
        folder = os.path.join(os.fsencode(tmp_path), name)
        os.mkdir(folder)
        for inside in (*NAMES, b"other"):
            Path(os.fsdecode(os.path.join(folder, inside))).touch()
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_rules_let_these_paths_through_and_nothing_else(tree, name):
    path = name + b"/" + name
    rules = repair.rules_for([escape(path), "."])
    found = [
        entry.path
        for entry in walk(os.fsencode(tree), filters=Filters.parse(rules), on_error=lambda *_error: pytest.fail())
    ]
    assert found == [b"", name, path]
    options = [
        "--recursive",
        "--dry-run",
        "--8-bit-output",
        "--out-format=%n|",
        *(f"--filter={rule}" for rule in rules),
    ]
    said = subprocess.run(["rsync", *options, f"{tree}/", f"{tree}-none"], stdout=subprocess.PIPE, check=True).stdout
    listed = {line.lstrip(b"\n") for line in said.split(b"|")} - {b""}
    assert len(listed) == 3, listed  # the root, the folder and the file


@pytest.mark.parametrize(
    ("one", "is_silent"),
    [
        (difference("a"), True),
        (difference("a", fields=("content", "size")), False),
        (difference("a", fields=("content", "mtime")), False),
        (difference("a", fields=("mode",)), False),
        (difference("a", kind="missing", fields=()), False),
        (difference("a", unstable=True), False),
    ],
)
def test_a_change_that_nothing_explains_is_told_from_others(one, is_silent):
    assert repair.silent([one]) == (["a"] if is_silent else [])
    result = {}
    repair.note_repaired(result, ComparisonOutcome({}, None, [one], 1), ComparisonOutcome({}))
    assert (result["repaired"], result["repaired_total"]) == (["a"], 1)
    (warning,) = result["warnings"]
    assert ("memory" in warning) == is_silent and ("Quiesce" in warning) != is_silent


def test_what_still_differs_was_not_repaired():
    found = ComparisonOutcome({}, None, [difference("a"), difference("b")], 2)
    result = {"warnings": ["before"]}
    repair.note_repaired(result, found, ComparisonOutcome({}, None, [difference("b")], 1))
    assert (result["repaired"], result["repaired_total"]) == (["a"], 1)
    assert result["warnings"][0] == "before" and len(result["warnings"]) == 2


def test_a_repair_counts_as_a_change():
    result = {
        "changed": False,
        "bytes_total": 100,
        "bytes_content": 20,
        "bytes_sent": 10,
        "bytes_matched": 80,
        "files_created": 0,
        "files_updated": 1,
        "files_deleted": 0,
        "files_unchanged": 9,
        "attributes_changed": 0,
        "changes": ["one"],
        "changes_total": 1,
        "changes_truncated": False,
    }
    outcome = Outcome(bytes_content=7, bytes_sent=5, files_updated=2, changes=["two", "three"], changes_total=2)
    repair.add_repair(result, outcome, 2)
    assert result["changed"] and result["changes"] == ["one", "two"] and result["changes_truncated"]
    assert result["changes_total"] == 3
    assert (result["bytes_content"], result["bytes_sent"], result["bytes_matched"]) == (27, 15, 73)
    assert (result["files_updated"], result["files_unchanged"]) == (3, 7)
