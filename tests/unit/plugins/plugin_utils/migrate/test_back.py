# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs turned round, and those that cannot be."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.advice import advice
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.back import find_back, turn_round
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.job_problems import find_problems
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.stages import is_back
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.store import fresh_state

JOB = {"name": "data", "src_host": "old", "src": "/srv/data/", "dest_host": "new", "dest": "/srv/new"}


def state(switch=None, **changes):
    return {**fresh_state({**JOB, **changes}), "switch": {"done": True, "at": "then"} if switch is None else switch}


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
        ({}, [state(switch={})], "job data: it was not switched over"),
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
    begun = state(switch={"done": False, "steps": 0})
    assert len(find_back(jobs, ["data"], {}, [begun]).jobs) == 1


def test_the_advice_for_a_job_that_goes_back_names_the_folder():
    made = {**fresh_state(turn_round(JOB)), "phases": {"seed": {}, "sync": {}}}
    assert is_back(made) and not is_back(state())
    assert "old:/srv/data.from-new" in advice(made) and "migrate_phase=cutover" not in advice(made)
    assert "run the same command again" in advice({**made, "failure": {"phase": "seed", "reason": "no space"}})
