# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The callback in real terminals, with a task that says what a run would say."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.columns import cells
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.support.terminal import Terminal

# An action that drives nothing, and says how far that is.
ACTION = """
import time
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Progress
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.progress_file import ProgressWriter
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.console import Activity, ProgressPrinter
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import Status


class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        count = int(self._task.args["count"])
        def seeding(_name):
            return Activity("seed")

        teller = ProgressPrinter(Display().display, time.monotonic, count + 5, seeding, ProgressWriter())
        for step in range(4):
            running = {}
            for number in range(count):
                progress = Progress()
                progress.bytes_done, progress.bytes_total = step * 2**30, 2**33 + number * 2**20
                running[f"n{number:04}"] = Status("running", alive=True, progress=progress)
            teller.progress(running)
            Display().display(f"said between, {step}")
            time.sleep(1.1)
        teller.ended(False)
        teller.close()
        return {"changed": False}
"""
PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - name: Drive
      publish: {count: %d}
    - name: After it
      ansible.builtin.debug: {msg: the end}
"""


@pytest.fixture
def playbooks(tmp_path: Path) -> Playbooks:
    inventory = tmp_path / "inventory.ini"
    inventory.write_text("localhost ansible_connection=local\n")
    collections = next(Path(part) for part in sys.path if (Path(part) / "ansible_collections/longhaul/fleet").exists())
    return Playbooks(inventory, tmp_path, collections)


def start(playbooks: Playbooks, count: int, size: tuple[int, int], **more: str) -> Terminal:
    argv, folder = playbooks._prepare(PLAY % count, (), "localhost", {})
    (folder / "action_plugins").mkdir()
    (folder / "action_plugins/publish.py").write_text(ACTION)
    environment = {
        **playbooks.environment(),
        "ANSIBLE_CALLBACKS_ENABLED": "longhaul.fleet.progress",
        "LONGHAUL_PROGRESS_INTERVAL": "0.2",
        "TERM": "xterm",
        **more,
    }
    for name in ("COLUMNS", "LINES"):  # which pytest-xdist sets, and which win over the size of the window
        environment.pop(name, None)
    return Terminal(argv, environment, size)


def drawings(output: str) -> list[list[str]]:
    """Return the live lines of each drawing, without what moves the cursor and what Ansible printed."""
    parts = re.split(r"\x1b\[2K", output)
    texts = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", part).splitlines() for part in parts]
    return [[line for line in text if re.match(r"n\d|\.\.\. and|\d+ of ", line)] for text in texts]


@pytest.mark.parametrize(("count", "width"), [(1, 80), (12, 200), (1000, 80), *rarely((1, 200), (12, 80), (1000, 200))])
def test_live_lines_in_a_terminal(playbooks: Playbooks, count: int, width: int) -> None:
    pytest.importorskip("rich", reason="cannot run here: rich is missing")
    with start(playbooks, count, (width, 30)) as terminal:
        assert terminal.wait() == 0, terminal.output
    drawn = [lines for lines in drawings(terminal.output) if lines]
    assert len(drawn) > 3, terminal.output
    last = max(drawn, key=len)
    assert max(cells(line) for lines in drawn for line in lines) <= width
    assert sum(line.startswith("n0") for line in last) == (27 if count == 1000 else count) and len(last) < 30
    assert last[-1].startswith("0 of ") and any("... and 973 more run" in line for line in last) is (count == 1000)
    # What Ansible prints meanwhile is whole, the lines are gone afterwards, and the cursor is there.
    assert all(f"said between, {step}" in terminal.output for step in range(4))
    assert not drawings(terminal.output)[-1] and "the end" in terminal.output
    assert "\x1b[?25l" not in terminal.output.rpartition("\x1b[?25h")[2]


def test_plain_lines_without_a_terminal_to_draw_in(playbooks: Playbooks) -> None:
    with start(playbooks, 12, (80, 30), TERM="dumb") as terminal:
        assert terminal.wait() == 0, terminal.output
    assert "\x1b" not in terminal.output and "the end" in terminal.output
