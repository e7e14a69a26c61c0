# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which backups of a run have files of tasks, which limits the others have, and what is refused before all begins."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.units import now_text
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.limits import LimitError
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.planning import Plan, plan
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.store import BackupStore

HOOK = [{"tasks": "dump.yml"}]
COMMAND = {"command": ["true"]}


def job(name: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "host": "web", "src": "/srv", **options}


def planned(
    folder: Path,
    *jobs: Any,
    hostvars: dict[str, Any] | None = None,
    write: bool = True,
    load: Callable[[str], object] | None = None,
    **options: Any,
) -> Plan:
    given = {
        "jobs": list(jobs), "defaults": {"repository": {"host": "vault", "path": "/b"}, "keep": {"last": 1}},
        "only": [], "repository_hosts": [], "direction": "pull", "concurrency": 2, "bwlimit": "0", "before": [],
        "drill": {}, "drill_only": False,
        "after": [], "limits": {}, **options,
    }  # fmt: skip
    variables = {
        "groups": {"all": ["web", "db", "vault", "store"]},
        "hostvars": {"web": {}, "db": {}, "vault": {}, "store": {}, **(hostvars or {})},
    }
    return plan(given, variables, BackupStore(str(folder), writes=write), load)


def names(waiting: Any) -> list[str]:
    return [one.name for one in waiting]


def test_backups_with_files_of_tasks_are_kept_apart(tmp_path: Path):
    found = planned(tmp_path, job("a"), job("b", before=HOOK), job("c", after=HOOK), job("d", before=HOOK))
    assert names(found.runs) == ["web/a"] and names(found.hooked) == ["web/b", "web/c", "web/d"]
    assert list(found.by_id) == ["web/a", "web/b", "web/c", "web/d"]


def test_all_of_the_bandwidth_is_used_by_those_that_run_at_once(tmp_path: Path):
    found = planned(tmp_path, job("a"), job("e"), job("b", before=HOOK), job("c", before=HOOK), bwlimit="100")
    rates = {name: run["transfer"]["bwlimit"] for name, run in found.by_id.items()}
    assert rates == {"web/a": "50", "web/e": "50", "web/b": "100", "web/c": "100"}


def test_in_check_mode_no_hook_runs_so_none_is_kept_apart(tmp_path: Path):
    assert not planned(tmp_path, job("b", before=HOOK), write=False).hooked


def test_hooks_of_all_jobs_are_hooks_of_each(tmp_path: Path):
    found = planned(tmp_path, job("a"), job("b"), after=HOOK)
    assert not found.runs and names(found.hooked) == ["web/a", "web/b"]


def test_other_hooks_run_around_the_backup_those_of_all_jobs_outside(tmp_path: Path):
    module, own = {"module": "ansible.builtin.service"}, {"command": ["own"]}
    found = planned(tmp_path, job("a", before=[own], after=[own]), before=[COMMAND], after=[module])
    run = found.by_id["web/a"]
    assert not found.hooked and (run["before"], run["after"]) == ([COMMAND, own], [own, module])


def test_what_is_not_asked_for_is_not_planned(tmp_path: Path):
    store = {"host": "store", "path": "/b"}
    jobs = [job("a"), job("b", host="db"), job("c", repository=store)]
    assert list(planned(tmp_path, *jobs, only=["b", "web/c"]).by_id) == ["db/b", "web/c"]
    own = planned(tmp_path, *jobs, repository_hosts=["vault"])
    assert list(own.by_id) == ["web/a", "db/b"] and own.limits.per_dest == 1


def test_the_order_is_by_priority_and_then_by_what_took_longest(tmp_path: Path):
    for name, seconds in (("short", 3), ("long", 300)):
        (tmp_path / "jobs/web").mkdir(parents=True, exist_ok=True)
        record = {"id": f"web/{name}", "duration": seconds}
        (tmp_path / f"jobs/web/{name}.json").write_text(json.dumps(record))
    found = planned(tmp_path, job("short"), job("new"), job("long"), job("first", priority=1))
    assert names(found.runs) == ["web/first", "web/new", "web/long", "web/short"]


def test_limits_and_links(tmp_path: Path):
    limits = {"running": 7, "per_dest": 9, "links": {"site-b": {"running": 1}}}
    found = planned(
        tmp_path, job("a"), job("b", link="site-b"), limits=limits, concurrency=3, hostvars={"web": {"x": 1}}
    )
    assert (found.limits.running, found.limits.per_dest, found.limits.per_source) == (7, 3, 2)
    assert {one.name: one.pair.links for one in found.runs} == {"web/a": (), "web/b": ("site-b",)}
    with pytest.raises(LimitError, match="job web/a uses the link site-c"):
        planned(tmp_path, job("a"), limits=limits, hostvars={"web": {"longhaul_link": "site-c"}})


def test_a_record_that_cannot_be_read_stops_the_run_before_it_begins(tmp_path: Path):
    (tmp_path / "jobs/web").mkdir(parents=True)
    (tmp_path / "jobs/web/a.json").write_text("[]")
    with pytest.raises(
        Refusal, match=r"a\.json cannot be read: .* is no record of a backup\. Restore it, or remove it"
    ):
        planned(tmp_path, job("a"))


def test_files_of_tasks_that_cannot_run_are_told_before_anything_begins(tmp_path: Path):
    """Else the source would be stopped when that is found, and what is to start it again may be the file."""

    def load(path: str) -> object:
        if path.endswith("gone.yml"):
            raise FileNotFoundError(f"there is no {path}, and it says secret")
        return [{"name": "Stop it"}] if path == "/inventory/stop.yml" else {"stop": "it"}

    job = {"name": "data", "host": "web", "src": "/srv", "before": [{"tasks": "stop.yml"}]}
    job["after"] = [{"name": "start", "tasks": "gone.yml"}, {"tasks": "/words.yml"}, {"command": ["true"]}]
    with pytest.raises(Refusal) as refused:
        planned(tmp_path, job, load=load, hook_folder="/inventory")
    lines = str(refused.value).splitlines()
    assert lines[0] == "The variables of the role backup are not valid, and nothing was done:" and len(lines) == 3
    assert "job data: hook start of after: /inventory/gone.yml cannot be read: there is no" in lines[1]
    assert lines[2] == "- job data: hook without a name of after: /words.yml is no list of tasks"
    job["after"][0]["no_log"] = True
    with pytest.raises(Refusal) as refused:
        planned(tmp_path, job, load=load, hook_folder="/inventory")
    assert "secret" not in str(refused.value) and "gone.yml cannot be read: see no_log" in str(refused.value)
    assert planned(tmp_path, {**job, "after": []}, load=load, hook_folder="/inventory").hooked


def test_a_drill_that_is_due_and_is_validated_by_tasks_counts_as_a_file_of_tasks(tmp_path: Path):
    into = {"host": "client", "path": "/scratch"}
    one = job("one", drill={"into": into, "validate": {"tasks": "check.yml"}})
    found = planned(tmp_path, one, job("two"), drill={"into": into})
    assert names(found.hooked) == ["web/one"] and names(found.runs) == ["web/two"]
    assert found.used == {"web": ["/srv"]} and found.by_id["web/two"]["drill"] is not None
    (tmp_path / "jobs/web").mkdir(parents=True)
    drill = {"at": now_text(), "host": "web", "path": "/scratch/longhaul-drill-1"}
    (tmp_path / "jobs/web/one.json").write_text(json.dumps({"id": "web/one", "drill": drill}))
    assert names(planned(tmp_path, one).hooked) == []
    assert names(planned(tmp_path, one, drill_only=True).hooked) == ["web/one"]
    assert names(planned(tmp_path, one, job("two"), drill_only=True).runs) == []
    with pytest.raises(Refusal, match="no job that is asked for has drills"):
        planned(tmp_path, job("two"), drill_only=True)
