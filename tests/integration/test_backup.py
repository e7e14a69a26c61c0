# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole backups between two hosts: days, interruptions, full disks, clients that fail, mistakes, and what is reported."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.support import compare, refusal
from ansible_collections.longhaul.fleet.tests.support.backups import REPOSITORY, Backups
from ansible_collections.longhaul.fleet.tests.support.faults import MIB, wait_for
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.testbed import Testbed


def fill(bed: Testbed, name: str = "src") -> Path:
    """Make a small tree on alpha and give its path."""
    tree = bed.root("alpha") / "data" / name
    for number in range(30):
        (tree / f"folder{number % 3}").mkdir(parents=True, exist_ok=True)
        (tree / f"folder{number % 3}" / f"file{number}").write_text(f"content {number}")
    os.link(tree / "folder0/file0", tree / "folder1/other name")
    (tree / "folder2/link").symlink_to("file2")
    os.chown(tree / "folder0/file3", 4321, 8765)
    return tree


def edit(tree: Path, day: int) -> None:
    """Do to a tree what a day does."""
    (tree / f"folder0/new of day {day}").write_text(f"day {day}")
    (tree / "folder1/file1").write_text(f"content of day {day}")
    (tree / f"folder2/file{2 + 3 * day}").unlink()


@pytest.fixture
def backups(hosts: Testbed, playbooks: Playbooks) -> Iterator[Backups]:
    """A job that backs up a small tree of alpha into a repository on beta; the host gamma is alpha, too."""
    fill(hosts)
    return Backups(hosts, playbooks, clients=("alpha", "gamma"))


@pytest.mark.smoke
def test_days(hosts: Testbed, backups: Backups) -> None:
    source = hosts.root("alpha") / "data/src"
    before = refusal.everything(hosts)
    checked = backups.run("--check")
    assert refusal.everything(hosts) == before and not backups.folder.exists()
    assert "would send" in checked.output

    textfile = backups.folder.parent / "metrics/backup.prom"
    days = []
    for day in range(3):
        backups.run(backup_textfile=str(textfile))
        days.append(source.with_name(f"day{day}"))
        hosts.exec("alpha", ["cp", "-a", "/data/src", f"/data/day{day}"])
        edit(source, day)
    kept = backups.snapshots()
    assert len(kept) == 3 and os.readlink(kept[-1].parents[1] / "latest") == kept[-1].parent.name
    for day, snapshot in zip(days, kept):
        assert compare.differences(day, snapshot) == []
    assert os.path.samefile(kept[0] / "folder0/file0", kept[2] / "folder1/other name")
    assert not os.path.samefile(kept[0] / "folder1/file1", kept[1] / "folder1/file1")
    assert (kept[0] / "folder0/file3").stat().st_uid == 4321

    record = backups.record()
    assert (record["figures"]["new_files"], record["figures"]["gone"]) == (2, 1)
    assert record["transfers"][0]["verified"] == "size" and record["failures"] == [] and not record["resumed"]
    (entry,) = backups.health().values()
    assert (entry["state"], entry["snapshots"], entry["why"]) == ("ok", 3, [])
    labels = f'host="alpha",job="data",repository="beta:{REPOSITORY}"'
    lines = textfile.read_text().splitlines()
    assert f"longhaul_backup_healthy{{{labels}}} 1" in lines
    assert f"longhaul_backup_snapshots{{{labels}}} 3" in lines
    assert f'longhaul_backup_state{{{labels},state="failed"}} 0' in lines
    assert textfile.stat().st_mode & 0o777 == 0o644 and os.listdir(textfile.parent) == [textfile.name]
    assert "alpha/data" in (backups.folder / "report.md").read_text()
