# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Transfers as root over symbolic links of root, of a deployer, and of a user who wants to lead root elsewhere."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.interruption import Interruption
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.comparison import ComparisonFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.session import Session, TransferError
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.tree_comparison import compare_trees
from ansible_collections.longhaul.fleet.tests.soak.case import SPEC
from ansible_collections.longhaul.fleet.tests.soak.hosts import Host
from ansible_collections.longhaul.fleet.tests.support.compare import differences, recorded
from ansible_collections.longhaul.fleet.tests.support.swapper import HAS_EXCHANGE, swapping

WEB = 1234
METHODS = ("stream", "rsync", "rsyncd", "tar_nc", "scp", "sftp")
FAILURES = (Refusal, TransferError, HostFailed, ComparisonFailed)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: only root can be led elsewhere")


class Ground:
    """Two hosts that are this machine, with a source, an older copy, a home of WEB, an app of WEB, and a victim."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.victim, self.home, self.app = (folder / name for name in ("", "victim", "home/web", "app"))
        for name in ("src", "src/deep", "victim", "home/web/data", "app/releases/42", "older"):
            (folder / name).mkdir(parents=True)
        for number in range(20):
            (folder / "src/deep" / str(number)).write_text(f"content {number}")
        (self.victim / "shadow").write_text("root's alone")
        (self.victim / "shadow").chmod(0o600)
        for owned in ("src", "home/web", "home/web/data", "app", "app/releases", "app/releases/42"):
            os.chown(folder / owned, WEB, WEB)
        self.before = recorded(self.victim)
        self.hosts = [Host(name, folder / "hosts" / name) for name in ("one", "two")]

    def link(self, path: Path, target: Path | str, owner: int = WEB) -> Path:
        path.symlink_to(target)
        os.chown(path, owner, owner, follow_symlinks=False)
        return path

    def options(self, **changes: Any) -> dict[str, Any]:
        given = {name: option.get("default") for name, option in SPEC.items()}
        method = changes.get("method", "stream")
        trust = "none" if method in ("stream", "sftp") else "full"
        given.update(trust=trust, verify="none", src=f"{self.folder}/src/", timeout=60)
        if method in ("rsyncd", "tar_nc"):
            given["encryption"] = "none"
        return {**given, **changes}

    def transfer(self, check: bool = False, **changes: Any) -> dict[str, Any]:
        one, two = self.hosts
        return Session(one, two, self.options(**changes), check, lambda _line: None, Interruption()).run()

    def expect_victim_untouched(self) -> None:
        assert recorded(self.victim) == self.before


@pytest.fixture(name="ground")
def _ground(tmp_path: Path) -> Iterator[Ground]:
    made = Ground(tmp_path)
    try:
        yield made
    finally:
        for host in made.hosts:
            host.close()


@pytest.mark.parametrize("method", METHODS)
def test_a_users_link_leads_no_destination_elsewhere(ground: Ground, method: str) -> None:
    www = ground.link(ground.home / "www", ground.victim)
    for dest in (f"{www}", f"{www}/", f"{www}/deeper", f"{www}/../../../victim"):
        with pytest.raises(Refusal) as refused:
            ground.transfer(dest=dest, delete=True, method=method)
        said = str(refused.value)
        assert f"dest is {dest.rstrip('/')}" in said and f"{www} is a symbolic link of user id {WEB} to" in said, said
        assert "belongs to user root (0)" in said and f"(ls -ld {www})" in said, said
        ground.expect_victim_untouched()
    with pytest.raises(Refusal):
        ground.transfer(dest=str(www), method=method, check=True)


@pytest.mark.parametrize("method", ["stream", "rsync"])
def test_a_users_link_leads_no_source_elsewhere(ground: Ground, method: str) -> None:
    www = ground.link(ground.home / "www", ground.victim)
    file = ground.link(ground.home / "shadow", ground.victim / "shadow")
    for src in (f"{www}", f"{www}/", f"{www}/.", f"{www}/shadow", f"{file}"):
        with pytest.raises(Refusal, match=rf"src is {ground.home}.* is a symbolic link of user id {WEB} to"):
            ground.transfer(src=src, dest=str(ground.folder / "new"), method=method)
    with pytest.raises(Refusal, match="is a symbolic link of user id"):
        ground.transfer(src=f"{ground.victim}/shadow", dest=f"{ground.home}/shadow", method=method)
    assert not (ground.folder / "new").exists()
    ground.expect_victim_untouched()


@pytest.mark.parametrize("method", ["stream", "rsync"])
def test_a_users_link_is_no_older_copy(ground: Ground, method: str) -> None:
    older = ground.link(ground.home / "older", ground.victim)
    options: dict[str, Any] = {"dest": str(ground.folder / "new"), "method": method, "trust": "full"}
    for folder in (f"{older}", f"{older}/deeper"):
        with pytest.raises(Refusal, match=rf"link_dest on two: {older} is a symbolic link of user id {WEB} to"):
            ground.transfer(**options, link_dest=[folder])
    ground.link(ground.home / "mine", "data")
    ground.transfer(**options, link_dest=[f"{ground.home}/mine", f"{ground.folder}/missing"])
    assert differences(ground.folder / "src", ground.folder / "new") == []


def test_two_trees_are_not_compared_over_a_users_link(ground: Ground) -> None:
    www = ground.link(ground.home / "www", ground.victim)
    one, two = ground.hosts
    options = {**ground.options(), "fields": None, "limit": 10, "content": False, "extra": True}
    for src, dest in ((f"{www}/", str(ground.victim)), (f"{ground.victim}/", str(www))):
        with pytest.raises(Refusal, match="is a symbolic link of user id"):
            compare_trees(one, two, {**options, "src": src, "dest": dest}, lambda _line: None)


@pytest.mark.often(3)
@pytest.mark.parametrize("method", METHODS)
def test_what_a_deployer_and_root_link_to_works(ground: Ground, method: str) -> None:
    current = ground.link(ground.app / "current", "releases/42")
    ground.transfer(dest=str(current), method=method)
    assert differences(ground.folder / "src", ground.app / "releases/42") == []
    assert current.is_symlink()
    ground.transfer(src=f"{current}/", dest=str(ground.folder / "copy"), method=method, delete=True)
    assert differences(ground.app / "releases/42", ground.folder / "copy") == []
    roots = ground.link(ground.home / "roots", ground.folder / "older", 0)
    done = ground.transfer(dest=f"{roots}/new", method=method, connect="pull", verify="checksum")
    assert differences(ground.folder / "src", ground.folder / "older/new") == [] and done["verified"]


def test_roots_older_copies_are_linked_to_over_links(ground: Ground) -> None:
    ground.link(ground.app / "current", "releases/42")
    ground.transfer(dest=f"{ground.app}/current")
    for method in ("stream", "rsync"):
        for connect in ("push", "pull"):
            new = ground.folder / f"{method}-{connect}"
            options: dict[str, Any] = {"dest": str(new), "method": method, "connect": connect, "trust": "full"}
            ground.transfer(**options, link_dest=[f"{ground.app}/current"])
            assert os.path.samefile(new / "deep/7", ground.app / "releases/42/deep/7"), (method, connect)


@pytest.mark.skipif(not HAS_EXCHANGE, reason="cannot run here: this C library has no renameat2")
@pytest.mark.often(3)
@pytest.mark.parametrize("method", METHODS)
def test_a_user_who_exchanges_his_folder_and_a_link_all_the_time_leads_nothing_elsewhere(
    ground: Ground, method: str
) -> None:
    ground.link(ground.home / "www", ground.victim)
    (ground.home / "data/www").mkdir()
    (ground.victim / "new").mkdir()
    ground.before = recorded(ground.victim)
    endings: list[str] = []
    with swapping(ground.home, "data", "www", WEB):
        for number in range(8):
            for name in ("data", "data/new"):
                connect = ("push", "pull")[number % 2]
                try:
                    ground.transfer(dest=f"{ground.home}/{name}", delete=True, method=method, connect=connect)
                    endings.append("done")
                except FAILURES as error:
                    endings.append(str(error))
                ground.expect_victim_untouched()
                with contextlib.suppress(*FAILURES):
                    ground.transfer(src=f"{ground.home}/{name}/", dest=str(ground.folder / "got"), method=method)
                assert not (ground.folder / "got/shadow").exists()
    assert any("symbolic link" in one or "no longer the folder" in one for one in endings), endings
