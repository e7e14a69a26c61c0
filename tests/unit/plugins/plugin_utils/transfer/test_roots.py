# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a path means is what the host that it is on says: real folders, the real probe, and rsync beside it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job.probe import describe_with_child
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.roots import Roots, child_name, resolve_roots


@pytest.fixture(name="zone")
def _zone(tmp_path: Path) -> Path:
    """Return a folder with a source ``t``, a symlink into it, and a destination ``out`` beside something precious."""
    (tmp_path / "t" / "a").mkdir(parents=True)
    (tmp_path / "t" / "a" / "b").write_text("1")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(tmp_path / "t" / "a")
    (tmp_path / "zone" / "out").mkdir(parents=True)
    (tmp_path / "zone" / "victim").write_text("v")
    return tmp_path


def roots(src: str, dest: str) -> Roots:
    source = describe_with_child(src, None)
    target = describe_with_child(dest, child_name(src))
    return resolve_roots(src, dest, source, target, ("old", "new"))


@pytest.mark.parametrize(
    ("src", "source", "below"),
    [
        ("t/a/..", "t", ""),
        ("t/a/../", "t", ""),
        ("t/a/.", "t/a", ""),
        ("t/a/./", "t/a", ""),
        ("t/a/../a", "t/a", "a"),
        ("elsewhere/link/..", "t", ""),  # not elsewhere
        ("elsewhere/link/.", "t/a", ""),
        ("elsewhere/link", "t/a", "link"),
        ("t/./a//", "t/a", ""),
        ("t/..a", "t/..a", "..a"),
    ],
)
def test_what_ends_in_dots_is_the_contents_of_the_folder_that_the_host_finds(zone, src, source, below):
    (zone / "t" / "..a").mkdir()
    found = roots(f"{zone}/{src}", f"{zone}/zone/out")
    assert (found.source, found.dest) == (f"{zone}/{source}", os.path.join(f"{zone}/zone/out", below).rstrip("/"))
    assert found.only is None
    if "link" not in src:  # rsync copies the link itself, and 3.5 does not go back from it
        subprocess.run(["rsync", "-r", f"{zone}/{src}", f"{zone}/zone/out"], check=True)
        names = {os.path.join(below, name) for name in os.listdir(zone / source)}
        assert {str(path.relative_to(zone / "zone" / "out")) for path in (zone / "zone" / "out").rglob("*")} >= names
    assert (zone / "zone" / "victim").exists()


def test_the_root_of_all_has_no_name():
    assert [child_name(path) for path in ("/", "/.", "/..", "//..", "/../")] == [""] * 5


@pytest.mark.parametrize(
    ("src", "dest", "expected"),
    [("t/a/", "zone/out/..", "zone"), ("t/a", "elsewhere/link/..", "t/a"), ("t/a/b", "zone/out/..", "zone")],
)
def test_a_destination_that_ends_in_dots_is_what_its_host_finds(zone, src, dest, expected):
    assert roots(f"{zone}/{src}", f"{zone}/{dest}").dest == f"{zone}/{expected}"


@pytest.mark.parametrize("dest", ["zone/missing/..", "zone/missing/../out", "zone/victim/..", "zone/missing/../new"])
@pytest.mark.parametrize("src", ["t/a", "t/a/", "t/a/.."])
def test_back_from_a_folder_that_is_not_there_leads_nowhere(zone, src, dest):
    with pytest.raises(Refusal, match=r"there is no directory .*missing on new|victim on new is not a directory"):
        roots(f"{zone}/{src}", f"{zone}/{dest}")
