# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables of backup jobs: what is wrong with them, and which runs they make."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.job_problems import find_problems
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.jobs import make_runs, share_bandwidth

GROUPS = {
    "all": ["web1", "web2", "db", "vault"],
    "web": ["web1", "web2"],
    "none": [],
}


def job(**changes) -> dict:
    made = {
        "name": "data",
        "host": "web1",
        "src": "/srv/data",
        "repository": {"host": "vault", "path": "/srv/backup"},
        "keep": {"daily": 7},
    }
    made.update(changes)
    return {key: value for key, value in made.items() if value is not None}


@pytest.mark.parametrize(
    "jobs",
    [
        [job()],
        [job(host=None, hosts=["web", "db"]), job(name="more")],
        [job(), job(host="web2")],
        [job(src=["/etc", "/srv/data/"])],
        [job(src="/")],
        [job(host="vault", src="/srv/data")],
        [job(host="vault", src="/srv/back")],  # a name that begins alike is not inside
        [
            job(
                before=[{"command": ["sync"]}, {"tasks": "dump.yml", "host": "db"}],
                after=[{"host": "localhost", "command": ["x"]}],
            )
        ],
        [job(method="stream"), job(name="etc", src="/etc", method="rsync", trust="full")],
        [
            job(
                copies=[
                    {"host": "vault", "path": "/mnt/backup"},
                    {"host": "db", "path": "/srv/backup", "bwlimit": "20M"},
                ]
            )
        ],
        [job(stale_after="36h", check_subset="1/7", bwlimit="10M", shrink_limit=100, min_free="10%")],
    ],
)
def test_good_jobs_have_no_problem(jobs):
    assert find_problems(jobs, GROUPS) == []


def test_no_two_jobs_have_their_dumps_in_one_folder_of_a_client():
    elsewhere = {"host": "db", "path": "/srv/backup"}
    dumps = [{"postgresql": {}}, {"mariadb": {}}]
    jobs = [
        job(host=None, hosts=["web"], consistent=dumps),
        job(name="more", host="web2", consistent=dumps[:1], repository=elsewhere),
    ]
    (problem,) = find_problems(jobs, GROUPS)
    for words in ("job more: ", "/srv/data/.longhaul-dumps/postgresql on web2, and job data in", "set into"):
        assert words in problem
    jobs[1]["consistent"] = [{"sqlite": {"files": ["/srv/data/a.db"], "into": ".longhaul-dumps"}}]
    assert len(find_problems(jobs, GROUPS)) == 2
    jobs[1]["consistent"] = [{"postgresql": {"into": "own"}}, {"btrfs": {"subvolume": "/srv"}}]
    assert find_problems(jobs, GROUPS) == []
    jobs[1]["consistent"], jobs[1]["host"] = dumps, "db"
    assert find_problems(jobs, GROUPS) == []


@pytest.mark.parametrize(
    "jobs, words",
    [
        (["data"], ["job number 1", "no dictionary"]),
        ([job(name=None)], ["job number 1", "name is missing"]),
        ([job(name="a/b")], ["job a/b", "cannot be the name of a folder"]),
        ([job(host=None)], ["host (or hosts) is missing"]),
        ([job(host=None, hosts=["none"])], ["its groups are empty"]),
        ([job(host="wbe1")], ["wbe1 is no host and no group"]),
        ([job(repository=None)], ["repository is missing"]),
        ([job(repository={"host": "vault"})], ["repository is missing"]),
        ([job(repository={"host": "safe", "path": "/b"})], ["safe is not in the inventory"]),
        ([job(repository={"host": 10, "path": "/b"})], ["10 is not in the inventory"]),
        ([job(repository={"host": "vault", "path": "backup"})], ["path backup is not absolute"]),
        ([job(host="vault", src="/srv")], ["lies inside /srv", "contain itself"]),
        ([job(host="vault", src="/")], ["lies inside /"]),
        ([job(copies=[{"host": "safe", "path": "/c"}])], ["copies[0]", "safe is not in the inventory"]),
        ([job(copies=[{"host": "vault"}])], ["copies[0] needs a host and a path"]),
        ([job(copies="vault:/c")], ["copies[0] needs a host and a path"]),
        ([job(copies=[{"host": "vault", "path": "c"}])], ["copies[0]", "path c is not absolute"]),
        ([job(copies=[{"host": "vault", "path": "/c/.."}])], ["copies[0]", "'..' in it"]),
        ([job(copies=[{"host": "vault", "path": "/srv/backup"}])], ["vault:/srv/backup is the repository itself"]),
        (
            [job(copies=[{"host": "vault", "path": "/srv/backup/in"}])],
            ["/srv/backup/in is the repository itself, or one"],
        ),
        ([job(copies=[{"host": "vault", "path": "/"}])], ["the repository itself, or one lies inside the other"]),
        ([job(copies=[{"host": "web1", "path": "/c"}])], ["web1 is a client of the job"]),
        ([job(copies=[{"host": "db", "path": "/c"}, {"host": "db", "path": "/c/"}])], ["db:/c/ is copies[0]"]),
        ([job(copies=[{"host": "db", "path": "/c", "keep": {"dayly": 1}}])], ["copies[0]", "no rule dayly"]),
        ([job(copies=[{"host": "db", "path": "/c", "bwlimit": "fast"}])], ["copies[0]", "bwlimit", "no rate"]),
        ([job(src=None)], ["src is missing"]),
        ([job(src="srv/data")], ["src srv/data is not an absolute path"]),
        ([job(src="/srv/link/..")], ["src /srv/link/.. has '..' in it"]),
        ([job(src=["/srv/data", "/srv/../etc"])], ["src /srv/../etc has '..' in it"]),
        ([job(repository={"host": "vault", "path": "/backup/.."})], ["path /backup/.. has '..' in it"]),
        ([job(src=["/etc", "/srv/etc"])], ["/etc and /srv/etc end in one name"]),
        ([job(src=["/", "/srv"])], ["src / has no name of its own"]),
        ([job(keep=None)], ["the policy is empty"]),
        ([job(keep={})], ["the policy is empty"]),
        ([job(keep=7)], ["keep is no dictionary"]),
        ([job(keep={"dayly": 7})], ["no rule dayly"]),
        ([job(keep={"within": "a week"})], ["within is 'a week'"]),
        ([job(stale_after="2 days")], ["stale_after is '2 days'"]),
        ([job(min_free="100%")], ["min_free is '100%'", "from 0 to 99"]),
        ([job(check_subset="7")], ["the subset '7'"]),
        ([job(bwlimit="fast")], ["bwlimit", "'fast' is no rate"]),
        ([job(shrink_limit=101)], ["shrink_limit is 101"]),
        ([job(change_limit="most")], ["change_limit is most"]),
        (
            [job(method="rsync")],
            ["trust is none, and method rsync would have to reach the older copies", "set trust: full"],
        ),
        ([job(before=[{"name": "nothing"}])], ["exactly one of command, module and tasks"]),
        ([job(after=[{"command": ["x"], "tasks": "y.yml"}])], ["a hook of after has not exactly one"]),
        ([job(after=[{"command": ["x"], "host": "elsewhere"}])], ["runs on elsewhere"]),
        ([job(), job(src="/etc")], ["job data: job number 1 has this name on web1, too"]),
        ([job(), job(host=None, hosts=["web"])], ["on web1"]),
    ],
)
def test_what_is_wrong_is_said(jobs, words):
    found = find_problems(jobs, GROUPS)
    assert len(found) == 1, found
    assert [word for word in words if word not in found[0]] == [], found


def test_hooks_of_all_jobs_are_checked_like_those_of_one():
    hooks = {"backup_before": [{"module": "no.such.module"}], "backup_after": [{"command": ["x"], "host": "wbe1"}, {}]}
    found = find_problems([job()], GROUPS, hooks=hooks)
    assert len(found) == 3 and found[0].startswith("a hook of backup_before cannot run: module no.such.module is not")
    assert "backup_after runs on wbe1" in found[1] and "backup_after has not exactly one" in found[2]


def test_all_problems_are_told_together():
    found = find_problems([job(name=None, src=None, keep={}), job(host="wbe1")], GROUPS, only=["nothing"])
    assert len(found) == 5 and "backup_only names nothing" in found[-1], found


def test_only_may_name_jobs_hosts_and_both():
    jobs = [job(host=None, hosts=["web", "db"]), job(name="etc", src="/etc")]
    assert find_problems(jobs, GROUPS, only=["data", "web2", "db/data", "etc"]) == []
    found = make_runs(jobs, GROUPS, only=["web2", "etc"])
    assert [run["id"] for run in found] == ["web2/data", "web1/etc"]
    assert make_runs(jobs, GROUPS, only="web2, etc") == found
    assert len(find_problems(jobs, GROUPS, only="web2,wbe1")) == 1


def test_rules_may_be_one_text():
    (run,) = make_runs([job(filter="- *.tmp,- *.bak")], GROUPS)
    assert run["transfer"]["filter"] == ["R *", "- *.tmp", "- *.bak"]


def test_a_run_has_what_its_tasks_need():
    (run,) = make_runs([job(src="/srv/data/", compress="none", bwlimit="1k")], GROUPS)
    assert run["sources"] == [{"src": "/srv/data/", "part": ""}]
    assert run["transfer"] == {"compress": "none", "trust": "none", "connect": "pull", "bwlimit": "1k"}
    assert (run["id"], run["verify"], run["stale_after"]) == ("web1/data", "size", 0)
    assert (run["shrink_limit"], run["change_limit"], run["read_only"]) == (50, 50, False)
    assert make_runs([job(read_only="yes")], GROUPS)[0]["read_only"]


def test_a_job_may_trust_its_hosts():
    (run,) = make_runs([job(trust="full")], GROUPS)
    assert run["transfer"]["trust"] == "full"


def test_several_paths_have_a_folder_each():
    (run,) = make_runs([job(src=["/etc", "/srv/data/"])], GROUPS, direction="push")
    assert run["sources"] == [{"src": "/etc/", "part": "etc"}, {"src": "/srv/data/", "part": "data"}]
    assert run["transfer"]["connect"] == "push"


def test_the_root_can_be_backed_up():
    (run,) = make_runs([job(src="/", one_file_system=True)], GROUPS)
    assert run["sources"] == [{"src": "/", "part": ""}]


def test_what_is_excluded_today_does_not_stay_in_an_unfinished_snapshot():
    (run,) = make_runs([job(exclude=["/cache"], filter=["P /kept"])], GROUPS)
    assert run["transfer"]["filter"] == ["R *", "P /kept"] and run["transfer"]["exclude"] == ["/cache"]
    for tags in ({"exclude_if_present": [".nobackup"]}, {"exclude_caches": True}):
        (run,) = make_runs([job(**tags)], GROUPS)
        assert run["transfer"]["filter"] == ["R *"] and run["transfer"].items() > tags.items()


def test_no_more_runs_than_may_run_at_once_share_the_bandwidth():
    jobs = [job(host=None, hosts=["web", "db"]), job(name="etc", host="db", repository={"host": "web1", "path": "/b"})]
    found = make_runs(jobs, GROUPS)
    share_bandwidth(found, 2, "10M")
    rates = {run["id"]: int(run["transfer"]["bwlimit"]) for run in found}
    assert rates == {"web1/data": 5 << 20, "web2/data": 5 << 20, "db/data": 5 << 20, "db/etc": 10 << 20}


def test_a_job_may_be_slower_than_its_share_and_not_faster():
    jobs = [job(bwlimit="1M"), job(name="etc", bwlimit="50M")]
    found = make_runs(jobs, GROUPS)
    share_bandwidth(found, 2, "10M")
    assert [int(run["transfer"]["bwlimit"]) for run in found] == [1 << 20, 5 << 20]
