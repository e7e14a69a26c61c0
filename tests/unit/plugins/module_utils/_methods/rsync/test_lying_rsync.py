# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers by rsync in which the peer's rsync names what it must not: nothing around the root changes."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support import lying_rsync
from ansible_collections.longhaul.fleet.tests.support.canary import Canary
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import ID, Pair
from hypothesis import Phase, given
from hypothesis import settings as tried
from hypothesis import strategies as st

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: only root can change its root folder")

STAGING = f".longhaul-{ID}"
# What the lies take the place of. Both ends sort the list: the name must come first as the lies do, or its number is
# that of another entry.
NAME, FOLDER = "!" * 14, "f" * len(STAGING)
# Names of as many bytes, that a source must not be able to write
LIES = {
    "up": "../outside/" + "x" * 3,
    "up and down": "a/../../escape",
    "absolute": None,  # below
    "through a link": "leadsout/" + "x" * 5,
    "through a link that is there": "isthere__/" + "x" * 4,
    "dots": "./" * 6 + "..",
    "twice": "w" * 14,
    "empty parts": "outside//" + "x" * 5,
    "the root": "." + "/." * 6 + "/",
}
# A folder is named as the staging folder, or something in it
STAGED = (STAGING, ".longhaul-" + "0" * 16)


class Ground:
    """A pair of which the destination has something around it that must stay."""

    def __init__(self, folder: Path) -> None:
        ground = folder / "ground"
        ground.mkdir(parents=True)
        (folder / "ends").mkdir()
        self.pair = Pair(folder / "ends")
        self.pair.stop_after = 15.0  # a liar may keep an rsync waiting, which is no harm to any file
        self._honest = self.pair.shell
        # The root lies among what must not change
        self.pair.dest.rmdir()
        self.pair.dest = ground / "root"
        self.outside = ground / "outside"
        for path in (self.pair.dest, self.outside):
            path.mkdir()
        (self.outside / "secret").write_text("root:secret")
        (self.outside / ("x" * 3)).write_text("another's")
        (self.pair.dest / "isthere__").symlink_to(self.outside)
        source = self.pair.source
        (source / NAME).write_text("evil " * 100)
        (source / ("w" * 14)).write_text("first")
        (source / FOLDER).mkdir()
        (source / FOLDER / "tmp").symlink_to(self.outside)
        (source / FOLDER / "partial").symlink_to(self.outside)
        (source / "leadsout").symlink_to(self.outside)
        (source / "honest").write_text("honest")
        self.canary = Canary(ground, self.pair.dest, folder / "older")
        self.kept = Canary(source, source / "none", folder / "older")

    def transfer(self, connect: str, lies: dict[str, Any], **changes: Any) -> str:
        """Run a transfer whose peer lies; return why it failed, if it did."""

        def lying(side: str, plan: dict[str, Any]) -> str:
            shell = self._honest(side, plan)
            words = [sys.executable, lying_rsync.__file__, json.dumps(lies), *shlex.split(shell)]
            script = self.pair.folder / "lying"
            script.write_text(f'#!/bin/sh\nexec {" ".join(shlex.quote(word) for word in words)} "$@"\n')
            script.chmod(0o755)
            return str(script)

        self.pair.shell = lying  # type: ignore[method-assign]
        outcome = self.pair.over_shell(connect, **{"timeout": 20, **changes})
        return outcome.failure or "; ".join(str(error) for error in outcome.errors)


@pytest.fixture(name="ground")
def _ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def of_a_source(connect: str, *texts: tuple[str, str], **more: Any) -> dict[str, Any]:
    """Return the lies of a source, which drives in a push and is driven in a pull."""
    said = {"texts": [[old.encode().hex(), new.encode().hex()] for old, new in texts], **more}
    return {"up" if connect == "push" else "down": said}


def test_the_same_transfer_without_a_lie_arrives(ground):
    """The tests below find what they look for, and not a mistake of their own."""
    shutil.rmtree(ground.pair.source / FOLDER)
    (ground.pair.dest / "isthere__").unlink()
    assert ground.transfer("push", {}) == ""
    assert (ground.pair.dest / "honest").read_text() == "honest"
    assert ground.canary.changes() == []


def test_a_lie_reaches_the_peer(ground):
    """A name that is harmless arrives in the place of the honest one."""
    ground.transfer("push", of_a_source("push", (NAME, "#" * 14)))
    assert (ground.pair.dest / ("#" * 14)).exists() and not (ground.pair.dest / NAME).exists()


@pytest.mark.often(24)
@pytest.mark.parametrize("connect", ["push", "pull"])
@pytest.mark.parametrize("changes", [{}, {"numeric_ids": False}, {"delete": True}, {"inplace": True}], ids=str)
@pytest.mark.parametrize("lie", LIES)
def test_names_that_lead_elsewhere_write_nothing_there(ground, connect, changes, lie):
    """In a root folder of its own, by --confine-root (where names are looked up), and where rsync drives."""
    name = LIES[lie] or f"/{'x' * 13}"
    ground.transfer(connect, of_a_source(connect, (NAME, name)), **changes)
    assert ground.canary.changes() == []
    assert ground.kept.changes() == []
    assert not Path(f"/{'x' * 13}").exists()


@pytest.mark.often(5)
@pytest.mark.parametrize("connect", ["push", "pull"])
@pytest.mark.parametrize("changes", [{}, {"numeric_ids": False}, {"delete": True}], ids=str)
@pytest.mark.parametrize("name", STAGED, ids=["its own", "another"])
def test_the_staging_folder_cannot_be_exchanged(ground, connect, changes, name):
    (ground.pair.dest / "isthere__").unlink()
    ground.transfer(connect, of_a_source(connect, (FOLDER, name)), **changes)
    assert ground.canary.changes() == []
    # and what a later run finds there leads nowhere either
    ground.transfer(connect, {}, **changes)
    assert ground.canary.changes() == []


@pytest.mark.parametrize("connect", ["push", "pull"])
def test_a_single_file_is_all_that_a_source_can_bring(ground, connect):
    only = "#" * 14
    (ground.pair.source / only).write_text("asked for")
    ground.transfer(connect, of_a_source(connect, (only, NAME)), only=only)
    assert sorted(path.name for path in ground.pair.dest.iterdir() if path.name != STAGING) == ["isthere__"]
    assert ground.canary.changes() == []


@pytest.mark.long
@pytest.mark.parametrize("connect", ["push", "pull"])
@pytest.mark.parametrize("side", ["source", "dest"])
def test_bytes_that_are_wrong_harm_nobody(connect, side):
    """Either end says something else at some places, after the first bytes, which say who it is."""
    direction = "up" if (connect == "push") == (side == "source") else "down"

    @given(flips=st.lists(st.tuples(st.integers(4, 1500), st.integers(1, 255)), min_size=1, max_size=6))
    @tried(max_examples=8, deadline=None, phases=[Phase.generate], derandomize=True)
    def check(flips: list[tuple[int, int]]) -> None:
        folder = Path(tempfile.mkdtemp(prefix="lying-"))
        try:
            ground = Ground(folder)
            ground.transfer(connect, {direction: {"flips": flips}}, delete=True, timeout=4)
            assert ground.canary.changes() == []
            assert ground.kept.changes() == []
        finally:
            subprocess.run(["rm", "-rf", str(folder)], check=True)

    check()


@pytest.mark.parametrize("cut", range(1, 14))
def test_a_text_is_replaced_wherever_it_is_cut(cut):
    falsifier = lying_rsync.Falsifier([(b"n" * 14, b"x" * 14)], {2: 1})
    data = b"abcde" + b"n" * 14 + b"f"
    said = falsifier.feed(data[: 5 + cut]) + falsifier.feed(data[5 + cut :]) + falsifier.feed(b"", final=True)
    assert said == b"abbde" + b"x" * 14 + b"f"
