# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The snapshots of two days are there, each as the source was, and the one before was pruned."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import testinfra

testinfra_hosts = ["ansible://backup-vault"]

REPORTS = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "backup"
# What is excluded, what the hook recreates each time, and so the times of folders.
LEFT_OUT = "! -name '*.tmp' ! -name dumped"
LISTING = (
    f"cd {{tree}} && find . -mindepth 1 {LEFT_OUT} -printf '%p %y %m %U:%G %l' -type f -printf ' %s %T@' -printf '\\n' "
    "| LC_ALL=C sort"
)
ATTRIBUTES = "cd {tree} && getfattr -hd big; getfacl -n big"
CONTENTS = f"cd {{tree}} && find . -type f {LEFT_OUT} -print0 | LC_ALL=C sort -z | xargs -0 sha256sum"


def snapshots(host, client, job):
    listed = host.check_output(f"ls /srv/backup/{client}/{job}").split()
    return [f"/srv/backup/{client}/{job}/{name}/data" for name in sorted(listed) if name.startswith("20")]


@pytest.mark.parametrize("command", [LISTING, ATTRIBUTES, CONTENTS], ids=["entries", "attributes", "contents"])
@pytest.mark.parametrize("client", ["backup-web1", "backup-web2"])
def test_each_snapshot_is_as_the_source_was(host, client, command):
    there = testinfra.get_host(f"docker://{client}")
    older, newer = snapshots(host, client, "data")
    for source, snapshot in (("/srv/yesterday", older), ("/srv/data", newer)):
        expected = there.check_output(command.format(tree=source))
        assert expected.count("\n") > 10 or "user.colour" in expected
        assert host.check_output(command.format(tree=snapshot)) == expected


@pytest.mark.parametrize("command", [LISTING, ATTRIBUTES, CONTENTS], ids=["entries", "attributes", "contents"])
def test_what_is_restored_on_the_other_client_is_as_on_the_first(command):
    first, other = (testinfra.get_host(f"docker://{name}") for name in ("backup-web1", "backup-web2"))
    expected = first.check_output(command.format(tree="/srv/data"))
    assert expected.count("\n") > 10 or "user.colour" in expected
    assert other.check_output(command.format(tree="/srv/restored")) == expected


def test_what_did_not_change_is_shared_and_what_did_is_not(host):
    older, newer = snapshots(host, "backup-web1", "data")
    inodes = [host.check_output(f"stat -c %i {tree}/big '{tree}/a/1/file 2'").split() for tree in (older, newer)]
    assert inodes[0][0] == inodes[1][0] and inodes[0][1] != inodes[1][1]


def test_several_paths_have_a_folder_each(host):
    _older, newer = snapshots(host, "backup-web2", "system")
    assert host.check_output(f"ls {newer}").split() == ["data", "etc"]
    assert host.file(f"{newer}/etc/hostname").content_string.strip() == "backup-web2"


def test_what_is_excluded_is_not_there_and_hooks_have_run(host):
    _older, newer = snapshots(host, "backup-web1", "data")
    assert host.file(f"{newer}/dumped").exists and not host.file(f"{newer}/not.tmp").exists
    ran = testinfra.get_host("docker://backup-web1").file("/srv/hooks").content_string.splitlines()
    assert ran == ["before all", "before this", "after this", "after all"] * 3


def test_latest_leads_to_the_newest_and_nothing_unfinished_is_left(host):
    for client, job in (("backup-web1", "data"), ("backup-web2", "data"), ("backup-web2", "system")):
        folder = f"/srv/backup/{client}/{job}"
        assert host.check_output(f"readlink {folder}/latest") == snapshots(host, client, job)[-1].split("/")[-2]
        names = [name for name in host.check_output(f"ls -A {folder}").split() if not name.startswith("20")]
        assert sorted(names) == [".checks.json", ".lock", "history.jsonl", "latest"]


def test_the_report_says_that_all_is_well():
    found = {one["id"]: one for one in json.loads((REPORTS / "report.json").read_text())["jobs"]}
    assert set(found) == {"backup-web1/data", "backup-web2/data", "backup-web2/system"}
    for one in found.values():
        assert (one["state"], one["why"], one["snapshots"], len(one["removed"])) == ("ok", [], 2, 1)
        assert one["check"]["sound"] and one["transfers"][0]["encrypted"]
    assert 'longhaul_backup_healthy{host="backup-web2",job="system"' in (REPORTS / "metrics.prom").read_text()


def test_nothing_is_left_behind(host):
    for end in (host, *(testinfra.get_host(f"docker://{name}") for name in ("backup-web1", "backup-web2"))):
        assert end.check_output("find / -xdev -name '.longhaul*' -not -path '/proc/*' 2>/dev/null || true") == ""
        assert end.check_output("ls /var/lib/longhaul 2>/dev/null || true") in ("", "leases")
    leases = host.check_output("cat /var/lib/longhaul/leases/*.json").replace("}{", "}\n{").splitlines()
    assert len(leases) == 3 and all(json.loads(one)["released"] for one in leases)
