# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers by tar_nc in which an end breaks some rules: nothing around the root changes, nor older copies."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support import lying_stream, lying_tar
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import needs_root
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.test_lying_stream import Ground, tell
from hypothesis import Phase, given
from hypothesis import settings as tried
from hypothesis import strategies as st

NAMES = {
    "source": sorted({*lying_stream.LIES["source"], *lying_tar.ARCHIVES, *lying_tar.BYTES, *lying_tar.OF_FRAMES}),
    "dest": sorted(lying_stream.LIES["dest"]),
}
OF_TAR = sorted({*lying_tar.ARCHIVES, *lying_tar.BYTES})


class TarGround(Ground):
    """The same for tar_nc."""

    method, liar = "tar_nc", lying_tar.__file__


def lies_of(side: str) -> st.SearchStrategy[list[tuple[str, int, int, int]]]:
    """Return lists of lies of an end."""
    small = st.integers(0, 40)
    one = st.tuples(st.sampled_from(NAMES[side]), st.integers(0, 2), small, small)
    return st.lists(one, min_size=1, max_size=4)


@needs_root
@pytest.mark.newest
@pytest.mark.parametrize("side", ["source", "dest"])
@given(data=st.data(), serving=st.sampled_from(["dest", "source"]), is_filled=st.booleans())
@tried(max_examples=8, phases=[Phase.generate, Phase.shrink], derandomize=True)
def test_lies_harm_nothing(side, data, serving, is_filled):
    tell(side, data.draw(lies_of(side)), serving, is_filled, TarGround)


@needs_root
@pytest.mark.newest
@pytest.mark.long
@pytest.mark.parametrize("side", ["source", "dest"])
@given(data=st.data(), serving=st.sampled_from(["dest", "source"]), is_filled=st.booleans())
@tried(max_examples=60, phases=[Phase.generate, Phase.shrink])
def test_many_lies_harm_nothing(side, data, serving, is_filled):
    tell(side, data.draw(lies_of(side)), serving, is_filled, TarGround)


@needs_root
@pytest.mark.newest
def test_a_lie_reaches_the_peer(tmp_path):
    ground = TarGround(tmp_path)
    outcome = ground.transfer("source", [("archive: other_contents", turn, 1, 0) for turn in range(8)], link_dest=[])
    assert [error["path"] for error in outcome["errors"]] == ["changed"], outcome


def odd_ones(root: Path) -> list[str]:
    """Return what is a device, set-id, or in a transfer's own folder that others may enter."""
    found = []
    for top, _folders, files in os.walk(root):
        if top != str(root) and ".longhaul-" in top and os.path.basename(top).startswith(".longhaul-"):
            found += [top] if os.stat(top).st_mode & 0o077 else []
        for name in files:
            status = os.lstat(os.path.join(top, name))
            plain = stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)
            is_staged = ".longhaul-" in top
            found += [name] if not is_staged and (not plain or status.st_mode & 0o6000) else []
    return found


@needs_root
@pytest.mark.newest
@pytest.mark.parametrize("lie", OF_TAR)
@pytest.mark.parametrize("choice", [0, 1, *rarely(2)])
def test_an_archive_brings_nothing_but_the_contents_that_were_asked_for(tmp_path, lie, choice):
    """No set-id file, as the source's entries have none, no device, no name but those of the plan."""
    ground = TarGround(tmp_path)
    preserve = (["times"], ["times", "permissions", "hardlinks"])[choice % 2]
    kept: dict[str, Any] = {"preserve": preserve, "link_dest": []}
    ground.transfer("source", [(lie, 0, choice, choice)], **kept)
    ground.expect_nothing_harmed()
    assert odd_ones(ground.root) == []
    names = {
        path.relative_to(ground.root).as_posix() for path in ground.root.rglob("*") if ".longhaul-" not in str(path)
    }
    assert names <= {path.relative_to(ground.source).as_posix() for path in ground.source.rglob("*")}
    assert not Path("/lhtest-escaped").exists()
