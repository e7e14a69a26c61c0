# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module and the playbook that search snapshots, on a real repository host."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support import refusal
from ansible_collections.longhaul.fleet.tests.support.backups import REPOSITORY, Backups
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run
from ansible_collections.longhaul.fleet.tests.testbed import Testbed


@pytest.mark.smoke
def test_what_was_lost_is_found(hosts: Testbed, playbooks: Playbooks) -> None:
    tree = hosts.root("alpha") / "data/src"
    (tree / "etc").mkdir(parents=True)
    (tree / "etc/app.conf").write_text("one")
    (tree / "etc/{{ 7 * 7 }}.conf").write_text("odd")
    (tree / "lost.txt").write_text("x" * 5000)
    backups = Backups(hosts, playbooks)
    backups.run()
    (tree / "etc/app.conf").write_text("two")
    (tree / "lost.txt").unlink()
    backups.run()
    first, second = (path.parent.name for path in backups.snapshots())
    before = refusal.everything(hosts)

    def find(expect: int = 0, **variables: Any) -> Run:
        run = playbooks.run("longhaul.fleet.find", backup_jobs=backups.jobs, **variables)
        assert run.rc == expect, run.output
        assert "changed=1" not in run.output
        return run

    found = find(find_glob="*.conf").output
    assert "alpha/data: etc/app.conf (file, 3 bytes, " in found and "versions: 2" in found
    assert "alpha/data: etc/{{ 7 * 7 }}.conf (file, 3 bytes, " in found and "2 paths in 2 snapshots" in found
    assert "app.conf" not in find(find_path="etc", find_regex="7", find_host="alpha").output
    assert f"{first} to {first}" in find(find_size_min="5000", find_job="data", find_host="alpha").output

    where = {"find_host": "alpha", "find_job": "data"}
    history = find(**where, find_history="lost.txt").output
    assert f"Gone since {second}; the last snapshot that has it is {first}" in history
    assert "The newest snapshot has it" in find(**where, find_history="etc/app.conf").output
    assert "has 'etc/App.conf'" in find(2, **where, find_history="etc/App.conf").output
    assert "nothing says what to find" in find(2).output
    assert "Give find_host and find_job" in find(2, find_history="lost.txt").output
    changes = find(**where, find_diff="latest").output
    assert f"{second} compared with {first}:" in changes and "- lost.txt (file, 5000 bytes)" in changes
    assert "1 removed, 5000 bytes" in changes and "~ etc/app.conf (file, 3 -> 3 bytes)" in changes
    assert "there is no snapshot 2000" in find(2, **where, find_diff="2000-01-01T000000Z").output
    assert refusal.everything(hosts) == before

    lost = {"restore_from": "alpha", "restore_job": "data", "restore_path": "lost.txt", "backup_jobs": backups.jobs}
    refused = playbooks.run("longhaul.fleet.restore", **lost)
    assert f"The newest snapshot that has it is {first}: set restore_when={first}" in refused.failures[-1]
    playbooks.run("longhaul.fleet.restore", **lost, restore_when=first).expect_success()
    assert (tree / "lost.txt").read_text() == "x" * 5000, "it goes to its own place, which was free"

    task = {"action": "diff", "repository": REPOSITORY, "host": "alpha", "job": "data"}
    run = playbooks.run([{"name": "Compare", "longhaul.fleet.snapshot": task}], hosts="beta").expect_success()
    result = run.result("Compare")
    assert (result["old"], result["new"], result["changed"]) == (first, second, False)
    assert [one["path"] for one in result["differences"]["removed"]] == ["lost.txt"]
    assert [one["path"] for one in result["differences"]["changed"]] == ["etc/app.conf"]
    refused = playbooks.run([{"longhaul.fleet.snapshot": {**task, "action": "list", "job": ""}}], hosts="beta")
    assert refused.rc != 0

    # A name with spaces is quoted; one that a shell or Ansible would read in its own way is in no command.
    (tree / "a name.txt").write_text("here")
    backups.run()
    as_yaml = "restore_job: data, restore_path: a name.txt, restore_when: " + backups.snapshots()[-1].parent.name
    found = find(find_glob="a name.*").output
    assert (
        f"longhaul.fleet.restore -e '{{restore_from: alpha, {as_yaml}}}'" in found and "1 path in 3 snapshots" in found
    )
    plain = find(find_glob="app.conf").output
    assert "-e restore_from=alpha -e restore_job=data -e restore_path=etc/app.conf -e restore_when=2" in plain
    odd = find(find_glob="*7*.conf").output
    assert "name a folder above" in odd and "longhaul.fleet.restore" not in odd
