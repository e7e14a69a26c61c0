# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ansible-playbook is interrupted, or killed, during a transfer: the transfer goes on, and the user is told."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support import compare
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

SLOW = "16mbit"  # 48 seconds
MOVE: dict[str, Any] = {
    "name": "Move",
    "longhaul.fleet.transfer": {"src_host": "alpha", "src": "/data/src/", "dest": "/data/dest", "encryption": "none"},
}


@pytest.fixture(autouse=True)
def heard(playbooks: Playbooks) -> Iterator[None]:
    """Let programs of these tests hear SIGINT, which what a shell starts with ``&`` ignores, its children included.

    Each is a start of its own: how a program ends on a signal is what is tested.
    """
    playbooks.prepared = None
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def expect_told(said: str, playbooks: Playbooks) -> str:
    """Expect the words in what the user saw, and a command that does what it says; gives the name of the transfer."""
    words = " ".join(said.split())
    told = re.search(r"alpha -> beta: interrupted. Transfer (\w{16}) goes on, on the hosts, without Ansible", words)
    assert told, said
    stop = (
        rf"ansible alpha,beta -i \S+ -e @\S+ -m longhaul.fleet.transfer_control -a 'id={told.group(1)} state=cancelled'"
    )
    found = re.search(stop, words)
    assert "run the same task again" in words and found, said
    pasted = shlex.split(found.group().replace("cancelled", "running"))
    program = str(Path(sys.executable).with_name(pasted[0]))
    ran = subprocess.run(
        [program, *pasted[1:]], env=playbooks.environment(), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0 and told.group(1) in ran.stdout, ran.stdout + ran.stderr
    return told.group(1)


def expect_attached(hosts: Testbed, playbooks: Playbooks) -> None:
    """Expect that the transfer runs, and that the next run of the task finds it."""
    assert any("engine.pyz job" in " ".join(one.argv) for one in hosts.processes("alpha"))
    running = playbooks.start([MOVE], hosts="beta")
    wait_for(lambda: "attached to the running transfer" in running.output)
    hosts.shape("alpha", None)
    assert running.wait().expect_success().result("Move")["attached"]
    assert compare.differences(hosts.root("alpha") / "data/src", hosts.root("beta") / "data/dest") == []


def slow_tree(hosts: Testbed) -> None:
    make_big_files(hosts.root("alpha") / "data/src", 96 << 20, count=3)
    hosts.shape("alpha", SLOW)


def test_control_c_in_a_terminal(hosts: Testbed, playbooks: Playbooks) -> None:
    slow_tree(hosts)
    with playbooks.terminal([MOVE], hosts="beta") as terminal:
        terminal.wait_for(" MiB")  # the first line of progress
        terminal.wait_for("\n")
        for _time in range(4):  # Ansible may swallow one, and a person would then type another
            terminal.type("\x03")
            with contextlib.suppress(AssertionError):
                wait_for(lambda: "interrupted. Transfer" in terminal.output, seconds=20)
                break
        wait_for(lambda: terminal.process.poll() is not None, seconds=30)
        assert terminal.wait() != 0
        said = terminal.output
    identity = expect_told(said, playbooks)
    show = {"name": "Show", "longhaul.fleet.transfer_info": {"transfer_id": identity}}
    assert playbooks.run([show], hosts="alpha").result("Show")["transfers"][0]["state"] == "running"
    expect_attached(hosts, playbooks)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, *rarely(signal.SIGINT, signal.SIGKILL)])
def test_a_signal_without_a_terminal(hosts: Testbed, playbooks: Playbooks, number: signal.Signals) -> None:
    """As in a pipeline of a build server, whose errors go to a file."""
    slow_tree(hosts)
    running = playbooks.start([MOVE], hosts="beta")
    wait_for(lambda: " MiB" in running.output)
    os.kill(running.process.pid, number)  # it alone, not what it started
    wait_for(lambda: "interrupted. Transfer" in running.output, seconds=60)
    running.process.wait(30)
    expect_told(running.output, playbooks)
    expect_attached(hosts, playbooks)
