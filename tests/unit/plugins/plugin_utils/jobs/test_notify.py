# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hook is told of which event of a run, and what."""

from __future__ import annotations

import json

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.argument_spec import spec_of_role
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.failures import ReportedFailure
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.mistakes import check_by_spec
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.notify import (
    RunEvent,
    find_notify_problems,
    hooks_for,
    make_message,
    read_notify_hooks,
)

START, SUCCESS, FAILURE = RunEvent
SECRET = "f00ba5"
URL = f"https://me:{SECRET}@hc.example.com:8443/ping/{SECRET}"


@pytest.mark.parametrize(
    "written, urls",
    [
        ({"url": URL}, [f"{URL}/start", URL, f"{URL}/fail"]),
        ({"url": f"{URL}/"}, [f"{URL}/start", f"{URL}/", f"{URL}/fail"]),
        ({"url": f"{URL}?rid=1#x"}, [f"{URL}/start?rid=1#x", f"{URL}?rid=1#x", f"{URL}/fail?rid=1#x"]),
        ({"url": URL, "failure_url": "http://b/"}, [f"{URL}/start", URL, "http://b/"]),
        ({"failure_url": "http://b/"}, [None, None, "http://b/"]),
        ({"url": URL, "when": ["failure"]}, [None, None, f"{URL}/fail"]),
    ],
)
def test_each_event_has_its_url(written, urls):
    (hook,) = read_notify_hooks([written], "x_notify")
    assert [hook.urls[event] if hooks_for([hook], event) else None for event in RunEvent] == urls
    assert hook.timeout == 10.0 and hook.method == "POST"


def test_a_command_is_told_of_what_it_wants():
    first, second = read_notify_hooks([{"command": ["a"]}, {"command": ["b"], "when": ["start"], "timeout": 5}], "x")
    assert hooks_for([first, second], START) == [first, second] and hooks_for([first, second], SUCCESS) == [first]
    assert (first.timeout, second.timeout, second.command) == (60.0, 5.0, ("b",))


@pytest.mark.parametrize("role", ["migrate", "backup", "restore"])
@pytest.mark.parametrize(
    "when, events",
    [("failure", {FAILURE}), ("failure,start", {FAILURE, START}), (["success"], {SUCCESS})],
)
def test_events_may_be_a_text_that_the_specification_takes_for_a_list(role, when, events):
    name = f"{role}_notify"
    checked = check_by_spec({name: [{"url": URL, "when": when}]}, spec_of_role(role))
    problems = [*checked.problems, *find_notify_problems(checked.values[name], name)]
    (hook,) = read_notify_hooks(checked.values[name], name)
    assert (problems, hook.when) == ([], events)


@pytest.mark.parametrize(
    "written, problem",
    [
        ({}, "nothing to call"),
        ({"url": URL, "command": ["a"]}, "both a URL and a command"),
        ({"url": f"ftp://host/{SECRET}"}, "url is no http or https URL"),
        ({"url": SECRET}, "url is no http or https URL"),
        ({"url": URL, "start_url": f"https:///{SECRET}"}, "start_url is no http or https URL"),
        ({"failure_url": f"https://host:{SECRET}/"}, "failure_url is no http or https URL"),
        ({"url": f"{URL}\r\nX: y"}, "url is no http or https URL"),
        ({"url": f"http://[{SECRET}"}, "url is no http or https URL"),
        ({"command": f"curl {SECRET}"}, "command is one text"),
        ({"command": 5}, "command is one text"),
        ({"command": ["a"], "method": "GET"}, "method belongs to a URL"),
        ({"url": URL, "timeout": 0}, "timeout is 0"),
        ({"url": URL, "timeout": 1e9}, "timeout is 1e+09"),
    ],
)
def test_a_mistake_is_told_without_the_secret(written, problem):
    (found,) = find_notify_problems([{"url": URL}, written], "migrate_notify")
    assert found.startswith("migrate_notify[1]: ") and problem in found and SECRET not in found


@pytest.mark.parametrize("role", ["migrate", "backup", "restore"])
@pytest.mark.parametrize(
    "given",
    [
        URL,
        {"url": URL},
        [URL],
        [{"urls": URL}],
        [{"url": {"x": URL}}],
        [{URL: None}],
        [{f"url{URL}": 1}],
        [{"url": URL, "when": URL}],
        [{"method": URL}],
    ],
)
def test_a_mistake_that_the_specification_finds_shows_no_secret(role, given):
    name = f"{role}_notify"
    checked = check_by_spec({name: given}, spec_of_role(role))
    problems = [*checked.problems, *find_notify_problems(checked.values.get(name) or (), name)]
    assert problems and not any(SECRET in problem for problem in problems)


def test_nothing_that_shows_a_hook_shows_its_url():
    hooks = read_notify_hooks(
        [{"url": URL}, {"name": "pager\x1b", "failure_url": URL}, {"command": [SECRET]}], "x_notify"
    )
    assert [hook.shown for hook in hooks] == [
        "x_notify[0] (hc.example.com)", "pager\\x1b (hc.example.com)", "x_notify[2] (a command)",
    ]  # fmt: skip
    assert SECRET not in repr(hooks)


def test_the_texts_of_messages():
    failures = [ReportedFailure(f"job{n}", "stopped in phase seed", f"no\x1b space\n{'x' * 300}") for n in range(7)]
    jobs = [f"job{n}" for n in range(9)]
    assert make_message("migrate", START, "now", "me", jobs).text == "migrate: begun with 9 jobs (by me)"
    assert make_message("backup", SUCCESS, "now", "me", ["a"]).text == "backup: succeeded with 1 job (by me)"
    lines = make_message("migrate", FAILURE, "now", "me", jobs, failures).text.splitlines()
    assert lines[0] == "migrate: 7 of 9 jobs failed (by me)" and lines[-1] == "and 2 more" and len(lines) == 7
    assert lines[1].startswith("job0 stopped in phase seed: no\\x1b space xxx") and len(lines[1]) < 250


def test_the_report_of_a_message_is_harmless_json():
    failure = ReportedFailure("job", "failed", "no\x1b[2J space", "Make room")
    report = json.loads(make_message("backup", FAILURE, "now", "me", ["job"], [failure], summary={"a\x1b": 1}).report)
    assert report == {
        "role": "backup", "event": "failure", "at": "now", "by": "me", "jobs": ["job"], "summary": {"a\\x1b": 1},
        "failures": [{"name": "job", "what": "failed", "reason": "no\\x1b[2J space", "next": "Make room"}],
    }  # fmt: skip
