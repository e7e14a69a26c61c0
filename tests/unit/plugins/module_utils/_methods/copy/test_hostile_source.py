# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A source that lies, by scp and sftp over a real sshd: nothing is written outside of the destination, or set-id."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy.common import partial_name
from ansible_collections.longhaul.fleet.tests.support import lying_source
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ID, Pair, settings
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.copy.test_scp_sftp import needs_sshd
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import run_through

pytestmark = [needs_sshd, pytest.mark.newest]
SECRET = "root:secret of 4"
BOTH = [(method, serving) for method in ("scp", "sftp") for serving in ("dest", "source")]
SCP_SERVERS = [lie for lie in lying_source.LIES if lie.startswith("scp server")]
OLD = 10**18  # ns


class Trees:
    """A source with one file, an empty destination, and what lies outside of both."""

    def __init__(self, folder: Path) -> None:
        self.source, self.dest, self.outside, self.work = (
            folder / name for name in ("source", "dest", "outside", "work")
        )
        for path in (self.source, self.dest, self.outside / "tmp", self.outside / "partial"):
            path.mkdir(parents=True)
        (self.source / "a").write_text("x" * len(SECRET))
        (self.source / "a").chmod(0o666)
        os.chown(self.source / "a", 1234, 1234)
        (self.outside / "secret").write_text(SECRET)
        (self.outside / "secret").chmod(0o600)
        os.mkfifo(folder / "fifo")  # which a lie moves
        for path in (*self.outside.rglob("*"), self.outside):
            os.utime(path, ns=(OLD, OLD))
        self.before = self._outside()

    def _outside(self) -> list[tuple[object, ...]]:
        found = []
        for path in (self.outside, *sorted(self.outside.rglob("*"))):
            status = path.lstat()
            text = path.read_text() if stat.S_ISREG(status.st_mode) else ""
            found.append((path.name, status.st_ino, status.st_mode, status.st_uid, status.st_mtime_ns, text))
        return found

    def transfer(
        self, method: str, serving: str, lie: str = "", side: str = "source", **changes: Any
    ) -> dict[str, Any]:
        """Run one transfer, with a lie at one side."""
        pair = Pair(self.work, self.source, self.dest, settings(method, **changes), serving)
        pair.use_ssh()
        if lie:
            words = [lying_source.__file__, lie, str(self.outside)]
            run_through(pair, side, first=" ".join(shlex.quote(word) for word in words))
        return pair.run()

    def expect_nothing_outside(self) -> None:
        assert self._outside() == self.before
        escaped = [path for path in self.dest.parent.rglob("*escaped*") if "job-source" not in str(path)]
        assert escaped == []
        setid = [path for path in self.dest.rglob("*") if path.is_file() and path.lstat().st_mode & 0o6000]
        assert [path for path in setid if f".longhaul-{ID}" not in str(path)] == []


@pytest.fixture(name="trees")
def _trees(tmp_path: Path) -> Trees:
    return Trees(tmp_path)


@pytest.mark.often(2)
@pytest.mark.parametrize(("method", "serving"), BOTH)
def test_a_staging_name_is_refused(trees, method, serving):
    planted = trees.source / f".longhaul-{ID}"
    planted.mkdir()
    for name in ("tmp", "partial"):
        (planted / name).symlink_to(trees.outside)
    outcome = trees.transfer(method, serving, "staging_offered")
    assert "a transfer's own folder" in str(outcome.get("failed")), outcome
    trees.expect_nothing_outside()
    staged = trees.dest / f".longhaul-{ID}"
    assert not any(path.is_symlink() for path in (staged, staged / "tmp", staged / "partial"))


@pytest.mark.often(2)
@pytest.mark.parametrize(("method", "serving"), BOTH)
def test_a_staging_folder_that_is_replaced_leads_nowhere(trees, method, serving):
    outcome = trees.transfer(method, serving, "staging_replaced", side="dest")
    assert outcome.get("errors") == [], outcome
    trees.expect_nothing_outside()
    assert (trees.dest / "a").read_text() == "x" * len(SECRET)


@pytest.mark.often(3)
@pytest.mark.parametrize("preserve", [["times"], settings("sftp")["preserve"]], ids=["times", "all"])
@pytest.mark.parametrize("lie", ["sftp_symlink", "sftp_hard_link", "sftp_folder", "sftp_fifo"])
def test_what_is_no_file_of_this_transfer_is_not_put_in_place(trees, lie, preserve):
    outcome = trees.transfer("sftp", "dest", lie, preserve=preserve)
    trees.expect_nothing_outside()
    assert [error["path"] for error in outcome["errors"]] == ["a"], outcome
    assert not (trees.dest / "a").exists()


def test_attributes_that_the_source_sets_by_itself_do_not_count(trees):
    outcome = trees.transfer("sftp", "dest", "sftp_owner", preserve=["times"])
    assert outcome["errors"] == [], outcome
    trees.expect_nothing_outside()
    found = (trees.dest / "a").stat()
    assert (found.st_uid, found.st_mode & 0o7000) == (os.geteuid(), 0)


@pytest.mark.parametrize("serving", ["dest", "source"])
def test_a_link_in_the_place_of_a_staged_file_is_not_written_through(trees, serving):
    found = (trees.source / "a").stat()
    entry = SimpleNamespace(path=b"a", size=found.st_size, mtime_ns=found.st_mtime_ns, ino=found.st_ino)
    partial = trees.dest / f".longhaul-{ID}" / "partial"
    partial.mkdir(parents=True)
    (partial / partial_name(entry).decode()).symlink_to(trees.outside / "secret")
    assert trees.transfer("sftp", serving)["errors"] == []
    trees.expect_nothing_outside()
    assert (trees.dest / "a").read_text() == "x" * len(SECRET) and not (trees.dest / "a").is_symlink()


def test_an_scp_that_pushes_elsewhere_writes_where_it_is_let(trees):
    outcome = trees.transfer("scp", "dest", "scp_elsewhere", preserve=["times"])
    assert outcome.get("errors") == [], outcome
    trees.expect_nothing_outside()
    assert (trees.dest / "a").read_text() == "x" * len(SECRET)
    assert os.listdir(trees.dest) == ["a"]


def test_an_scp_that_pushes_what_nobody_asked_for_brings_nothing(trees):
    """With -p it says times, too, which no scp of this collection does."""
    outcome = trees.transfer("scp", "dest", "scp_setid", preserve=["times"])
    assert "a line that is none of scp's: b'T" in outcome["failed"], outcome
    trees.expect_nothing_outside()
    assert os.listdir(trees.dest) in ([], [f".longhaul-{ID}"])
    assert trees.transfer("scp", "dest")["errors"] == []
    assert (trees.dest / "a").read_text() == "x" * len(SECRET)


@pytest.mark.parametrize("serving", ["dest", *rarely("source")])
def test_an_scp_that_says_what_none_should_say_changes_nothing(trees, serving):
    driving = "source" if serving == "dest" else "dest"
    outcome = trees.transfer("scp", serving, "scp_sessions", side=driving, preserve=["times"])
    assert outcome["errors"] == [], outcome
    trees.expect_nothing_outside()
    assert os.listdir(trees.dest) == ["a"] and (trees.dest / "a").read_text() == "x" * len(SECRET)


@pytest.mark.parametrize("lie", SCP_SERVERS)
def test_an_scp_that_lies_when_pulled_gets_nothing_out(trees, lie):
    """Names that lead out are refused by OpenSSH's client; what it takes has no more of its mode than is preserved."""
    (trees.source / "a").write_text("good")  # as long as what the lie sends
    outcome = trees.transfer("scp", "source", lie, preserve=["times"])
    assert "failed" in outcome or outcome["errors"] or lie.endswith("setid"), outcome
    trees.expect_nothing_outside()
    assert os.listdir(trees.dest) in ([], ["a"], [f".longhaul-{ID}"])
