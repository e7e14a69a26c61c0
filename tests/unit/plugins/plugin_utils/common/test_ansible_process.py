# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Workers as Ansible makes them, whose ansible-playbook is killed before they look who their parent is."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ansible_collections.longhaul.fleet.plugins.plugin_utils.common import ansible_process
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for

PLAYBOOK = """\
import json, multiprocessing, os, sys, time
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common import ansible_process
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.ansible_process import end_orphan, is_gone

ansible_pid = ansible_process.ansible_pid

def work(folder):
    os.setsid()
    alive = [ansible_pid(), is_gone()]
    end_orphan()
    open(f"{folder}/begun", "x").close()
    while os.getppid() == alive[0]:
        time.sleep(0.01)
    with open(f"{folder}/part", "x") as file:
        json.dump([alive, [ansible_pid(), is_gone()]], file)
    os.rename(f"{folder}/part", f"{folder}/seen")
    end_orphan()
    open(f"{folder}/after", "x").close()

multiprocessing.get_context("fork").Process(target=work, args=sys.argv[1:]).start()
time.sleep(60)
"""


@contextlib.contextmanager
def killed_after(script: str, folder: Path) -> Iterator[int]:
    """Start a playbook whose worker says that it has begun, and kill it after the block; yield its number."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    playbook = subprocess.Popen([sys.executable, "-c", script, str(folder)], env=environment)
    try:
        wait_for((folder / "begun").exists, seconds=30)
        yield playbook.pid
    finally:
        playbook.send_signal(signal.SIGKILL)
        playbook.wait()


def test_a_worker_knows_that_ansible_playbook_was_killed_and_ends(tmp_path: Path) -> None:
    with killed_after(PLAYBOOK, tmp_path) as playbook:
        pass
    wait_for((tmp_path / "seen").exists, seconds=30)
    alive, orphaned = json.loads((tmp_path / "seen").read_text())
    assert alive == [playbook, False] and orphaned == [playbook, True]
    assert not (tmp_path / "after").exists()


BLOCKED = """\
import multiprocessing, os, sys, time
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common import ansible_process

def work(folder):
    os.setsid()
    ansible_process._LOOK_SECONDS = ansible_process._GRACE_SECONDS = 0.2
    ansible_process.watch_for_end()
    reader, writer = os.pipe()  # of which each worker has both ends
    with open(f"{folder}/part", "x") as file:
        file.write(str(os.getpid()))
    os.rename(f"{folder}/part", f"{folder}/begun")
    while True:
        os.write(writer, bytes(1 << 20))

multiprocessing.get_context("fork").Process(target=work, args=sys.argv[1:]).start()
time.sleep(60)
"""


def test_a_worker_that_waits_for_a_reader_ends_after_ansible_playbook_was_killed(tmp_path: Path) -> None:
    with killed_after(BLOCKED, tmp_path):
        worker = Path("/proc") / (tmp_path / "begun").read_text()
        time.sleep(1)  # longer than it would live as an orphan
        assert worker.exists()
    wait_for(lambda: not worker.exists() or "zombie" in (worker / "status").read_text(), seconds=30)


def test_what_is_no_worker_has_nobody_to_lose() -> None:
    if ansible_process.multiprocessing.parent_process() is None:
        assert ansible_process.ansible_pid() == os.getppid()
    assert not ansible_process.is_gone()
    ansible_process.end_orphan()
    ansible_process.watch_for_end()
