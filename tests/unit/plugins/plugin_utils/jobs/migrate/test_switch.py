# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A resumed switch runs each hook that has not run, and none twice, whatever became of the list in between."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.hooks import tell_hook
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.job_run import divide_hooks
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import (
    AFTER,
    MigrationState,
    parse_state,
)

DNS = {"host": "localhost", "command": ["set-dns", "new"]}
STOP = {"host": "source", "command": ["stop-old"]}
START = {"host": "dest", "name": "start", "command": ["start-new", "now"]}
LOGIN = {"host": "dest", "name": "log in", "tasks": "login.yml", "no_log": True}
SECOND_LOGIN = {"host": "dest", "name": "log in", "tasks": "second.yml"}
FRESH = {"name": "data", "identity": {"src_host": "old", "src": "/srv/", "dest_host": "new", "dest": "/srv"}}
HOSTS = {"source": "old", "dest": "new"}


def state(*ran: dict) -> MigrationState:
    told = [tell_hook(hook, AFTER, HOSTS.get(hook["host"], hook["host"])) for hook in ran]
    return parse_state({**FRESH, "switch": {"hooks": told}})


@pytest.mark.parametrize(
    "ran, hooks, left",
    [
        ([], [DNS, START], [DNS, START]),
        ([DNS], [DNS, START], [START]),
        ([DNS], [START], [START]),  # removed after it ran
        ([DNS], [STOP, DNS, START], [STOP, START]),  # put in front
        ([DNS, STOP], [START, STOP, DNS], [START]),  # in another order
        ([DNS], [DNS, DNS], [DNS]),  # wanted twice, and ran once
        ([DNS], [{**DNS, "host": "dest"}], [{**DNS, "host": "dest"}]),  # elsewhere it is another
        ([DNS], [{**DNS, "host": "old"}, {**DNS, "command": ["set-dns", "newer"]}], None),  # none of these ran
        ([START], [{**START, "command": ["start-new", "later"]}], []),  # known by its name
        ([LOGIN], [LOGIN, START], [START]),
        ([LOGIN], [{**LOGIN, "tasks": "changed.yml"}], []),
        ([SECOND_LOGIN], [LOGIN, SECOND_LOGIN], [LOGIN]),  # which of the same name it was is known by what it ran
        ([STOP], [{**STOP, "host": "old"}], []),  # the same host by its name
    ],
)
def test_what_is_left(ran, hooks, left):
    made = divide_hooks(state(*ran), hooks)
    assert made.left == (hooks if left is None else left)
    switch = state(*ran).switch
    assert switch and made.done == switch.hooks


def test_before_the_switch_all_are_left():
    assert divide_hooks(parse_state(FRESH), [DNS, START]) == ([], [DNS, START])


def test_what_an_older_version_counted_are_the_first():
    before = {**FRESH, "switch": {"done": False, "steps": 1}}
    made = divide_hooks(parse_state(before), [STOP, START])
    assert made.left == [START] and [one.name for one in made.done] == ["stop-old"]
    assert divide_hooks(state(STOP), [STOP, START]).left == [START]
