# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers by stream in which an end breaks some rules: nothing around the root changes, nor older copies.

Hypothesis picks the lies, and shrinks what fails to the few that matter.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support import lying_stream
from ansible_collections.longhaul.fleet.tests.support.canary import Canary
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair, settings
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import (
    needs_root,
    run_through,
)
from hypothesis import Phase, event, given
from hypothesis import settings as tried
from hypothesis import strategies as st

SECONDS = 40  # in which an end has noticed, or nothing was wrong
LARGE = 300_000
OLD = 10**18  # ns


def lies_of(side: str) -> st.SearchStrategy[list[tuple[str, int, int, int]]]:
    """Return lists of lies of an end: which one, in which message of its kind, and two numbers that it may use."""
    small = st.integers(0, 40)
    return st.lists(
        st.tuples(st.sampled_from(sorted(lying_stream.LIES[side])), st.integers(0, 2), small, small),
        min_size=1,
        max_size=4,
    )


class Ground:
    """A source, and on the other host a root with an older copy of it beside, and what must not be touched."""

    method, liar = "stream", lying_stream.__file__

    def __init__(self, folder: Path) -> None:
        self.source, self.work, ground = folder / "source", folder / "work", folder / "ground"
        self.root, self.older, outside = ground / "root", ground / "older", ground / "outside"
        for path in (self.source / "folder", self.root, outside / "tmp", outside / "partial"):
            path.mkdir(parents=True)
        for number, name in enumerate(("same", "changed", "folder/deep", "dressed", "large")):
            self.write(name, LARGE if name == "large" else 100 + number, name[:1])
        os.link(self.source / "same", self.source / "zlinked")
        (self.source / "link").symlink_to("folder")
        subprocess.run(["cp", "-a", self.source, self.older], check=True)
        (outside / "secret").write_text("root:secret")
        (outside / "secret").chmod(0o600)
        for name in ("x", "same"):
            (outside / "tmp" / name).write_text("another's")
        self.write("changed", 200, "C")
        with (self.source / "large").open("r+b") as large:  # of which the older copy has blocks
            large.write(b"L" * 5)
        self.write("new", 10, "n")
        (self.source / "dressed").chmod(0o711)
        (self.source / "excluded.key").write_text("key")
        self.canary = Canary(ground, self.root, self.older)
        self.kept = Canary(self.source, self.source / "none", self.source / "none")

    def write(self, name: str, size: int, letter: str) -> None:
        (self.source / name).write_bytes(letter.encode() * size)
        os.utime(self.source / name, ns=(OLD, OLD))

    def transfer(self, side: str = "", lies: Any = (), serving: str = "dest", **changes: Any) -> dict[str, Any]:
        """Run a transfer as a backup has it, in which a side may lie; returns its outcome, empty if it never ended."""
        given = {"link_dest": [str(self.older)], "delete": True, "rules": ["- *.key"], "timeout": 20, **changes}
        pair = Pair(self.work, self.source, self.root, settings(self.method, encrypt=False, **given), serving)
        if lies:
            words = [self.liar, side, json.dumps(lies)]
            run_through(pair, side, first=" ".join(shlex.quote(word) for word in words))
        try:
            for end in (pair.serving, pair.driving):
                pair.start(end)
            until = time.monotonic() + SECONDS
            while not pair.is_over and pair.processes[pair.driving].poll() is None and time.monotonic() < until:
                time.sleep(0.005)
            if pair.is_over:
                return pair.finish()
            assert time.monotonic() >= until, pair.stderr(pair.driving)
            return {}
        finally:
            for end in list(pair.processes):
                pair.kill(end)

    def expect_nothing_harmed(self) -> None:
        """Neither what is around the root nor the source may have changed."""
        assert self.canary.changes() == []
        assert self.kept.changes() == []


def tell(side: str, lies: Any, serving: str, is_filled: bool, make: type[Ground] = Ground) -> None:
    """Run one example: an honest transfer if ``is_filled``, one with lies, and an honest one, which must work."""
    folder = Path(tempfile.mkdtemp())
    try:
        ground = make(folder)
        if is_filled:
            assert ground.transfer(serving=serving)["failure"] == ""
            (ground.source / "same").chmod(0o640)  # which the root shares with the older copy
            ground.kept = Canary(ground.source, folder / "none", folder / "none")
        outcome = ground.transfer(side, lies, serving)
        event("it stalled" if not outcome else "it was refused" if outcome.get("failed") else "it ended")
        ground.expect_nothing_harmed()
        last = ground.transfer(serving=serving)
        assert last.get("errors") == [] and last["failure"] == "", last
        ground.expect_nothing_harmed()
    finally:
        shutil.rmtree(folder)


@needs_root
@pytest.mark.newest
@pytest.mark.parametrize("side", ["source", "dest"])
@given(data=st.data(), serving=st.sampled_from(["dest", "source"]), is_filled=st.booleans())
@tried(max_examples=12, phases=[Phase.generate, Phase.shrink], derandomize=True)
def test_lies_harm_nothing(side, data, serving, is_filled):
    tell(side, data.draw(lies_of(side)), serving, is_filled)


@needs_root
@pytest.mark.newest
@pytest.mark.long
@pytest.mark.parametrize("side", ["source", "dest"])
@given(data=st.data(), serving=st.sampled_from(["dest", "source"]), is_filled=st.booleans())
@tried(max_examples=60, phases=[Phase.generate, Phase.shrink])
def test_many_lies_harm_nothing(side, data, serving, is_filled):
    tell(side, data.draw(lies_of(side)), serving, is_filled)


def test_the_canary_sees_what_was_harmed(tmp_path):
    ground = Ground(tmp_path)
    os.link(ground.older / "same", ground.root / "same")  # as link_dest does
    ground.expect_nothing_harmed()
    (ground.root / "same").chmod(0o4711)  # and with it the older copy's
    (changed,) = [line for line in ground.canary.changes() if "older/same" in line]
    assert "mode was" in changed
