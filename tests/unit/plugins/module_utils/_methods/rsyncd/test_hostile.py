# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hostile peers of a daemon for one transfer, with the real rsync: nothing around the root changes, or is read.

The module is the root alone, in a chroot. The peer knows the password, and asks for what it likes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsyncd import method as rsyncd
from ansible_collections.longhaul.fleet.tests.support.canary import Canary
from ansible_collections.longhaul.fleet.tests.support.lying_daemon import LyingRelay
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import ID, Pair, settings

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: only root can change its root folder")

SECRET = "not-a-secret-of-liars"
STAGING = f".longhaul-{ID}"
NAME, FOLDER = "!" * 14, "f" * len(STAGING)
LIES = {  # names of as many bytes as NAME, that a source must not be able to write
    "up": "../outside/" + "x" * 3,
    "up and down": "a/../../escape",
    "absolute": "/" + "x" * 13,
    "through a link": "leadsout/" + "x" * 5,
    "through a link that is there": "isthere__/" + "x" * 4,
    "dots": "./" * 6 + "..",
    "twice": "w" * 14,
    "the root": "." + "/." * 6 + "/",
}


class Ground:
    """A pair whose roots have something around them that must stay, and must not be read."""

    def __init__(self, folder: Path) -> None:
        ground = folder / "ground"
        ground.mkdir(parents=True)
        (folder / "ends").mkdir()
        self.pair = Pair(folder / "ends")
        self.pair.stop_after = 15.0
        self.pair.dest.rmdir()
        self.pair.dest, self.outside, self.older = ground / "root", ground / "outside", ground / "older"
        for path in (self.pair.dest, self.outside, self.older):
            path.mkdir()
        (self.outside / "secret").write_text("root:secret")
        (self.outside / "xxx").write_text("another's")
        (self.older / "file").write_text("older copy")
        (self.pair.dest / "isthere__").symlink_to(self.outside)
        source = self.pair.source
        (source / NAME).write_text("evil " * 100)
        (source / ("w" * 14)).write_text("first")
        (source / FOLDER).mkdir()
        for name in ("tmp", "partial"):
            (source / FOLDER / name).symlink_to(self.outside)
        (source / "leadsout").symlink_to(self.outside)
        (source / "secretly").symlink_to(self.outside / "secret")
        (source / "honest").write_text("honest")
        self.taken = folder / "taken"
        self.taken.mkdir()
        self.canary = Canary(ground, self.pair.dest, folder / "none")
        self.kept = Canary(source, source / "none", folder / "none")

    @contextlib.contextmanager
    def daemon(self, side: str) -> Iterator[str]:
        """Serve a root, as a job does; gives the URL of the module for who knows the password."""
        plan = settings(method="rsyncd")
        self.pair.staged(plan)
        context = self.pair.context(side, "serve", plan)
        context.serve.update(address="127.0.0.1", ports=[0], allow=["127.0.0.1"])
        context.secrets = {"daemon": SECRET}
        server = rsyncd.serve(context)
        try:
            yield f"rsync://longhaul@127.0.0.1:{server.ready['port']}"
        finally:
            server.close()
            self.pair.close()

    def transfer(self, connect: str, said: str, texts: list[tuple[str, str]], **changes: Any) -> str:
        """Run a transfer through a relay that lies; return why it failed, if it did."""
        lies = {said: {"texts": [[old.encode().hex(), new.encode().hex()] for old, new in texts]}}
        relays: list[LyingRelay] = []

        def through(port: int) -> int:
            relays.append(LyingRelay(port, lies))
            return relays[-1].port

        self.pair.through = through
        try:
            outcome = self.pair.over_daemon(connect, **{"timeout": 10, **changes})
            return outcome.failure or "; ".join(str(error) for error in outcome.errors)
        except TransferFailed as error:
            return str(error)
        finally:
            for relay in relays:
                relay.close()

    def expect_nothing_harmed(self) -> None:
        assert self.canary.changes() == []
        assert self.kept.changes() == []


@pytest.fixture(name="ground")
def _ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def run(*words: str) -> tuple[int, str]:
    """Run the rsync of a hostile peer."""
    environment = {**os.environ, "RSYNC_PASSWORD": SECRET}
    argv = ["rsync", "--timeout=10", *words]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


def test_the_same_transfer_without_a_lie_arrives(ground):
    shutil.rmtree(ground.pair.source / FOLDER)
    (ground.pair.dest / "isthere__").unlink()
    assert ground.transfer("push", "up", []) == ""
    assert (ground.pair.dest / "honest").read_text() == "honest"
    assert ground.canary.changes() == []


def test_a_lie_reaches_the_peer(ground):
    ground.transfer("push", "up", [(NAME, "#" * 14)])
    assert (ground.pair.dest / ("#" * 14)).exists() and not (ground.pair.dest / NAME).exists()


@pytest.mark.often(16)
@pytest.mark.parametrize("connect", ["push", "pull"])
@pytest.mark.parametrize("changes", [{}, {"delete": True}, {"inplace": True}], ids=str)
@pytest.mark.parametrize("lie", LIES)
def test_names_that_lead_elsewhere_write_nothing_there(ground, connect, changes, lie):
    ground.transfer(connect, "up" if connect == "push" else "down", [(NAME, LIES[lie])], **changes)
    ground.expect_nothing_harmed()
    assert not Path("/" + "x" * 13).exists()


@pytest.mark.parametrize("connect", ["push", "pull"])
@pytest.mark.parametrize("name", [STAGING, ".longhaul-" + "0" * 16], ids=["its own", "another"])
def test_the_staging_folder_cannot_be_exchanged(ground, connect, name):
    (ground.pair.dest / "isthere__").unlink()
    said = "up" if connect == "push" else "down"
    ground.transfer(connect, said, [(FOLDER, name)])
    ground.expect_nothing_harmed()
    ground.transfer(connect, said, [])  # and what a later run finds there leads nowhere either
    ground.expect_nothing_harmed()


@pytest.mark.parametrize(
    "words",
    [
        ["-a", "--delete"],
        ["-a", "--keep-dirlinks"],
        ["-a", "--inplace", "--copy-links"],
        ["-a", "--temp-dir=/../outside"],
        ["-a", "--temp-dir=isthere__"],
        ["-a", "--partial-dir=/../outside", "--delay-updates"],
        ["-a", "--backup", "--backup-dir=/../outside"],
        ["-a", "--link-dest=/../older"],
        ["-a", "--copy-dest=/../outside", "--checksum"],
        ["-a", "--write-devices", "--super"],
        ["-a", "--remote-option=--log-file=/../outside/log"],
        ["-a", "--relative"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("place", ["", "../outside/", *rarely("../", "isthere__/", "./isthere__/../")])
def test_a_source_with_options_of_its_own_writes_nothing_outside(ground, words, place):
    (ground.pair.source / "isthere__").mkdir()
    (ground.pair.source / "isthere__" / "xxx").write_text("evil")
    with ground.daemon("dest") as url:
        run(*words, f"{ground.pair.source}/", f"{url}/longhaul/{place}")
    assert ground.canary.changes() == []


def test_a_source_reads_nothing_of_the_destination(ground):
    (ground.pair.dest / "private").write_text("of the destination")
    with ground.daemon("dest") as url:
        for place in ("longhaul/", "longhaul/isthere__/", "longhaul/../outside/", "../"):
            code, _said = run("-aL", f"{url}/{place}", f"{ground.taken}/")
            assert code != 0 and os.listdir(ground.taken) == []


@pytest.mark.parametrize("place", ["", "leadsout/", "secretly", "../ground/outside/", "/ground/outside/secret", "../"])
@pytest.mark.parametrize(
    "words", [["-a"], ["-aL"], ["-a", "--copy-unsafe-links"], ["-rR", "--copy-dirlinks"]], ids=" ".join
)
def test_a_destination_reads_nothing_but_the_source(ground, words, place):
    with ground.daemon("source") as url:
        run(*words, f"{url}/longhaul/{place}", f"{ground.taken}/")
        assert run("-a", f"{ground.pair.source}/", f"{url}/longhaul/")[0] != 0  # nor writes there
    ground.expect_nothing_harmed()
    contents = [path.read_text() for path in ground.taken.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not {"root:secret", "another's"} & set(contents)
