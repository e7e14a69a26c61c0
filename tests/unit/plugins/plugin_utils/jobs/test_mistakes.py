# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All mistakes of a jobs file are told in one message, each with its job, its key and the name that was meant."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.argument_spec import Spec, spec_of_role
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.job_problems import (
    refuse_jobs as refuse_backups,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.jobs import refuse_jobs as refuse_migrations
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.mistakes import check_by_spec, find_misspelt
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.request import refuse_variables_of_restore

SECRET = "hunter2"
HOSTS = ["old", "new", "vault"]
JOB = {"name": "data", "src_host": "old", "src": "/srv/data/", "dest_host": "new", "dest": "/srv/data"}
BACKUP = {
    "name": "data",
    "host": "old",
    "src": "/srv/data",
    "repository": {"host": "vault", "path": "/srv/backup"},
    "keep": {"daily": 7},
}


def given_of(role: str, **changed: Any) -> dict[str, Any]:
    """Return the options of the action of a role, as the role hands on its defaults."""
    defaults = {name: option.get("default") for name, option in spec_of_role(role).items()}
    return {**{name[len(role) + 1 :]: value for name, value in defaults.items()}, **changed}


def lines_of(role: str, said: str) -> list[str]:
    head, *lines = said.split("\n- ")
    assert head == f"The variables of the role {role} are not valid, and nothing was done:"
    return lines


def test_all_mistakes_of_a_migration_are_one_message() -> None:
    jobs = [
        {
            **{key: JOB[key] for key in ("name", "src", "dest_host")},
            "source_host": "old",
            "destination": "/srv/data",
            "bwlimt": "1M",
            "method": "rsynk",
            "timeout": "1h",
            "exclude": {"*.tmp": True},
            "preserve": ["times", "owners"],
            "owner_map": {"user": {"a": "b"}},
            "wait": True,
            "rsyncd_password": [SECRET],
        },
        {
            **JOB,
            "name": "web",
            "dest": "srv/web",
            "before_cutover": [
                {"host": "source", "command": ["systemctl", "stop", "app"]},
                {"host": "source", "commandd": ["systemctl", "stop", "db"]},
                {"host": "source", "name": "stop", "command": "systemctl stop 'my app'"},
            ],
            "after_cutover": [{"host": "dest", "command": SECRET, "no_log": True, "become": SECRET}],
            "cutover_failed": {"host": "source", "command": ["x"]},
        },
        "data",
        {"src_host": "odl", "src": "/x", "dest_host": "new", "dest": "/x", "name": "mail", "zzz": SECRET, "port": 0},
    ]
    options = given_of(
        "migrate", jobs=jobs, phase="cutovr", defaults={"deletee": True}, limits={"runningg": 3}, only="wbe"
    )
    said = refuse_migrations(options, HOSTS, False, {"migrate_rset": True, "migrate_limits": {}, "migrate_notes": ""})
    choices = "It can be auto, stream, rsync, rsyncd, tar_nc, scp, sftp"
    attributes = "owner, group, permissions, times, acls, xattrs, hardlinks, devices, sparse"
    assert lines_of("migrate", said) == [
        "migrate_rset is no variable of the role. Did you mean migrate_reset? If it is one of your own, rename it",
        "migrate_defaults.deletee is no option. Did you mean delete?",
        "migrate_phase is cutovr. Did you mean cutover? It can be preflight, seed, sync, rehearse, cutover, verify",
        "fleet_limits.runningg is no option. Did you mean running?",
        "migrate_only names wbe, and there is no such job",
        "job data: source_host is no option. Did you mean src_host?",
        "job data: destination is no option. Did you mean dest?",
        "job data: bwlimt is no option. Did you mean bwlimit?",
        f"job data: method is rsynk. Did you mean rsync? {choices}",
        "job data: timeout is 1h. Write a whole number",
        "job data: exclude is a dictionary. Write a list, such as [one, two]",
        f"job data: preserve[1] is owners. Did you mean owner? It can be {attributes}",
        "job data: owner_map.user is no option. Did you mean users?",
        "job data: wait is an option that a migration sets itself: it waits for each transfer",
        "job data: rsyncd_password is a list. Write one text",
        "job web: before_cutover[1].commandd is no option. Did you mean command?",
        "job web: after_cutover[0].become is of another type. Write true or false",
        "job web: cutover_failed is a dictionary. Write a list, such as [one, two]",
        "job web: dest srv/web is not an absolute path",
        "job web: hook stop of before_cutover has a command that is one text. Write a list: [systemctl, stop, my app]",
        "job number 3: it is no dictionary with name, src_host, src, dest_host, dest",
        "job mail: zzz is no option. ansible-doc -t role longhaul.fleet.migrate lists the options",
        "job mail: src_host odl is not in the inventory; its variables would say how to reach it",
        "job mail: port is 0: give a number from 1 to 65535",
    ]
    assert SECRET not in said


def test_all_mistakes_of_backups_are_one_message() -> None:
    jobs = [
        {**BACKUP, "keepp": {"daily": 1}, "keep": {"dayly": 7}, "before": [{"commandd": ["x"]}, {"command": "x y"}]},
        {"name": "etc", "host": "odl", "path": "/etc", "repository": {"host": "vault", "pathh": "/b"}, "keep": {}},
        {
            **BACKUP,
            "connect": "pull",
            "port_range": "2-1",
            "timeout": 0,
            "shrink_limit": "half",
            "filter": {"-": "x"},
            "bwlimit": "fast",
            "name": "mail",
        },
    ]
    options = given_of("backup", jobs=jobs, direction="pul", concurrency="two", after={"command": ["x"]})
    said = refuse_backups(options, {"all": HOSTS}, variables={"backup_onyl": "etc"})
    assert lines_of("backup", said) == [
        "backup_onyl is no variable of the role. Did you mean backup_only? If it is one of your own, rename it",
        "backup_direction is pul. Did you mean pull? It can be pull, push",
        "backup_concurrency is two. Write a whole number",
        "backup_after is a dictionary. Write a list, such as [one, two]",
        "job data: keep.dayly is no option. Did you mean daily?",
        "job data: keepp is no option. ansible-doc -t role longhaul.fleet.backup lists the options",
        "job data: before[0].commandd is no option. Did you mean command?",
        "job data: a hook of before cannot run: has a command that is one text. Write a list: [x, y]",
        "job etc: path is no option. ansible-doc -t role longhaul.fleet.backup lists the options",
        "job etc: repository.pathh is no option. Did you mean path?",
        "job etc: odl is no host and no group of the inventory; its variables would say how to reach it",
        "job etc: src is missing",
        "job etc: the policy is empty, so it would remove every snapshot but the last. Say what to keep, for instance "
        "keep: {daily: 7, weekly: 5, monthly: 12}",
        "job mail: connect is an option that a backup sets itself: set direction",
        "job mail: shrink_limit is half. Write a number",
        "job mail: filter is a dictionary. Write a list, such as [one, two]",
        "job mail: timeout is 0: give 1 or more",
        "job mail: bwlimit: 'fast' is no rate: write bytes a second, such as 50M, 1.5G or 800k (0: no limit)",
        "job mail: port_range is '2-1': write two ports, such as 50000-50100",
    ]


def test_the_value_of_a_hook_whose_no_log_is_misspelt_is_not_told() -> None:
    hook = {"host": "source", "nolog": True, "command": f"mysql -p{SECRET}"}
    said = refuse_migrations(given_of("migrate", jobs=[{**JOB, "before_cutover": [hook]}]), HOSTS, False)
    assert "Did you mean no_log?" in said and SECRET not in said


def test_a_value_that_was_written_as_the_name_of_an_option_is_not_told() -> None:
    hook = {"host": "source", "no_log": True, "command": ["x"], SECRET: "", f"timeout{SECRET}": ""}
    said = refuse_migrations(given_of("migrate", jobs=[{**JOB, "before_cutover": [hook]}]), HOSTS, False)
    unknown = "before_cutover[0] has an unknown option, whose name is not shown"
    assert said.count(unknown) == 2 and "Did you mean timeout?" in said and SECRET not in said


@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        ({"form": "x"}, []),
        (
            {"transfer": {"bwlimt": "1M"}, "check": "content", "over": "maybe", "dest": "x"},
            [
                "restore_over is maybe. Write true or false",
                "restore_check is content. Did you mean contents? It can be contents, files, structure",
                "restore_dest x is not an absolute path",
                "restore_transfer.bwlimt is no option. Did you mean bwlimit?",
            ],
        ),
        (
            {"job": "x", "jobs": [{**BACKUP, "delta": "x"}, {**BACKUP, "name": "x", "host": None, "hots": ["old"]}]},
            [
                "backup_jobs has no job x of old; it has data of old",
                "it is not known where the snapshots are: set restore_repository to {host: NAME, path: FOLDER}, or "
                "give the file with backup_jobs (-e @FILE)",
                "backup_jobs: job x: hots is no option. Did you mean hosts?",
            ],
        ),
        ({"jobs": [BACKUP, {**BACKUP, "name": "x", "hots": ["old"]}]}, []),  # which leaves the job alone that is wanted
    ],
)
def test_all_mistakes_of_a_restore_are_one_message(changed: dict[str, Any], lines: list[str]) -> None:
    options = given_of("restore", **{"from": "old"}, job="data", jobs=[BACKUP], defaults={})
    said = refuse_variables_of_restore({**options, **changed}, {"all": HOSTS}, {"restore_from": "old"})
    assert said.split("\n- ")[1:] == lines


def test_the_variable_that_was_meant_is_only_told_where_it_is_not_set() -> None:
    spec: Spec = {"migrate_jobs": {"default": []}, "migrate_only": {"default": []}}
    names = ["migrate_job", "migrat_jobs", "migrate_jbos", "migrate_jobs", "migrate_hosts", "__migrate_jobs", "x"]
    found = find_misspelt(names, spec, {"migrate_jobs": []})
    assert [one.split()[0] for one in found] == ["migrat_jobs", "migrate_jbos", "migrate_job"]
    assert find_misspelt(names, spec, {"migrate_jobs": [JOB]}) == []


def test_a_run_without_jobs_has_an_example_and_the_variable_that_was_meant() -> None:
    options = given_of("migrate", playbook="verify")
    said = refuse_migrations(options, HOSTS, False)
    assert said.startswith("There are no jobs: migrate_jobs is not set. Write a file jobs.yml")
    assert "ansible-playbook longhaul.fleet.verify -i INVENTORY" in said
    said = refuse_migrations(options, HOSTS, False, {"backup_jobs": [{"name": "data"}]})
    assert "To verify the\nsnapshots of backup_jobs" in said and "action=check" in said and "migrate_jobs:" not in said
    assert refuse_backups(given_of("backup"), {"all": HOSTS}).startswith("There are no jobs: backup_jobs is not set.")
    assert not refuse_backups(given_of("backup", repository_hosts=["vault"]), {"all": HOSTS})
    assert not refuse_migrations(given_of("migrate"), HOSTS, False)  # a play of the user's own
    (line,) = lines_of("migrate", refuse_migrations(options, HOSTS, False, {"migrate_job": [JOB]}))
    assert line.startswith("migrate_job is no variable of the role. Did you mean migrate_jobs?")


@pytest.mark.parametrize("role", ["migrate", "backup", "restore"])
def test_the_defaults_of_a_role_have_no_mistake(role: str) -> None:
    given = {name: option.get("default") for name, option in spec_of_role(role).items()}
    assert check_by_spec(given, spec_of_role(role)).problems == []


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("int", [5, "5", True], ["x", None, [], 1.5]),
        ("bool", [True, "yes", 0], ["maybe", None, {}]),
        ("float", [1, "1.5"], ["x", {}]),
        ("str", ["x", 5, True, None], [[], {}]),
        ("list", [["x"], "a,b", 5], [{}, None]),
        ("dict", [{}, "a=b", '{"a": 1}'], ["x", [], None]),
        ("raw", [None, [], {}, "x"], []),
    ],
)
def test_what_ansible_accepts_is_accepted(kind: str, good: list[Any], bad: list[Any]) -> None:
    spec: Spec = {"x": {"type": kind, "default": 0, **({"elements": "str"} if kind == "list" else {})}}  # type: ignore[typeddict-item]
    assert [one for one in good if check_by_spec({"x": one}, spec).problems] == []
    assert [one for one in bad if not check_by_spec({"x": one}, spec).problems] == []
