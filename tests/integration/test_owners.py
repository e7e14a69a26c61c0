# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two hosts that know other users: transfers that keep numbers, go by names, or follow a map."""

from __future__ import annotations

import os

import pytest
import yaml
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely

OLD = {"alice": 70001, "bob": 70002, "carol": 70003, "ledger": 70103}
NEW = {"bob": 70001, "alice": 70010, "ledger": 70101, "deploy": 70200}
MAP = {"users": {"alice": "alice", 70002: "bob", "carol": "deploy"}, "groups": {"alice": 70010, "bob": "bob"}}


@pytest.fixture(name="strangers")
def _strangers(hosts):
    """Create different users on both hosts, and a tree of theirs on alpha."""
    before = {}
    for host, names in (("alpha", OLD), ("beta", NEW)):
        for file, line in (("passwd", "{0}:x:{1}:{1}::/:/bin/sh\n"), ("group", "{0}:x:{1}:\n")):
            path = hosts.root(host) / "etc" / file
            before[path] = path.read_text()
            path.write_text(before[path] + "".join(line.format(*one) for one in names.items()))
    root = hosts.root("alpha") / "data/s"
    for name, owner in OLD.items():
        (root / name).mkdir(parents=True)
        (root / name / "file").write_text(name)
        for path in (root / name, root / name / "file"):
            os.chown(path, owner, owner)
    hosts.exec("alpha", ["setfacl", "-m", "u:alice:rwx,g:bob:r", "/data/s/bob/file"])
    hosts.exec("alpha", ["setfacl", "-d", "-m", "u:carol:rwx", "/data/s/bob"])
    yield hosts
    for path, text in before.items():
        path.write_text(text)


def run_tasks(playbooks, *tasks, options=(), fails=False):
    """Run tasks, each a module and its arguments, that say their numbers as YAML does, and return their results."""
    ends = {"src_host": "alpha", "src": "/data/s/", "dest": "/data/d"}
    made = [
        {"name": str(number), f"longhaul.fleet.{module}": {**ends, **given}, "ignore_errors": fails}
        for number, (module, given) in enumerate(tasks)
    ]
    run = playbooks.run(yaml.safe_dump([{"hosts": "beta", "gather_facts": False, "tasks": made}]), *options)
    assert [one.status for one in run.results] == ["ignored" if fails else "ok"] * len(tasks), run.output
    return [run.result(str(number)) for number in range(len(tasks))]


def found(hosts) -> dict[str, tuple[int, int]]:
    root = hosts.root("beta") / "data/d"
    return {name: (os.stat(root / name / "file").st_uid, os.stat(root / name).st_gid) for name in OLD}


def acl(hosts, path: str) -> set[str]:
    said = hosts.exec("beta", ["getfacl", "-pcn", f"/data/d/{path}"]).stdout
    return {line.split("\t")[0] for line in said.splitlines()}


@pytest.mark.parametrize("method", ["stream", "rsync", *rarely("tar_nc", "rsyncd", "sftp")])
def test_a_map_counts_for_every_method_and_for_the_comparison(strangers, playbooks, method):
    result, again = run_tasks(playbooks, *[("transfer", {"method": method, "owner_map": MAP})] * 2)
    assert (result["verified"], result["differences_total"]) == ("size", 0)
    assert found(strangers) == {
        "alice": (70010, 70010),
        "bob": (70001, 70001),
        "carol": (70200, 70003),
        "ledger": (70103, 70103),
    }
    assert {"user:70010:rwx", "group:70001:r--"} <= acl(strangers, "bob/file")
    assert "default:user:70200:rwx" in acl(strangers, "bob")
    assert not again["changed"] and again["differences_total"] == 0
    assert {one["name"] for one in again["owner_mismatches"]} == {"ledger", "carol"}
    assert "uid 70103 is ledger on alpha and nobody on beta, where ledger is 70101: 2 entries" in again["warnings"][-1]


@pytest.mark.parametrize("method", ["stream", *rarely("rsync", "rsyncd", "tar_nc")])
def test_names_decide_and_the_comparison_follows(strangers, playbooks, method):
    move = ("transfer", {"method": method, "numeric_ids": False})
    follows, reports = ("verify", {"numeric_ids": False}), ("verify", {"on_difference": "report"})
    result, again, compared, by_numbers = run_tasks(playbooks, move, move, follows, reports)
    assert (result["verified"], result["differences_total"]) == ("size", 0)
    assert found(strangers) == {
        "alice": (70010, 70010),
        "bob": (70001, 70001),
        "carol": (70003, 70003),
        "ledger": (70101, 70101),
    }
    assert {"user:70010:rwx", "group:70001:r--"} <= acl(strangers, "bob/file")
    assert "carol does not exist on beta: 3 entries keep the number 70003" in result["warnings"][-1]
    assert not again["changed"]
    assert compared["identical"] and not by_numbers["identical"]


@pytest.mark.parametrize("method", ["stream", *rarely("rsync")])
def test_numbers_warn_unless_told_not_to(strangers, playbooks, method):
    quiet = ("transfer", {"method": method, "owner_warnings": False})
    (predicted,) = run_tasks(playbooks, quiet, options=["--check"])
    assert "uid 70001" not in str(predicted.get("warnings"))  # though it is among the mismatches
    (result,) = run_tasks(playbooks, ("transfer", {"method": method}))
    assert result["owner_mismatches"] == predicted["owner_mismatches"] and len(result["owner_mismatches"]) == 8
    assert "uid 70001 is alice on alpha and bob on beta, where alice is 70010: 3 entries" in result["warnings"][-1]


def test_a_map_that_the_destination_cannot_follow_is_refused(strangers, playbooks):
    maps = ({"alice": "nobody-here"}, {"alice": 1, 70001: 2})
    tasks = [("transfer", {"owner_map": {"users": users}}) for users in maps]
    unknown, twice = run_tasks(playbooks, *tasks, fails=True)
    assert "beta has no such user" in unknown["msg"]
    assert "alice and 70001, which are the same user on alpha" in twice["msg"]
    assert not (strangers.root("beta") / "data/d").exists()


def migrate(playbooks, tmp_path, fails=False, phase="preflight", playbook="migrate", **options):
    """Run the playbook with one job that stands in YAML, where keys can be numbers."""
    ends = {"src_host": "alpha", "src": "/data/s/", "dest_host": "beta", "dest": "/data/d"}
    jobs = tmp_path / "jobs.yml"
    jobs.write_text(yaml.safe_dump({"migrate_jobs": [{"name": "data", **ends, **options}]}))
    run = playbooks.run(f"longhaul.fleet.{playbook}", "-e", f"@{jobs}", "-e", f"migrate_phase={phase}")
    assert (run.rc != 0) == fails, run.output
    return run


@pytest.mark.long
def test_a_migration_stops_until_it_says_whose_the_files_become(strangers, playbooks, tmp_path):
    said = migrate(playbooks, tmp_path, fails=True).failures[-1]
    assert "uid 70103 is ledger on alpha and nobody on beta, where ledger is 70101: 2 entries" in said
    assert "uid 70003 is carol on alpha and nobody on beta, where there is no carol: 3 entries" in said
    assert "gid 70001 is alice on alpha and bob on beta, where alice is 70010: 2 entries" in said
    users, groups = said.partition("users that beta lacks")[2].split("groups that beta lacks")
    assert "- {name: carol, uid: 70003}" in users and "- {name: carol, gid: 70003}" in groups
    assert not (strangers.root("beta") / "data/d").exists()
    said = migrate(playbooks, tmp_path, fails=True, phase="cutover").failures[-1]
    assert "numeric_ids: true" in said and not (strangers.root("beta") / "data/d").exists()

    mapped = {"users": {"alice": "alice", 70002: "bob", "carol": "deploy", 70103: 70101}, "groups": {70001: "alice"}}
    run = migrate(playbooks, tmp_path, phase="cutover", owner_map=mapped)
    assert "the trees are the same" in run.output
    assert found(strangers) == {
        "alice": (70010, 70010),
        "bob": (70001, 70002),
        "carol": (70200, 70003),
        "ledger": (70101, 70103),
    }
    assert "the trees are the same" in migrate(playbooks, tmp_path, playbook="verify", owner_map=mapped).output


@pytest.mark.long
@pytest.mark.parametrize("numeric_ids", [False, *rarely(True)])
def test_a_migration_that_names_numbers_or_names_goes_on(strangers, playbooks, tmp_path, numeric_ids):
    run = migrate(playbooks, tmp_path, phase="cutover", numeric_ids=numeric_ids)
    assert "the trees are the same" in run.output
    assert found(strangers)["ledger"] == ((70103, 70103) if numeric_ids else (70101, 70101))
    assert found(strangers)["carol"] == (70003, 70003)
