# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a worker that is interrupted says, and that it ends as it would have without that."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible import constants
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.interruption import (
    AdHocOptions,
    Interruption,
    find_ad_hoc_options,
)
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for

# The worker, with or without the standard error of its parent, which waits for it as ansible does.
PROGRAM = """
import os, signal, sys, time
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.interruption import Interruption
stdio, number, state = sys.argv[1], int(sys.argv[2]), sys.argv[3]
child = os.fork()
if not child:
    if stdio == "detached":
        os.setsid()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1), os.dup2(null, 2)
    try:
        with Interruption() as interruption:
            interruption.in_transfer("0123456789abcdef", "old -> new", ("old", "new"), certain=state == "certain")
            if state == "after":
                interruption.after_transfer("old -> new")
            if state == "nothing":
                interruption.words = ""
            if state == "twice":
                write = os.write
                def late(*given):
                    os.write = write
                    signal.raise_signal(signal.SIGTERM)
                    return write(*given)
                os.write = late
            if state == "followed":
                fork = os.fork
                def interrupted():
                    os.fork = fork
                    signal.raise_signal(signal.SIGTERM)
                    return fork()
                os.fork = interrupted
            os.kill(os.getpid(), number)
            time.sleep(60)
    except KeyboardInterrupt:
        os._exit(77)
    os._exit(0)
status = os.waitpid(child, 0)[1]
sys.stderr.write(sys.argv[4])
sys.stderr.flush()
print(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize("stdio", ["inherited", "detached"])
@pytest.mark.parametrize("number, code", [(signal.SIGINT, 77), (signal.SIGTERM, -signal.SIGTERM)])
@pytest.mark.parametrize(
    "state, words",
    [
        ("certain", ["0123456789abcdef goes on", "old,new", "state=cancelled", "run the same task again"]),
        ("starting", ["0123456789abcdef may go on", "old,new"]),
        ("after", ["after the transfer had ended", "compares both trees"]),
        ("nothing", []),
    ],
)
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="a detached worker finds its parent's terminal by /proc")
def test_words_and_end(stdio: str, number: signal.Signals, code: int, state: str, words: list[str]) -> None:
    ran = run_worker(stdio, number, state)
    assert ran.stdout == f"{code}\n"
    assert all(word in ran.stderr for word in words), ran.stderr
    assert bool(ran.stderr) is bool(words)


def test_a_second_signal_while_the_words_are_being_written() -> None:
    """Ansible sends SIGTERM as soon as it has sent SIGINT; seen in one of thirty interrupted runs."""
    ran = run_worker("inherited", signal.SIGINT, "twice")
    assert ran.stdout == f"{-signal.SIGTERM}\n" and ran.stderr.count("may go on") == 1, ran.stderr


@pytest.mark.parametrize("state", ["certain", "followed"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="cannot run here: there is no /proc")
def test_the_words_are_not_written_over(tmp_path: Path, number: signal.Signals, state: str) -> None:
    """As with ``ansible-playbook ... > log 2>&1``: what ansible says last goes to where it had stopped before."""
    last, log = "User interrupted execution\n" * 20, tmp_path / "log"
    with log.open("w") as stream:
        subprocess.run(
            [sys.executable, "-c", PROGRAM, "detached", str(int(number)), state, last],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL,
            stderr=stream,
            check=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    wait_for(lambda: "old,new" in log.read_text(), seconds=20)
    assert log.read_text().startswith(last) and log.read_text().count("on, on the hosts") == 1


def run_worker(stdio: str, number: signal.Signals, state: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, stdio, str(int(number)), state, ""],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # which a shell's background job ignores
    )


TASK = {"become": False, "become_user": None, "become_method": None, "remote_user": None}
GIVEN = {"inventory": constants.DEFAULT_HOST_LIST, "connection": constants.DEFAULT_TRANSPORT, "extra_vars": ()}


@pytest.mark.parametrize(
    ("given", "task", "hosts", "words"),
    [
        ({}, {}, [{}, {}], ""),
        ({"inventory": ["/etc/fleet/hosts", "a,b"]}, {}, [{}], "-i /etc/fleet/hosts -i a,b"),
        ({}, {"become": True}, [{}, {}], "-b"),
        (
            {},
            {"become": True, "become_user": "db", "become_method": "su"},
            [],
            "-b --become-user db --become-method su",
        ),
        ({}, {}, [{"ansible_become": "yes"}, {"ansible_become": True}], "-b"),
        ({}, {}, [{"ansible_become": True}, {}], ""),  # of the inventory, which counts anyway
        ({"subset": "new"}, {"remote_user": "ada"}, [{}], "-u ada"),  # a limit would leave out a host that is named
        (
            {"ssh_common_args": "-o ProxyJump=x", "private_key_file": "/k"},
            {},
            [{}],
            "--private-key /k --ssh-common-args '-o ProxyJump=x'",
        ),
        (
            {
                "vault_ids": ["dev@prompt"],
                "vault_password_files": ["/v"],
                "become_ask_pass": True,
                "ask_vault_pass": True,
            },
            {},
            [{}],
            "--vault-id dev@prompt --vault-password-file /v -K -J",
        ),
        (
            {"extra_vars": ("@/jobs.yml", "ansible_user=ada ansible_password=hunter2 x=1", '{"ansible_port": 22}')},
            {},
            [{}],
            """-e @/jobs.yml -e '{"ansible_user": "ada"}' -e '{"ansible_port": 22}'""",
        ),
        (
            {"extra_vars": ('{"ansible_ssh_private_key": "hunter2", "longhaul_x": {"y": [{"password": "hunter2"}]}}',)},
            {},
            [{}],
            "",
        ),
        ({"extra_vars": ("migrate_phase=cutover", "{", "[1]")}, {}, [{}], ""),
    ],
)
def test_a_command_that_is_told_reaches_the_hosts_as_the_task_did(
    given: dict[str, Any], task: dict[str, Any], hosts: list[dict[str, Any]], words: str
) -> None:
    found = find_ad_hoc_options({**GIVEN, **given}, SimpleNamespace(**{**TASK, **task}), hosts or [{}])
    assert shlex.join(found.words) == words
    assert found.lacks_secrets == ("hunter2" in str(given))


def test_variables_beside_the_playbook_are_read_by_the_command_too(tmp_path: Path) -> None:
    (tmp_path / "group_vars").mkdir()
    found = find_ad_hoc_options(GIVEN, SimpleNamespace(**TASK), [{}], str(tmp_path))
    assert found.words == ("--playbook-dir", str(tmp_path))
    interruption = Interruption()
    interruption.options = AdHocOptions(("-i", "/my hosts", "-b"), lacks_secrets=True)
    interruption.in_transfer("0123456789abcdef", "old -> new", ("old", "new"))
    assert interruption.words.endswith(
        "To stop it, with the extra variables that hold passwords: ansible old,new -i '/my hosts' -b "
        "-m longhaul.fleet.transfer_control -a 'id=0123456789abcdef state=cancelled'"
    )
