# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Restore drills between two hosts: one that succeeds, damage that one finds, validations, and a disk without room."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support.backups import REPOSITORY, Backups
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

DRILLS = "/data/drills"
IN_TREE = {"command": ["sh", "-c", 'test "$(pwd)" = {folder} && ls -d folder* && test ! -e file']}


@pytest.fixture(name="backups")
def _backups(hosts: Testbed, playbooks: Playbooks) -> Backups:
    """A job of a small tree of alpha, and a folder for drills there."""
    tree = hosts.root("alpha") / "data/src"
    for number in range(12):
        folder = tree / f"folder{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file{number}").write_text(f"content {number}" * 1000)
    os.chown(tree / "folder0/file0", 4321, 8765)
    (hosts.root("alpha") / DRILLS.lstrip("/")).mkdir()
    return Backups(hosts, playbooks)


def drill(**options: Any) -> dict[str, Any]:
    return {"share": "1/1", "into": {"host": "client", "path": DRILLS}, **options}


def flip(path: Path) -> None:
    """Change a byte as a disk does: size and times stay."""
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_restore_is_practised(hosts: Testbed, backups: Backups) -> None:
    scratch = hosts.root("alpha") / DRILLS.lstrip("/")
    (scratch / "longhaul-drill-of-a-person").mkdir()
    textfile = backups.folder.parent / "backup.prom"
    made = backups.run(backup_drill=drill(share="1/2", validate=IN_TREE), backup_textfile=str(textfile))
    found = backups.record()["drill"]
    assert (found["files"], found["files_total"], found["failure"]) == (6, 12, ""), found
    assert found["restored"] and found["validated"] and not found["kept"] and found["succeeded"] == found["at"]
    assert "drill: restored 6 files" in made.output and "restoring the whole job (12 files" in made.output
    assert os.listdir(scratch) == ["longhaul-drill-of-a-person"]
    labels = f'host="alpha",job="data",repository="beta:{REPOSITORY}"'
    assert f"longhaul_backup_drill_success{{{labels}}} 1" in textfile.read_text()
    assert "Restores practised" in (backups.folder / "report.html").read_text()

    # Not due: no drill. Alone: no backup.
    backups.run(backup_drill=drill(share="1/2"))
    assert backups.record()["drill"] == found and len(backups.snapshots()) == 2
    last = backups.record()
    backups.run(backup_drill=drill(), backup_drill_only=True)
    alone = backups.record()
    assert alone["drill"]["files"] == 12 and alone["drill"]["at"] > found["at"] and len(backups.snapshots()) == 2
    assert {**alone, "drill": None, "run_id": ""} == {**last, "drill": None, "run_id": ""}

    # A flipped bit is found, and what was restored is kept for a look.
    damaged = backups.snapshots()[-1] / "folder0/file0"
    flip(damaged)
    said = backups.run_into_failure(backup_drill=drill(), backup_drill_only=True)
    assert "is not what the manifest says (1 problem): folder0/file0: its contents are" in said
    kept = Path(backups.record()["drill"]["path"])
    assert f"kept in {kept}/data on alpha" in said and (scratch / kept.name / "data/folder0/file0").exists()
    flip(damaged)

    # The validation fails: loud, the snapshot stays; the drill before leaves nothing.
    failing = drill(validate={"name": "Count the rows", "command": ["sh", "-c", "echo 3 rows are missing >&2; exit 1"]})
    said = backups.run_into_failure(backup_drill=failing, backup_drill_only=True)
    assert "Count the rows" in said and "3 rows are missing" in said and len(backups.snapshots()) == 2
    looked_at = Path(backups.record()["drill"]["path"]).name
    assert sorted(os.listdir(scratch)) == sorted(["longhaul-drill-of-a-person", looked_at])
    assert backups.health()["alpha/data"]["state"] == "failed" and backups.record()["drill"]["succeeded"]

    # No room; a folder in the repository; and then all is well again.
    hosts.exec("alpha", ["mkdir", "/data/small"])
    hosts.exec("alpha", ["mount", "-t", "tmpfs", "-o", "size=8k", "longhaul-test", "/data/small"])
    try:
        small = drill(into={"host": "client", "path": "/data/small"})
        said = backups.run_into_failure(backup_drill=small, backup_drill_only=True)
        assert "Make room there" in said and os.listdir(scratch.parent / "small") == []
    finally:
        hosts.exec("alpha", ["umount", "/data/small"])
    inside = drill(into={"host": "repository", "path": f"{REPOSITORY}/drills"})
    assert f"which is in {REPOSITORY}" in backups.run_into_failure(backup_drill=inside)
    backups.run(backup_drill=drill())
    assert backups.record()["drill"]["failure"] == "" and len(backups.snapshots()) == 3
    assert os.listdir(scratch) == ["longhaul-drill-of-a-person"]


@pytest.mark.long
def test_files_of_tasks_validate_what_was_restored(hosts: Testbed, backups: Backups) -> None:
    scratch = hosts.root("beta") / "data/drills"
    scratch.mkdir()
    look = """
    - name: Look at the file
      ansible.builtin.command: test -s {{ backup_drill_folder }}/folder0/file0
      changed_when: false
    - name: Fail as told
      ansible.builtin.fail:
        msg: the rows are missing
      when: rows_are_missing | default(false) | bool
    """
    (backups.folder.parent / "look.yml").write_text(look)
    into = {"host": "repository", "path": DRILLS}
    options = {"backup_drill": drill(into=into, snapshot="random", validate={"tasks": "look.yml"})}
    backups.run(**options)
    assert backups.record()["drill"]["validated"] and os.listdir(scratch) == []
    said = backups.run_into_failure(rows_are_missing=True, backup_drill_only=True, **options)
    assert "the rows are missing" in said and len(os.listdir(scratch)) == 1
    backups.run(**options)
    assert backups.record()["drill"]["validated"] and os.listdir(scratch) == [] and len(backups.snapshots()) == 2
