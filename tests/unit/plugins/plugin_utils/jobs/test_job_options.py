# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables of roles, and options of transfer in jobs: those that pass, and those that are refused."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.jobs import OF_ONE_JOB, SET_BY_ROLE, make_runs
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.job_options import (
    find_transfer_problems,
    passed_on,
    role_options,
    spec_of_transfer,
    spec_with_jobs,
    transfer_options,
)

ENDS = {"src": "/a/", "dest": "/b"}


def test_an_option_of_a_job_has_the_type_of_that_of_a_task_and_may_be_left_out() -> None:
    spec = spec_of_transfer({"wait": "is set"})
    assert spec["timeout"] == {"type": "int"}
    assert spec["src"] == {"type": "str"}
    assert spec["rsyncd_password"] == {"type": "str", "no_log": True}
    assert spec["wait"] == {"type": "bool", "set_by_role": "is set"}
    assert spec["owner_map"]["options"].keys() == {"users", "groups"}


def test_options_of_a_role_take_the_place_of_those_of_transfer() -> None:
    spec = spec_with_jobs("backup", SET_BY_ROLE, OF_ONE_JOB)
    job, for_all = spec["backup_jobs"]["options"], spec["backup_defaults"]["options"]
    assert job["src"]["type"] == "list" and "set_by_role" not in job["src"]
    assert job["delete"]["set_by_role"].startswith("is an option that a backup sets itself: ")
    assert job["delta"]["choices"] == ["auto", "none", "blocks", "rsync"]
    assert job.keys() - for_all.keys() == set(OF_ONE_JOB)


def test_the_variables_of_a_role_have_the_types_and_defaults_of_its_argument_spec() -> None:
    options = role_options("migrate", {"sync_max_passes": "3", "only": "a,b", "limits": {"x": 1}, "play_hosts": []})
    assert (options["sync_max_passes"], options["only"], options["limits"]) == (3, ["a", "b"], {"x": 1})
    assert options["phase"] == "sync" and "play_hosts" not in options
    assert role_options("migrate", {"allow_delete": True})["allow_delete"] == ["True"]
    with pytest.raises(Refusal, match="variables of the role migrate: .*sync_max_passes"):
        role_options("migrate", {"sync_max_passes": "x"})


def test_what_a_role_does_not_set_is_passed_on() -> None:
    job = {"name": "x", "timeout": 5, "delete": True, "bwlimit": None, "keep": {}}
    assert passed_on(job) == {"timeout": 5, "delete": True}
    assert passed_on(job, SET_BY_ROLE) == {"timeout": 5}


def test_a_backup_has_each_option_of_transfer_that_it_does_not_set() -> None:
    repository = {"host": "vault", "path": "/b"}
    given = dict.fromkeys(spec_of_transfer({}), "given")
    job = {
        **given,
        "name": "x",
        "host": "old",
        "src": "/a",
        "repository": repository,
        "keep": {"last": 1},
        "direction": "",
    }
    (run,) = make_runs([{**job, "bwlimit": "1"}], {"all": ["old", "vault"]})
    assert run["transfer"].keys() == {*(given.keys() - SET_BY_ROLE.keys()), "connect"}


def test_options_of_a_job_have_the_defaults_of_a_task_and_what_the_role_sets_counts() -> None:
    options = transfer_options(
        {**ENDS, "timeout": "5", "verify": "size", "keep": {}}, "job x", verify="none", sync=None
    )
    assert (options["timeout"], options["verify"], options["sync"], options["delta"]) == (5, "none", "none", "auto")
    with pytest.raises(Refusal, match="job x: .*mutually exclusive: port\\|port_range"):
        transfer_options({**ENDS, "port": 1, "port_range": "1-2"}, "job x")


def test_all_values_that_no_host_can_honour_are_found() -> None:
    found = find_transfer_problems({**ENDS, "streams": 99}, timeout=0)
    assert found == ["timeout is 0: give 1 or more", "streams is 99: give auto or a number from 1 to 64"]
    assert find_transfer_problems(ENDS) == []
    (problem,) = find_transfer_problems({**ENDS, "port": 1, "port_range": "1-2"})
    assert problem.startswith("options of its transfer: ")
