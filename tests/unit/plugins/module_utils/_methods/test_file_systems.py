# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers to file systems that are not like the one below /tmp. Mounting needs root, and loop devices."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.support.disk_image import CannotMount, disk_image
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.method_pairs import make_pair
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.small_tree import make_tree
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import needs_root

SECOND = 10**9
TIME = 1_700_000_001 * SECOND + 123_456_789


@pytest.fixture(name="seconds", scope="module")
def _seconds(tmp_path_factory):
    """Return a folder of a file system that keeps times in whole seconds."""
    try:
        with disk_image(tmp_path_factory.mktemp("disk"), "ext4-128", 64 << 20) as mounted:
            yield mounted
    except CannotMount as error:
        pytest.skip(f"cannot run here: {error}")


def fill(source: Path) -> None:
    """Make a tree whose times all have a fraction."""
    make_tree(source)
    for path in (source, *source.rglob("*")):
        os.utime(path, ns=(TIME, TIME), follow_symlinks=False)


def run(trees, method, **changes):
    """Run a transfer that must go well, and return its outcome."""
    outcome = make_pair(trees, method, **changes).run()
    assert outcome.get("errors") == [] and not outcome["failure"], outcome
    return outcome


@needs_root
@pytest.mark.parametrize("serving", ["dest", *rarely("source")])
@pytest.mark.parametrize("method", ["stream", "tar_nc", "rsync", *rarely("rsyncd", "scp", "sftp")])
def test_a_rerun_to_a_destination_with_coarse_times_has_nothing_to_do(tmp_path, seconds, method, serving):
    source, dest = tmp_path / "source", seconds / f"{method}-{serving}"
    source.mkdir(), dest.mkdir()
    fill(source)
    trees = (source, dest, tmp_path / "work")
    first = run(trees, method, serving=serving)
    assert first["time_units"] == {"": SECOND}
    assert run(trees, method, serving=serving, check=True)["changes"] == []
    again = run(trees, method, serving=serving)
    assert not again["changed"] and again["bytes_sent"] == 0 and again["changes"] == [], again
    file = next(path for path in sorted(source.rglob("*")) if path.is_file() and not path.is_symlink())
    os.utime(file, ns=(TIME, TIME + SECOND))
    changed = run(trees, method, serving=serving)
    assert changed["files_updated"] + changed["attributes_changed"] == 1, changed


@needs_root
@pytest.mark.parametrize("method", ["stream", *rarely("rsync", "tar_nc")])
def test_a_backup_with_coarse_times_misses_no_change_and_links_the_rest(tmp_path, seconds, method):
    source, folder = tmp_path / "source", seconds / f"backup-{method}"
    for path in (source, folder, folder / "old", folder / "new"):
        path.mkdir()
    for name in ("same", "changed"):
        (source / name).write_text("before")
        os.utime(source / name, ns=(TIME, TIME))
    work = tmp_path / "work"
    run((source, folder / "old", work), method)
    (source / "changed").write_text("after!")
    os.utime(source / "changed", ns=(TIME, TIME + 1))
    links = {"link_dest": [str(folder / "old")]}
    run((source, folder / "new", work), method, **links)
    assert (folder / "new/changed").read_text() == "after!" and (folder / "old/changed").read_text() == "before"
    assert (folder / "new/same").samefile(folder / "old/same")
    again = run((source, folder / "new", work), method, **links)
    assert not again["changed"] and again["bytes_sent"] == 0, again
