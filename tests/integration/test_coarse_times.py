# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Transfers, comparisons and backups to a file system that keeps times in whole seconds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.support.loop_disk import loop_disk
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.refusal import small_tree
from ansible_collections.longhaul.fleet.tests.support.snapshots import backup_tasks
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

SECOND = 10**9
TIME = 1_700_000_001 * SECOND + 123_456_789
PLACE = "/data/seconds"
NOTICE = f"the file system of {PLACE}"


@pytest.fixture(name="source")
def _source(hosts: Testbed) -> Iterator[Path]:
    """Mount such a file system on beta, make a tree whose times all have a fraction on alpha, and give that."""
    source = hosts.root("alpha") / "data/src"
    small_tree(hosts)
    for path in (source, *source.rglob("*")):
        os.utime(path, ns=(TIME, TIME), follow_symlinks=False)
    with loop_disk(hosts, "ext4-128", "/dev/shm", 64 << 20, ("beta", PLACE)):
        yield source


def test_a_transfer_is_verified_and_said_once_to_be_coarse(source: Path, playbooks: Playbooks) -> None:
    ends = {"src_host": "alpha", "src": "/data/src/", "dest_host": "beta", "dest": f"{PLACE}/copy"}
    asked = [
        ("first", "transfer", {}),
        ("predicted", "transfer", {}),
        ("again", "transfer", {"method": "rsync"}),
        ("compared", "verify", {"checksum": False}),
    ]
    tasks = [
        {"name": name, f"longhaul.fleet.{module}": {**ends, **options}, "check_mode": name == "predicted"}
        for name, module, options in asked
    ]
    run = playbooks.run(tasks, hosts="beta").expect_success()
    done = {name: run.result(name) for name, _module, _options in asked}
    assert all(sum(NOTICE in text for text in result["warnings"]) == 1 for result in done.values()), done
    assert done["first"]["changed"] and done["first"]["differences_total"] == 0
    assert not done["predicted"]["changed"] and not done["again"]["changed"] and done["again"]["bytes_sent"] == 0
    assert done["compared"]["identical"] is True
    file = next(path for path in sorted(source.rglob("*")) if path.is_file() and not path.is_symlink())
    os.utime(file, ns=(TIME, TIME + SECOND))
    (task,) = [one for one in tasks if one["name"] == "compared"]
    task["longhaul.fleet.verify"]["on_difference"] = "report"
    assert playbooks.run([task], hosts="beta").expect_success().result("compared")["differences_total"] == 1


def test_a_backup_is_made_twice_checked_and_pruned(source: Path, hosts: Testbed, playbooks: Playbooks) -> None:
    hosts.exec("beta", ["mkdir", "-m", "700", f"{PLACE}/backup"])
    where = {"repository": f"{PLACE}/backup", "host": "alpha", "job": "data"}
    playbooks.run(backup_tasks("one", repository=where["repository"]), hosts="beta").expect_success()
    check = {"name": "Check", "longhaul.fleet.snapshot": {"action": "check", **where}, "delegate_to": "beta"}
    prune = {
        "name": "Prune",
        "longhaul.fleet.snapshot": {"action": "prune", "keep": {"last": 1}, **where},
        "delegate_to": "beta",
    }
    tasks = [*backup_tasks("two", repository=where["repository"]), check, prune]
    run = playbooks.run(tasks, hosts="beta").expect_success()
    assert run.result("Transfer two")["bytes_sent"] == 0
