# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who may work on a job: living processes keep others away, dead ones leave their token."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.claims import (
    AlreadyClaimed,
    claim,
    process_of,
    release,
)

DOING = "making this backup"


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "state/web1/data.json")


@pytest.fixture
def other():
    """Yield a living process that is not this one."""
    running = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield running
    running.kill()
    running.communicate()


def test_each_run_has_a_token_of_its_own(path):
    mine = process_of(os.getpid())
    first = claim(path, mine, DOING)
    release(path, mine)
    second = claim(path, mine, DOING)
    assert first.run and first.ended_run == ""
    assert second.run != first.run and second.ended_run == first.run


def test_a_living_run_keeps_others_away(path, other):
    first = claim(path, process_of(other.pid), DOING)
    with pytest.raises(AlreadyClaimed, match=rf"process {other.pid}.*Wait for it to end"):
        claim(path, process_of(os.getpid()), DOING)
    release(path, process_of(os.getpid()))  # not its own
    with pytest.raises(AlreadyClaimed):
        claim(path, process_of(os.getpid()), DOING, write=False)
    other.kill()
    other.wait()
    assert claim(path, process_of(os.getpid()), DOING).ended_run == first.run


def test_a_run_that_was_killed_and_not_collected_yet_is_dead(path, other):
    first = claim(path, process_of(other.pid), DOING)
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    assert claim(path, process_of(os.getpid()), DOING).ended_run == first.run


def test_another_process_with_the_same_number_is_not_the_run(path, other):
    process = process_of(other.pid)
    first = claim(path, process._replace(started="1"), DOING)
    assert claim(path, process_of(os.getpid()), DOING).ended_run == first.run


def test_nothing_is_known_of_a_run_on_another_node(path, other):
    claim(path, process_of(other.pid)._replace(node="elsewhere"), DOING)
    assert claim(path, process_of(os.getpid()), DOING).ended_run == ""


def test_check_mode_writes_nothing(path):
    assert claim(path, process_of(os.getpid()), DOING, write=False).run
    assert not os.path.exists(os.path.dirname(path))


def test_what_an_earlier_version_wrote_is_read(path):
    mine = process_of(os.getpid())
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"run": "a-run", "process": {"node": mine.node, "pid": mine.pid, "started": "1"}}, file)
    made = claim(path, mine, DOING)
    assert made.ended_run == "a-run"
    with open(path, encoding="utf-8") as file:
        assert json.load(file) == {"run": made.run, "process": mine._asdict()}


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"run": "x", "process": {"pid": "7"}}'])
def test_a_file_that_a_crash_left_is_written_anew(path, text):
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    made = claim(path, process_of(os.getpid()), DOING)
    with open(path, encoding="utf-8") as file:
        assert json.load(file)["run"] == made.run and made.ended_run == ""
