# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of snapshots on a third host: hard links, repair in both directions, a host that is down, wrong places."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support import compare, refusal
from ansible_collections.longhaul.fleet.tests.support.backups import REPOSITORY, Backups
from ansible_collections.longhaul.fleet.tests.support.collections_folder import collections_folder
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.prepared_ansible import Prepared
from ansible_collections.longhaul.fleet.tests.testbed import Testbed, why_not

COPY = "/data/copy"
FILES = 40


@pytest.fixture
def backups(tmp_path: Path, prepared: Prepared) -> Iterator[Backups]:
    """A job that backs up a tree of alpha into a repository on beta, with a copy on gamma."""
    reason = why_not()
    if reason:
        pytest.skip(f"cannot run here: {reason}")
    with Testbed(("alpha", "beta", "gamma"), data_size="512m") as bed:
        source = bed.root("alpha") / "data/src"
        for number in range(FILES):
            place = source / f"folder{number % 3}/file{number}"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(b"%d" % number * 4096)
        os.link(source / "folder0/file0", source / "folder1/other name")
        os.chown(source / "folder0/file3", 4321, 8765)
        playbooks = Playbooks(bed.inventory(tmp_path / "inventory.yml"), tmp_path, collections_folder(), prepared)
        made = Backups(bed, playbooks)
        (bed.root("gamma") / COPY.lstrip("/")).mkdir(mode=0o700)
        made.jobs = [made.job("data", copies=[{"host": "gamma", "path": COPY}], check_subset="1/1")]
        yield made
        playbooks.end()


def trees(backups: Backups, host: str) -> list[Path]:
    """Return the trees of the complete snapshots on a repository host, the oldest first."""
    place = REPOSITORY if host == "beta" else COPY
    folder = backups.bed.root(host) / place.lstrip("/") / "alpha/data"
    return [folder / name / "data" for name in sorted(os.listdir(folder)) if name.startswith("2")]


def rot(path: Path) -> None:
    """Change a byte as a disk does: size and times stay."""
    status = path.stat()
    with path.open("r+b") as file:
        file.write(b"X")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def used(folder: Path) -> int:
    """Return the blocks of all files of a folder, each once."""
    found = {(one.stat().st_ino, one.stat().st_blocks) for one in folder.rglob("*") if one.is_file()}
    return sum(blocks for _inode, blocks in found)


def copy_of(backups: Backups) -> dict[str, Any]:
    (copy,) = backups.record()["copies"]
    return copy


def test_a_copy_is_made_and_each_repository_repairs_the_other(backups: Backups) -> None:
    source = backups.bed.root("alpha") / "data/src"
    backups.run()
    (source / "folder1/file1").write_text("changed")
    textfile = backups.folder.parent / "backup.prom"
    backups.run(backup_textfile=str(textfile))
    first, copies = trees(backups, "beta"), trees(backups, "gamma")
    assert [one.parent.name for one in copies] == [one.parent.name for one in first] and len(first) == 2
    for one, other in zip(first, copies):
        assert compare.differences(one, other) == []
    assert os.path.samefile(copies[0] / "folder0/file0", copies[1] / "folder1/other name")
    assert abs(used(copies[0].parents[1]) - used(first[0].parents[1])) <= 64
    copy = copy_of(backups)
    assert (copy["snapshots"], copy["lag_seconds"], copy["error"]) == (2, 0, "")
    assert copy["copied"] == [first[1].parent.name] and copy["bytes_sent"] < FILES * 4096 and copy["verified"]
    assert 'longhaul_backup_copy_healthy{host="alpha",job="data"' in textfile.read_text()

    # In the first repository, for all names and snapshots of the file; then in the copy.
    for host, other in (("beta", "gamma"), ("gamma", "beta")):
        rot(trees(backups, host)[0] / "folder0/file0")
        before = trees(backups, other)[0].joinpath("folder0/file0").stat()
        backups.run()
        for one in trees(backups, host):
            assert compare.differences(trees(backups, other)[0] / "folder0", one / "folder0") == []
            assert os.path.samefile(one / "folder0/file0", trees(backups, host)[0] / "folder1/other name")
        assert trees(backups, other)[0].joinpath("folder0/file0").stat().st_ino == before.st_ino
        history = (trees(backups, host)[0].parents[1] / "history.jsonl").read_text()
        assert '"repaired"' in history and ".repair" not in os.listdir(trees(backups, host)[0].parents[1])
        assert json.loads((trees(backups, host)[0].parent / "checked.json").read_text()).get("findings", []) == []
    assert copy_of(backups)["repaired"] == 2 and any(
        "repaired 2 damaged files" in note for note in backups.record()["notes"]
    )
    assert len(trees(backups, "gamma")) == 4 and backups.health()["alpha/data"]["state"] == "ok"

    backups.playbooks.inventory.write_text(_with(backups, "gamma", ansible_port=1))
    reason = backups.run_into_failure()
    assert "alpha/data has a copy that needs attention" in reason and "gamma" in reason
    record, copy = backups.record(), copy_of(backups)
    assert record["failures"] == [] and record["snapshot"] and copy["error"] and copy["snapshots"] == 4
    assert backups.health()["alpha/data"]["state"] == "uncopied"
    backups.playbooks.inventory.write_text(_with(backups, "gamma", ansible_port=22))
    backups.run()
    assert [one.parent.name for one in trees(backups, "gamma")] == [one.parent.name for one in trees(backups, "beta")]
    assert copy_of(backups)["error"] == "" and len(copy_of(backups)["copied"]) == 2


def _with(backups: Backups, host: str, **variables: Any) -> str:
    """Return the inventory with other variables of a host."""
    content = json.loads(backups.playbooks.inventory.read_text())
    content["all"]["hosts"][host].update(variables)
    return json.dumps(content, indent=2)


@pytest.mark.long
def test_a_copy_in_a_wrong_place_is_refused_and_one_of_damage_is_not_made(backups: Backups) -> None:
    bed, inventory = backups.bed, backups.playbooks.inventory
    refusal.add_hosts(inventory, {"twin": ("beta", {}), "other": ("beta", {}), "self": ("alpha", {})})
    (bed.root("alpha") / "data/copy").mkdir(mode=0o700)
    wrong = [("beta", REPOSITORY), ("alpha", COPY)]
    backups.jobs = [backups.job("data", copies=[{"host": host, "path": path} for host, path in wrong])]
    reason = backups.run_into_failure()
    assert "beta:/data/backup is the repository itself" in reason and "alpha is a client of the job" in reason
    assert not backups.folder.exists()
    hidden = [("twin", REPOSITORY), ("other", f"{REPOSITORY}/alpha"), ("self", COPY)]
    backups.jobs = [backups.job("data", copies=[{"host": host, "path": path} for host, path in hidden])]
    backups.run_into_failure()
    errors = [copy["error"] for copy in backups.record()["copies"]]
    assert ["under another name" in error for error in errors] == [True] * 3, errors
    assert backups.record()["failures"] == [] and len(trees(backups, "beta")) == 1

    rot(trees(backups, "beta")[0] / "folder0/file0")
    backups.jobs = [backups.job("data", copies=[{"host": "gamma", "path": COPY, "keep": {"last": 1}}])]
    checked = backups.start("--check").wait()
    assert "would copy" in checked.output and not (bed.root("gamma") / "data/copy/alpha").exists()
    reason = backups.run_into_failure()
    assert "folder0/file0" in reason and "is not copied" in reason
    assert trees(backups, "gamma") == []
