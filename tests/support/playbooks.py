# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Running ansible-playbook from a test, to its end or beside the test."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .prepared_ansible import Forked, Prepared
from .terminal import Terminal

SUPPORT = Path(__file__).parent


class TaskResult(NamedTuple):
    """What one task gave on one host; ``status`` is ok, failed, ignored, skipped or unreachable."""

    status: str
    task: str
    host: str
    result: dict[str, Any]


class Run(NamedTuple):
    """A playbook that has ended."""

    rc: int
    output: str  # what a person sees: stdout and stderr together
    results: list[TaskResult]

    def result(self, task: str, host: str | None = None) -> dict[str, Any]:
        """Return the result of the task of that name (on that host); of several the last."""
        found = [one.result for one in self.results if one.task == task and host in (None, one.host)]
        assert found, f"no task {task!r} on {host or 'any host'} in:\n{self.output}"
        return found[-1]

    def said_of(self, task: str) -> str:
        """Return what was printed about the tasks of that name."""
        _before, *parts = re.split(r"^TASK \[(.+)\] \**$", self.output, flags=re.MULTILINE)
        return "".join(text for name, text in zip(parts[::2], parts[1::2]) if name == task)

    @property
    def failures(self) -> list[str]:
        """The messages of all failures that were not ignored, with what their tasks showed before them."""
        failed = [one for one in self.results if one.status in ("failed", "unreachable")]
        return [self._shown_before(str(one.result.get("msg", one.result))) for one in failed]

    def _shown_before(self, message: str) -> str:
        """Return a message with the lines that it says are above it."""
        if "listed above" not in message:
            return message
        task = next(one for one in self.output.split("\nTASK [") if message in one)
        return re.split(r"^(?:\[ERROR\]|fatal): ", task, maxsplit=1, flags=re.MULTILINE)[0] + message

    def expect_success(self) -> Run:
        """Return the run itself, if nothing failed."""
        assert self.rc == 0, f"ansible-playbook ended with {self.rc}:\n{self.output}"
        return self


class Running:
    """A playbook that runs beside the test."""

    def __init__(
        self, argv: list[str], environment: Mapping[str, str], folder: Path, prepared: Prepared | None = None
    ) -> None:
        self.record, self.log = folder / "record.jsonl", folder / "output.log"
        self._opened = self.log.open("wb")
        environment = {**environment, "LONGHAUL_TEST_RECORD": str(self.record)}
        forked = prepared.start(argv, environment, self._opened.fileno()) if prepared else None
        self.process: Forked | subprocess.Popen[bytes] = forked or subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._opened,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def output(self) -> str:
        """What it has said so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to ansible-playbook and all that it started on the machine."""
        os.killpg(self.process.pid, number)

    def wait(self, timeout: float = 240) -> Run:
        """Wait for the end; where it does not come in time, kill it and raise."""
        try:
            rc = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            self.process.wait()
            raise AssertionError(f"the playbook did not end within {timeout} s:\n{self.output}") from None
        finally:
            self._opened.close()
        lines = self.record.read_text(encoding="utf-8").splitlines() if self.record.exists() else []
        return Run(rc, self.output, [TaskResult(**json.loads(line)) for line in lines])


class Playbooks:
    """Runs playbooks against one inventory, with nothing of the user's own Ansible configuration.

    ``folder`` takes what they write, one numbered folder a run. ``collections`` is the folder with
    ``ansible_collections`` in it. ``prepared`` is a process that has imported Ansible; None: each run imports it.
    """

    def __init__(self, inventory: Path, folder: Path, collections: Path, prepared: Prepared | None = None) -> None:
        self.inventory, self.folder, self.collections = inventory, folder, collections
        self.prepared = prepared
        self.programs = Path(sys.executable).parent  # of the ansible-core that runs
        self._runs = 0
        self._started: list[Running] = []
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ansible.cfg").touch()

    def start(
        self, playbook: str | list[dict[str, Any]], *options: str, hosts: str = "all", **variables: Any
    ) -> Running:
        """Start a playbook: a name (``longhaul.fleet.migrate``) or path, YAML text, a list of plays, or of tasks.

        Tasks run on ``hosts`` in a play without fact gathering. ``options`` go to ansible-playbook as they are
        (``--check``); ``variables`` become extra variables.
        """
        argv, folder = self._prepare(playbook, options, hosts, variables)
        self._started.append(Running(argv, self.environment(), folder, self.prepared))
        return self._started[-1]

    def terminal(self, playbook: list[dict[str, Any]], *options: str, hosts: str = "all") -> Terminal:
        """Start a playbook in a terminal; see ``start``."""
        return self._in_terminal(self._prepare(playbook, options, hosts, {}))

    def live(self, playbook: str, **variables: Any) -> Terminal:
        """Start a playbook in a window of 80 by 24, where the callback longhaul.fleet.progress shows it."""
        shown = {"ANSIBLE_CALLBACKS_ENABLED": "record,longhaul.fleet.progress", "TERM": "xterm"}
        return self._in_terminal(self._prepare(playbook, (), "all", variables), (80, 24), **shown)

    def _in_terminal(
        self, prepared: tuple[list[str], Path], size: tuple[int, int] | None = None, **environment: str
    ) -> Terminal:
        argv, folder = prepared
        recorded = {"LONGHAUL_TEST_RECORD": str(folder / "record.jsonl")}
        return Terminal(argv, {**self.environment(), **recorded, **environment}, size)

    def _prepare(
        self, playbook: str | list[dict[str, Any]], options: tuple[str, ...], hosts: str, variables: dict[str, Any]
    ) -> tuple[list[str], Path]:
        """Write the files of a run; give its arguments and its folder."""
        self._runs += 1
        folder = self.folder / f"run-{self._runs}"
        folder.mkdir(parents=True)
        if isinstance(playbook, list):
            is_play = all("hosts" in one or "import_playbook" in one for one in playbook)
            plays = playbook if is_play else [{"hosts": hosts, "gather_facts": False, "tasks": playbook}]
            playbook = json.dumps(plays, indent=2)
        if playbook.lstrip().startswith(("-", "[", "#")):
            (folder / "playbook.yml").write_text(playbook, encoding="utf-8")
            playbook = str(folder / "playbook.yml")
        (folder / "vars.json").write_text(json.dumps(variables), encoding="utf-8")
        program = str(self.programs / "ansible-playbook")
        return [program, "-i", str(self.inventory), "-e", f"@{folder / 'vars.json'}", *options, playbook], folder

    def end(self) -> None:
        """Kill what a failed test left running."""
        for running in self._started:
            if running.process.poll() is None:
                running.kill()
                running.process.wait()

    def run(self, playbook: str | list[dict[str, Any]], *options: str, timeout: float = 240, **more: Any) -> Run:
        """Run a playbook to its end; see ``start``."""
        return self.start(playbook, *options, **more).wait(timeout)

    def environment(self) -> dict[str, str]:
        """Return the environment in which ansible runs."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        return {
            **kept,
            "ANSIBLE_CONFIG": str(self.folder / "ansible.cfg"),
            "ANSIBLE_HOME": str(self.folder / "ansible-home"),
            "ANSIBLE_COLLECTIONS_PATH": str(self.collections),
            "ANSIBLE_CALLBACK_PLUGINS": str(SUPPORT / "callback_plugins"),
            "ANSIBLE_CALLBACKS_ENABLED": "record",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_FORCE_COLOR": "0",
            "ANSIBLE_DEPRECATION_WARNINGS": "1",
            "PYTHONUNBUFFERED": "1",
            "LC_ALL": "C.UTF-8",
        }
