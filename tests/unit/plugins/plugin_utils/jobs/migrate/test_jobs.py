# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables of job lists, and what is wrong with them; jobs turned round, and those that cannot be."""

from __future__ import annotations

import sys
from collections import UserDict
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.advice import advice
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.jobs import (
    arrival,
    find_back,
    find_problems,
    refuse_jobs,
    refuse_selection,
    select_jobs,
    turn_round,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import HOOKS as KINDS
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import (
    JobFailure,
    MigrationState,
    PhaseResults,
    Switch,
    SyncResult,
    TransferSummary,
)

HOSTS = ["old", "new"]
HOOK = {"host": "source", "command": ["true"]}


def job(**changes) -> dict:
    made = {"name": "data", "src_host": "old", "src": "/srv/data/", "dest_host": "new", "dest": "/srv/data"}
    made.update(changes)
    return {key: value for key, value in made.items() if value is not None}


@pytest.mark.parametrize(
    "src, dest, expected",
    [
        ("/srv/data/", "/srv/new", "/srv/new"),
        ("/srv/data", "/srv/new", "/srv/new/data"),
        ("/srv/data", "/srv/new/", "/srv/new/data"),
        ("/srv/data//", "/srv//new/", "/srv/new"),
        ("/", "/backup", "/backup"),
    ],
)
def test_arrival_follows_the_trailing_slash(src, dest, expected):
    assert arrival({"src": src, "dest": dest}) == expected


@pytest.mark.parametrize(
    "jobs",
    [
        [job()],
        [job(), job(name="more", dest="/srv/more")],
        [job(), job(name="more", dest="/srv/data/inside")],  # nothing is deleted
        [
            job(delete=True),
            job(name="more", dest="/srv/database", delete=True),
        ],  # a name that begins alike is not inside
        [job(rsync_opts=["--fuzzy", "-W"])],
        [job(dest_host="old", dest="/srv/copy")],
        [job(dest_host="old", dest="/srv/data2")],
        [job(src="/srv/data", dest="/srv"), job(name="two", src="/srv/two", dest="/srv", delete=True)],
        [job(delete=True), job(name="elsewhere", dest_host="old", src_host="new", dest="/srv/data/inside")],
    ],
)
def test_good_jobs_have_no_problem(jobs):
    assert find_problems(jobs, HOSTS) == []


@pytest.mark.parametrize(
    "jobs, words",
    [
        ([job(name=None)], ["job number 1", "name is missing"]),
        ([job(src=None)], ["job data", "src is missing"]),
        ([job(rsync_opts=["--fuzzy", "--chown=a:b"])], ["--chown=a:b", "a migration compares"]),
        ([job(rsync_opts=["--delete"])], ["--delete has a word of its own in this task: use delete"]),
        ([job(dest_host=None)], ["dest_host is missing"]),
        ([job(name="../x")], ["its name may have"]),
        ([job(name="a b")], ["its name may have"]),
        ([job(name="report")], ["its name is that of the report on all jobs, report.html"]),
        ([job(name="data\n")], ["its name may have"]),
        ([job(src_host="nobody")], ["src_host nobody is not in the inventory"]),
        ([job(dest="srv/data")], ["dest srv/data is not an absolute path"]),
        ([job(src_host="new", src="/srv/data", dest="/srv")], ["the same directory, /srv/data"]),
        ([job(src_host="new", dest="/srv/data/copy")], ["/srv/data/copy lies inside the source /srv/data"]),
        ([job(src_host="new", src="/", dest="/srv/data")], ["lies inside the source /"]),
        ([job(), job(dest="/srv/other")], ["two jobs of this name"]),
        ([job(), job(name="two", src="/srv/two/", delete=True)], ["job two", "both go to /srv/data"]),
        ([job(delete=True), job(name="two", dest="/srv/data/in")], ["delete of job data would remove /srv/data/in"]),
        ([job(name="in", dest="/srv/data/in"), job(delete=True)], ["delete of job data would remove /srv/data/in"]),
    ],
)
def test_bad_jobs_have_one_problem_that_names_the_cause(jobs, words):
    (problem,) = find_problems(jobs, HOSTS)
    assert all(word in problem for word in words), problem


def test_all_problems_are_told_at_once():
    problems = find_problems([job(src_host="nobody", dest="data"), job(name=None), {}], HOSTS)
    assert len(problems) == 2 + 1 + 5


def test_options_that_count_for_all_jobs_are_applied():
    jobs = [job(src=None), job(name="two", dest="/srv/data/in")]
    (problem,) = find_problems(jobs, HOSTS, defaults={"delete": True, "src": "/srv/data/"})
    assert "delete of job data would remove /srv/data/in" in problem


def test_names_of_no_job_are_told():
    problems = find_problems([job()], HOSTS, only=["data", "daat"], agreed=["all", "true", "dat"])
    assert [problem.split(",")[0] for problem in problems] == [
        "migrate_only names daat",
        "migrate_allow_delete names dat",
    ]


def test_a_job_in_conflict_with_many_is_told_once_for_each_reason():
    others = [job(name=f"in{number}", dest=f"/srv/data/{number}/x") for number in range(5)]
    problems = find_problems([*others, job(delete=True), job(name="same"), job(name="in3")], HOSTS)
    assert [problem.partition(":")[0] for problem in problems] == ["job data", "job same", "job in3"]


class Counted(UserDict):
    """A job that counts how often one of its values is looked at, as a container of Ansible's must work for each."""

    looks = 0

    def __getitem__(self, key):
        Counted.looks += 1
        return super().__getitem__(key)


def _lines_and_looks(count: int) -> tuple[int, int]:
    """Return how many lines of the checks ran for so many jobs of a few hosts, and how often a job was looked at."""
    jobs = [
        Counted(job(name=f"job{number}", dest_host=HOSTS[number % 2], src_host="old", dest=f"/srv/{number}/data"))
        for number in range(count)
    ]
    Counted.looks = lines = 0

    def trace(frame, event, _argument):
        nonlocal lines
        lines += event == "line"
        return trace if frame.f_code.co_filename.endswith("migrate/jobs.py") else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert find_problems(jobs, [*HOSTS, *map(str, range(count))]) == []
    finally:
        sys.settrace(before)
    return lines, Counted.looks


def test_twice_as_many_jobs_are_twice_the_work():
    (lines, looks), (more_lines, more_looks) = _lines_and_looks(1000), _lines_and_looks(2000)
    assert lines > 1000 and more_lines < 2.1 * lines
    assert looks >= 1000 and more_looks < 2.1 * looks


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, False),
        ({"before_cutover": [HOOK]}, True),
        ({"before_cutover": [HOOK], "cutover_failed": [HOOK]}, False),
        ({"cutover_failed": [HOOK]}, False),
    ],
)
def test_a_rehearsal_must_be_able_to_bring_back_what_it_stops(changes, told):
    jobs = [job(**changes)]
    assert find_problems(jobs, HOSTS) == []
    problems = find_problems(jobs, HOSTS, rehearses=True)
    assert len(problems) == told and all("job data: a rehearsal stops the source" in problem for problem in problems)
    assert find_problems(jobs, HOSTS, rehearses=True, stops=True, revives=True) == []
    assert find_problems([*jobs, job(name="other", dest="/x")], HOSTS, rehearses=True, only=["other"]) == []


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        ({"host": "source"}, "hook without a name of after_cutover has nothing to run"),
        ({**HOOK, "name": "stop", "tasks": "x.yml"}, "hook stop of after_cutover has command and tasks"),
        ({**HOOK, "args": {"name": "app"}}, "has args, which belong to a module"),
    ],
)
def test_a_hook_that_cannot_run(hook, words):
    (problem,) = find_problems([job(after_cutover=[HOOK, hook])], HOSTS)
    assert problem.startswith("job data: hook") and words in problem


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("new", ""),
        ("dest", ""),
        ("localhost", ""),
        ("elsewhere", "Name one of its hosts"),
        ("new2", "Did you mean new?"),
    ],
)
def test_the_host_of_a_hook_is_in_the_inventory(host: str, words: str):
    found = find_problems([job(after_cutover=[{**HOOK, "host": host, "name": "start"}])], HOSTS)
    said = f"job data: hook start of after_cutover runs on {host}, which is not in the inventory. {words}"
    assert bool(words) == bool(found) and all(said in problem for problem in found), found


def test_each_file_of_tasks_is_a_list_of_tasks_before_anything_begins():
    files = {"good.yml": [{"ansible.builtin.ping": {}}], "empty.yml": None, "words.yml": ["ping"]}
    hooks = [{"host": "dest", "tasks": name} for name in (*files, "/gone.yml", "good.yml", "words.yml")]
    given: dict[str, Any] = {kind: [] for kind in KINDS}
    given.update(
        phase="sync", only=[], back=[], defaults={}, hook_folder="/etc/fleet", jobs=[job(before_cutover=hooks)]
    )
    given["after_cutover"] = [{"host": "dest", "name": "torn", "tasks": "torn.yml"}]

    def load(path: str) -> object:
        folder, _slash, name = path.rpartition("/")
        if name not in files:
            raise ValueError(f"no such file or no YAML: {name}")
        assert folder == "/etc/fleet"
        return files[name]

    unread = "cannot be read: no such file or no YAML"
    said = refuse_selection(select_jobs(given), given, load).splitlines()
    assert said == [
        "Nothing was done:",
        f"- hook torn of migrate_after_cutover: /etc/fleet/torn.yml {unread}: torn.yml",
        "- job data: hook without a name of before_cutover: /etc/fleet/empty.yml is no list of tasks",
        "- job data: hook without a name of before_cutover: /etc/fleet/words.yml is no list of tasks",
        f"- job data: hook without a name of before_cutover: /gone.yml {unread}: gone.yml",
    ]


def test_the_name_of_a_group():
    assert find_problems([job(cutover_group="shop.1")], HOSTS) == []
    (problem,) = find_problems([job(cutover_group="a b")], HOSTS)
    assert "cutover_group may have letters" in problem


# Jobs turned round

JOB = {"name": "data", "src_host": "old", "src": "/srv/data/", "dest_host": "new", "dest": "/srv/new"}
DONE = Switch(done=True, at="then")


def state(switch: Switch | None = DONE, **changes: Any) -> MigrationState:
    return replace(MigrationState.fresh({**JOB, **changes}), switch=switch)


def test_a_job_turned_round():
    made = turn_round({**JOB, "delete": True, "exclude": ["*.tmp"], "port": 5000, "cutover_group": "all"})
    assert (made["src_host"], made["src"]) == ("new", "/srv/new/")
    assert (made["dest_host"], made["dest"]) == ("old", "/srv/data.from-new")
    assert made["name"] == "data.from-new" and made["exclude"] == ["*.tmp"]
    assert made["delete"] is False and made["port"] is None and made["cutover_group"] is None
    assert find_problems([made], ["old", "new"], defaults={"delete": True}) == []
    assert turn_round({**JOB, "src": "/srv/data"})["src"] == "/srv/new/data/"
    assert turn_round({**JOB, "connect": "push"})["connect"] == "pull"
    assert turn_round({**JOB, "connect": "auto"})["connect"] == "auto"


def test_the_owner_map_is_inverted():
    given = {"users": {"www-data": "nginx", 1000: 2000}, "groups": {1000: 2000}}
    made = turn_round({**JOB, "owner_map": given})["owner_map"]
    assert made == {"users": {"nginx": "www-data", 2000: 1000}, "groups": {2000: 1000}}


@pytest.mark.parametrize(
    ("job", "states", "words"),
    [
        ({}, [], "job data: it was not switched over, so old has all"),
        ({}, [state(switch=None)], "job data: it was not switched over"),
        ({"name": "other"}, [state()], "names data, and there is no such job"),
        ({"src": "/"}, [state()], "nothing lies beside that"),
        ({"owner_map": {"users": {"a": "c", "b": "c"}}}, [state()], "owner_map.users makes a and b the same, c"),
        ({"owner_map": {"groups": {1: 5, 2: 5}}}, [state()], "owner_map.groups makes 1 and 2 the same, 5"),
    ],
)
def test_what_cannot_go_back_is_told(job, states, words):
    found = find_back([{**JOB, **job}], ["data"], {}, states)
    assert found.jobs == [] and len(found.problems) == 1 and words in found.problems[0], found.problems


def test_those_that_are_named_go_back():
    jobs = [JOB, {**JOB, "name": "other", "src": "/srv/other/", "dest": "/srv/other"}]
    found = find_back(jobs, ["data"], {"owner_map": {"users": {1: 2}}}, [state(), state(name="other")])
    assert [job["name"] for job in found.jobs] == ["data.from-new"] and not found.problems
    assert found.jobs[0]["owner_map"] == {"users": {2: 1}}
    assert len(find_back(jobs, ["data"]).jobs) == 1  # nobody has looked
    begun = state(switch=Switch())
    assert len(find_back(jobs, ["data"], {}, [begun]).jobs) == 1


def test_a_name_that_no_job_has_and_a_job_that_was_not_switched_over_are_told_together():
    """The check of the list knows no states, so it leaves names to the run as long as that has anything to do."""
    given: dict[str, Any] = {**{kind: [] for kind in KINDS}, "phase": "sync", "only": [], "allow_delete": []}
    given.update(jobs=[JOB], defaults={}, back=["daat", "data"])
    assert refuse_jobs(given, HOSTS, False) == ""
    given["hook_folder"] = "/etc/fleet"
    said = refuse_selection(select_jobs(given, []), given, lambda _path: [])
    assert "migrate_back names daat, and there is no such job" in said and "job data: it was not switched over" in said
    assert "names daat" in refuse_jobs({**given, "back": ["daat"]}, HOSTS, False)
    assert "names daat" in refuse_jobs({**given, "jobs": [{**JOB, "src": "/srv"}]}, ["new"], False)


def test_the_advice_for_a_job_that_goes_back_names_the_folder():
    made = MigrationState.fresh(turn_round(JOB))
    made.phases = PhaseResults(seed=TransferSummary(), sync=SyncResult())
    assert made.is_back and not state().is_back
    assert "old:/srv/data.from-new" in advice(made) and "migrate_phase=cutover" not in advice(made)
    assert "run the same command again" in advice(replace(made, failure=JobFailure("seed", "x", "no space")))
