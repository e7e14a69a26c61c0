# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ends that lie in SFTP over a real sshd, with the real sftp: nothing around a root is changed or read."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support import lying_sftp
from ansible_collections.longhaul.fleet.tests.support.canary import Canary
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ID, Pair, settings
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.copy.test_scp_sftp import needs_sshd
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import run_through

pytestmark = [needs_sshd, pytest.mark.newest]
SERVERS = [lie for lie in lying_sftp.LIES if lie != "packets"]
OLD = 10**18  # ns


class Ground:
    """A source, and a root with an older copy beside it, and what must neither be changed nor read."""

    def __init__(self, folder: Path) -> None:
        self.source, self.work, self.ground = folder / "source", folder / "work", folder / "ground"
        self.root, self.older, self.outside = (self.ground / name for name in ("root", "older", "outside"))
        for path in (self.source / "folder", self.root, self.outside / "tmp", self.outside / "partial"):
            path.mkdir(parents=True)
        for name in ("same", "changed", "folder/deep"):
            (self.source / name).write_text(name)
            os.utime(self.source / name, ns=(OLD, OLD))
        subprocess.run(["cp", "-a", self.source, self.older], check=True)
        (self.source / "changed").write_text("changed since")
        (self.source / "excluded.key").write_text("a key")
        (self.outside / "secret").write_text("root:secret")
        (self.outside / "secret").chmod(0o600)
        self.canary = Canary(self.ground, self.root, self.older)
        self.kept = Canary(self.source, self.source / "none", self.source / "none")

    def transfer(self, method: str, serving: str, side: str = "", lie: str = "") -> dict[str, Any]:
        """Run a transfer, in which a side may lie."""
        given = {"link_dest": [str(self.older)], "delete": True, "rules": ["- *.key"], "timeout": 20}
        pair = Pair(self.work, self.source, self.root, settings(method, **given), serving)
        pair.use_ssh()
        if lie:
            words = [lying_sftp.__file__, lie, str(self.outside)]
            run_through(pair, side, first=" ".join(shlex.quote(word) for word in words))
        return pair.run()

    def expect_nothing_harmed(self) -> None:
        granted = self.ground / lying_sftp.GRANTED
        said = granted.read_bytes() if granted.exists() else b""
        granted.unlink(missing_ok=True)
        assert [line for line in self.canary.changes() if not self._is_of_the_folder(line)] == []
        assert self.kept.changes() == []
        found = [path for path in self.ground.parent.rglob("*escaped*") if "work" not in str(path)]
        assert found == [] and not list(self.work.rglob("*escaped*"))
        setid = [path for path in self.root.rglob("*") if path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)]
        assert [path for path in setid if f".longhaul-{ID}" not in str(path)] == []
        if said:
            granted.write_bytes(said)

    def _is_of_the_folder(self, line: str) -> bool:
        """Whether a change is that of the folder in which a lie writes its own report."""
        return line.startswith((f"{self.ground}: modified", f"{self.ground}: changed"))

    def expect_an_honest_transfer(self, method: str, serving: str) -> None:
        outcome = self.transfer(method, serving)
        assert outcome.get("errors") == [] and outcome["failure"] == "", outcome
        self.expect_a_copy()

    def expect_a_copy(self) -> None:
        times = self.source.stat()
        (self.source / "excluded.key").unlink()
        os.utime(self.source, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert differences(self.source, self.root) == []
        self.kept = Canary(self.source, self.source / "none", self.source / "none")


@pytest.fixture(name="ground")
def _ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


@pytest.mark.parametrize("serving", ["dest", "source"])
def test_a_client_gets_nothing_but_the_files_of_the_plan(ground, serving):
    driving = "source" if serving == "dest" else "dest"
    outcome = ground.transfer("sftp", serving, driving, "packets")
    asked, granted = json.loads((ground.ground / lying_sftp.GRANTED).read_text())
    assert asked > 500 and granted == []
    ground.expect_nothing_harmed()
    assert outcome["errors"] == [], outcome
    ground.expect_a_copy()


@pytest.mark.often(2)
@pytest.mark.parametrize("lie", SERVERS)
@pytest.mark.parametrize("serving", ["source", "dest"])
def test_a_server_that_lies_harms_nothing(ground, serving, lie):
    outcome = ground.transfer("sftp", serving, serving, lie)
    ground.expect_nothing_harmed()
    said = json.dumps(outcome, ensure_ascii=False)
    assert outcome.get("failed") or outcome.get("errors") is not None, said
    ground.expect_an_honest_transfer("sftp", serving)
    ground.expect_nothing_harmed()


def test_a_server_that_sends_without_end_is_stopped(ground):
    outcome = ground.transfer("sftp", "source", "source", "data_without_end")
    assert "sends more than was asked for" in outcome["failed"]
    assert sum(path.stat().st_size for path in ground.root.rglob("*")) < 4 << 30
