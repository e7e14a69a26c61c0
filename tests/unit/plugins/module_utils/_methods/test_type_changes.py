# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the source has where the destination has a directory, and the other way round: deletions like all others."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync import watch
from ansible_collections.longhaul.fleet.tests.support import rsync_pair
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair, settings

METHODS = ("stream", "tar_nc", "rsync")
COUNTED = ("files_created", "files_updated", "files_deleted", "attributes_changed")
LARGE = 300_000  # bytes: larger than what stream sends in bundles


class Trees:
    """A source and a destination, and a method to transfer with."""

    def __init__(self, folder: Path, method: str) -> None:
        self.folder, self.method = folder, method
        self._rsync = rsync_pair.Pair(folder)
        self.source, self.dest = self._rsync.source, self._rsync.dest

    def transfer(self, **changes: Any) -> dict[str, Any]:
        if self.method == "rsync":
            return self._rsync.over_shell(**changes).as_dict()
        plan = settings(self.method, **{"encrypt": False, **changes})
        return Pair(self.folder / "work", self.source, self.dest, plan).run()

    def both(self, **changes: Any) -> dict[str, Any]:
        """Predict a transfer, run it, and compare what both say."""
        before = self.listing()
        predicted = self.transfer(check=True, **changes)
        assert self.listing() == before
        done = self.transfer(**changes)
        assert {name: predicted[name] for name in COUNTED} == {name: done[name] for name in COUNTED}
        assert sorted(predicted["changes"]) == sorted(done["changes"])
        assert predicted["errors"] == done["errors"] and predicted["failure"] == done["failure"]
        return done

    def listing(self) -> list[str]:
        return sorted(
            str(path.relative_to(self.dest)) for path in self.dest.rglob("*") if ".longhaul-" not in str(path)
        )


@pytest.fixture(name="pair", params=METHODS)
def _pair(request, tmp_path: Path) -> Trees:
    return Trees(tmp_path, request.param)


def make_file(path: Path) -> None:
    path.write_text("file")


def make_large(path: Path) -> None:
    path.write_bytes(os.urandom(LARGE))


def make_symlink(path: Path) -> None:
    path.symlink_to("nowhere")


def make_linked(path: Path) -> None:
    path.write_text("linked")
    os.link(path, path.parent / "other")


KINDS = [make_file, make_large, make_symlink, make_linked]
# A dry run of rsync 3.5 says "updated" of a further name that is made in the place of a directory.
ALIKE = [(method, make) for method in METHODS for make in KINDS if (method, make) != ("rsync", make_linked)]
each_kind = pytest.mark.parametrize(("pair", "make"), ALIKE, indirect=["pair"])


@pytest.mark.often(4)
@each_kind
def test_what_the_rules_protect_survives_what_replaces_its_folder(pair, make):
    make(pair.source / "a")
    kept = (
        pair.dest / "a" / ("x.keep" if pair.method == "rsync" else "deep/x.keep")
    )  # a dry run of rsync sees no deeper
    kept.parent.mkdir(parents=True)
    kept.write_text("precious")
    (pair.dest / "a" / "y").write_text("")
    done = pair.both(delete=True, rules=["- *.keep"])
    assert kept.read_text() == "precious"
    failed = {error["path"]: error["reason"] for error in done["errors"]}
    assert "a" in failed and "cannot delete non-empty directory" in failed["a"]
    assert "protect" in failed["a"] and "delete: true" not in failed["a"]
    assert done["files_deleted"] == 1  # y, as rsync does
    shutil.rmtree(pair.dest / "a")
    done = pair.both(delete=True, rules=["- *.keep"])
    assert done["errors"] == [] and differences(pair.source, pair.dest) == []
    assert not pair.transfer(delete=True, rules=["- *.keep"])["changed"]


@pytest.mark.often(4)
@each_kind
def test_the_limit_of_deletions_counts_what_is_replaced(pair, make):
    make(pair.source / "a")
    (pair.dest / "a" / "b").mkdir(parents=True)
    for number in range(4):
        (pair.dest / "a" / "b" / f"x{number}").write_text("")
    (pair.dest / "z").write_text("")
    before = pair.listing()
    done = (pair.transfer if pair.method == "rsync" else pair.both)(delete=True, max_delete=5)
    assert "6 entries" in done["failure"] and "max_delete" in done["failure"] and done["files_deleted"] == 0
    assert [name for name in pair.listing() if name != "other"] == before
    done = pair.both(delete=True, max_delete=6)
    assert done["errors"] == [] and not done["failure"] and done["files_deleted"] == 6
    assert differences(pair.source, pair.dest) == []
    assert not pair.transfer(delete=True, max_delete=0)["changed"]


@pytest.mark.often(4)
@each_kind
def test_without_delete_a_folder_with_contents_stays(pair, make):
    make(pair.source / "a")
    (pair.dest / "a").mkdir()
    (pair.dest / "a" / "x").write_text("precious")
    done = pair.both()
    assert (pair.dest / "a" / "x").exists() and done["files_deleted"] == 0
    reasons = [error["reason"] for error in done["errors"] if error["path"] == "a"]
    assert len(reasons) == 1 and "delete: true" in reasons[0]


def test_a_single_file_deletes_nothing(pair):
    (pair.source / "a").write_text("file")
    (pair.dest / "a").mkdir()
    (pair.dest / "a" / "x").write_text("precious")
    done = pair.both(only="a", delete=True)
    assert (pair.dest / "a" / "x").exists() and done["files_deleted"] == 0
    assert "cannot delete non-empty directory" in done["errors"][0]["reason"]
    assert "delete: true" not in done["errors"][0]["reason"]


def test_what_takes_the_place_of_one_entry_is_no_deletion(pair):
    (pair.source / "a").write_text("file")
    (pair.source / "b").mkdir()
    (pair.source / "b" / "x").write_text("file")
    (pair.source / "c").symlink_to("b")
    (pair.dest / "a").mkdir()
    (pair.dest / "b").write_text("file")
    (pair.dest / "c").write_text("file")
    done = pair.both(delete=True, max_delete=0)
    assert done["errors"] == [] and not done["failure"] and done["files_deleted"] == 0
    assert differences(pair.source, pair.dest) == []


@pytest.mark.parametrize("pair", [method for method in METHODS if method != "rsync"], indirect=True)
def test_a_further_name_waits_for_its_place_and_its_file(pair):
    """The first name and a further one, each where a folder is, and a further name of one that is in place."""
    (pair.source / "a").write_text("one")
    os.link(pair.source / "a", pair.source / "b")
    os.link(pair.source / "a", pair.source / "c")
    (pair.source / "d").write_text("two")
    os.link(pair.source / "d", pair.source / "e")
    shutil.copy2(pair.source / "d", pair.dest / "d")
    for name in "abe":
        (pair.dest / name).mkdir()
        (pair.dest / name / "x").write_text("")
    done = pair.both(delete=True, max_delete=3)
    assert done["errors"] == [] and not done["failure"] and done["files_deleted"] == 3
    assert differences(pair.source, pair.dest) == []


@pytest.fixture(name="soon_trapped")
def _soon_trapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take an rsync for trapped after seconds."""
    for limit in ("TRAPPED", "UNASKED"):
        monkeypatch.setattr(watch, limit, 4.0)


@pytest.mark.usefixtures("soon_trapped")
@pytest.mark.parametrize("pair", ["rsync"], indirect=True)
@pytest.mark.parametrize("limit", [1, 2])
def test_rsync_does_not_wait_for_a_file_with_several_names(pair, limit):
    """By itself rsync 3.5 does, for ever."""
    make_linked(pair.source / "a")
    (pair.dest / "a").mkdir()
    for name in "xy":
        (pair.dest / "a" / name).touch()
    predicted = pair.transfer(check=True, delete=True, timeout=120)
    assert predicted["files_deleted"] == 2 and not predicted["failure"] and predicted["errors"] == []
    done = pair.transfer(delete=True, max_delete=limit, timeout=120)
    if limit == 1:
        assert "2 entries" in done["failure"] and (pair.dest / "a" / "x").exists()
        assert (pair.dest / "other").read_text() == "linked"
    else:
        assert done["errors"] == [] and not done["failure"] and done["files_deleted"] == 2
        assert differences(pair.source, pair.dest) == []


@pytest.mark.usefixtures("soon_trapped")
@pytest.mark.parametrize("pair", ["rsync"], indirect=True)
def test_rsync_keeps_what_the_rules_protect_from_a_file_with_several_names(pair):
    make_linked(pair.source / "a")
    (pair.dest / "a").mkdir()
    (pair.dest / "a" / "x.keep").touch()
    (pair.dest / "extra").touch()
    done = pair.transfer(delete=True, rules=["- *.keep"], timeout=120)
    assert (pair.dest / "a" / "x.keep").exists() and not (pair.dest / "extra").exists()
    assert [error["path"] for error in done["errors"]] == ["a"] and "protect" in done["errors"][0]["reason"]
    assert (pair.dest / "other").read_text() == "linked"
