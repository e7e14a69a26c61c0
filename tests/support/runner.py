# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ansible-runner as AWX and execution environments use it: an empty home, and an inventory that cannot be written."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

# Mounts a folder over itself, read-only, for the command alone: root could write whatever the permissions say.
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
RUNNER = str(Path(sys.executable).with_name("ansible-runner"))


class Ended(NamedTuple):
    """A run that has ended."""

    rc: int
    output: str
    artifacts: Path

    @property
    def stats(self) -> dict[str, Any]:
        """What the playbook published by set_stats, as ansible-runner and so AWX find it."""
        events = [json.loads(path.read_text()) for path in (self.artifacts / "job_events").glob("*.json")]
        (last,) = (one for one in events if one["event"] == "playbook_on_stats")
        found: dict[str, Any] = last["event_data"].get("artifact_data", {})
        return found

    def expect_success(self) -> Ended:
        """Return the run itself, if nothing failed."""
        assert self.rc == 0, f"ansible-runner ended with {self.rc}:\n{self.output}"
        return self


class PrivateData:
    """A private data folder of ansible-runner, with an empty home beside it."""

    def __init__(self, folder: Path, inventory: Path, collections: Path) -> None:
        """Take an empty folder for it, the inventory, and the folder with ``ansible_collections``."""
        self.folder, self._collections = folder, collections
        self.home = folder.with_name(f"{folder.name}-home")
        for name in ("inventory", "env", "project"):
            (folder / name).mkdir(parents=True)
        self.home.mkdir()
        shutil.copy(inventory, folder / "inventory/hosts.yml")
        self._runs = 0
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, playbook: str, *cmdline: str, **variables: Any) -> tuple[subprocess.Popen[bytes], str]:
        """Start ``ansible-runner run`` in a session of its own; return it and the name of its artifacts."""
        ident = self._prepare(cmdline, variables)
        argv = [RUNNER, "run", str(self.folder), "-p", playbook, "--ident", ident]
        with (self.folder / f"{ident}.log").open("wb") as log:
            process = subprocess.Popen(
                self._read_only(argv), env=self._environment(), stdout=log, stderr=log, start_new_session=True
            )
        self._running.append(process)
        return process, ident

    def run(self, playbook: str, *cmdline: str, **variables: Any) -> Ended:
        """Run a playbook by ``ansible-runner run`` to its end."""
        process, ident = self.start(playbook, *cmdline, **variables)
        return Ended(process.wait(240), (self.folder / f"{ident}.log").read_text(), self.folder / "artifacts" / ident)

    def carry(self, playbook: str, worker: Path, *cmdline: str, **variables: Any) -> Ended:
        """Run it by ``transmit | worker | process``, as a controller and an execution node do.

        ``worker`` is the private data folder of the execution node.
        """
        ident = self._prepare(cmdline, variables)
        packed, done = self.folder / f"{ident}.transmitted", self.folder / f"{ident}.worked"
        environment = self._environment()
        for argv, source, target in (
            ([RUNNER, "transmit", str(self.folder), "-p", playbook, "--ident", ident], None, packed),
            ([RUNNER, "worker", "--private-data-dir", str(worker)], packed, done),
        ):
            with open(source or os.devnull, "rb") as stdin, target.open("wb") as stdout:
                ended = subprocess.run(argv, env=environment, stdin=stdin, stdout=stdout, check=False, timeout=240)
                assert argv[1] == "worker" or not ended.returncode, argv  # that of a worker is that of the playbook
        with done.open("rb") as stdin:
            argv = [RUNNER, "process", str(self.folder), "--ident", ident]
            shown = subprocess.run(argv, env=environment, stdin=stdin, capture_output=True, text=True, check=False)
        artifacts = self.folder / "artifacts" / ident
        return Ended(int((artifacts / "rc").read_text()), shown.stdout + shown.stderr, artifacts)

    def end(self) -> None:
        """Kill what a failed test left running."""
        for process in self._running:
            if process.poll() is None:
                kill(process)

    def _prepare(self, cmdline: tuple[str, ...], variables: Mapping[str, Any]) -> str:
        (self.folder / "env/extravars").write_text(json.dumps(variables))
        (self.folder / "env/cmdline").write_text(" ".join(cmdline))
        self._runs += 1
        return f"run{self._runs}"

    def _read_only(self, argv: list[str]) -> list[str]:
        unshare = ["unshare", "--mount", "--propagation", "private", "sh", "-c", READ_ONLY]
        return [*unshare, str(self.folder / "inventory"), *argv]

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        collections = {"ANSIBLE_COLLECTIONS_PATH": str(self._collections)}
        return {
            **kept,
            **collections,
            "HOME": str(self.home),
            "PATH": path,
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_NOCOLOR": "1",
        }


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill an ansible-runner and the ansible-playbook that it started, which has a session of its own."""
    for pid in [process.pid, *_descendants(process.pid)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for path in Path("/proc").glob(f"{pid}/task/*/children"):
        for child in map(int, path.read_text().split()):
            found += [child, *_descendants(child)]
    return found
