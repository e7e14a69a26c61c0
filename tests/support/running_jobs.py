# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Both ends of a transfer as real jobs of this host, and the module transfer_control as Ansible runs it there."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

from ansible_collections.longhaul.fleet.plugins.module_utils._job import launcher
from ansible_collections.longhaul.fleet.plugins.module_utils._job.state import JobFolder
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.engine import pack_engine
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import SECRET, settings

MODULES = Path(__file__).resolve().parents[2] / "plugins/modules"
_VERSION = functools.partial(subprocess.run, ["rsync", "--version"], capture_output=True, text=True, check=True)


def run_module(name: str, check: bool = False, **arguments: Any) -> dict[str, Any]:
    """Run a module of the collection in a process of its own; return its result."""
    with tempfile.TemporaryDirectory() as folder:
        given = {**arguments, "_ansible_check_mode": check, "_ansible_remote_tmp": folder}
        ran = subprocess.run(
            [
                sys.executable,
                "-c",
                f"import runpy; runpy.run_path({str(MODULES / name)!r} + '.py', run_name='__main__')",
            ],
            input=json.dumps({"ANSIBLE_MODULE_ARGS": given}),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.stdout, ran.stderr
    result = json.loads(ran.stdout)
    assert isinstance(result, dict)
    return result


class RunningJobs:
    """A transfer between two folders, with an id of its own."""

    def __init__(
        self, work: Path, source: Path, dest: Path, method: str, serving: str = "dest", **changes: Any
    ) -> None:
        self.id = os.urandom(8).hex()
        self.roots = {"source": source, "dest": dest}
        self.serving, self.driving = serving, "source" if serving == "dest" else "dest"
        self.folders = {side: JobFolder(self.id, side) for side in self.roots}
        self._work = work
        dotted = [int(part) for part in _VERSION().stdout.split()[2].split(".")]
        self.settings = settings(method, id=self.id, rsync={"source": dotted, "dest": dotted}, **changes)
        self.engine = work / "engine.pyz"
        if not self.engine.exists():
            self.engine.write_bytes(pack_engine())

    def _credentials(self) -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
        serve: dict[str, Any] = {"address": "127.0.0.1", "ports": [0], "allow": ["127.0.0.1"]}
        method = self.settings["method"]
        if method in ("stream", "tar_nc"):
            serve["ports"] = []
            return serve, {part: {"exchange": SECRET} for part in ("serve", "drive")}
        if method == "rsyncd":
            return serve, {part: {"daemon": SECRET} for part in ("serve", "drive")}
        keys = self._work / "keys"
        keys.mkdir(exist_ok=True)
        for name in ("host", "driver"):
            if not (keys / name).exists():
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name)], check=True)
        serve.update(ssh="private", public_key=" ".join((keys / "driver.pub").read_text().split()[:2]))
        secrets = {
            "serve": {"host_key": (keys / "host").read_text()},
            "drive": {"identity": (keys / "driver").read_text()},
        }
        return serve, secrets

    def _start(self, side: str, part: str, until: str, more: dict[str, Any], secrets: dict[str, str]) -> dict[str, Any]:
        request = {
            "side": side,
            "part": part,
            "root": str(self.roots[side]),
            "settings": self.settings,
            "peer_name": "peer",
            "fingerprint": "0",
            **more,
        }
        return dict(launcher.start(self.folders[side], str(self.engine), "job", request, secrets, (until,), 30.0))

    def start(self) -> None:
        """Start both ends."""
        serve, secrets = self._credentials()
        ready = self._start(self.serving, "serve", "serving", {"serve": serve}, secrets["serve"])
        assert ready["state"] == "serving", ready
        peer = {"address": "127.0.0.1", **ready["ready"]}
        driver = self._start(self.driving, "drive", "running", {"peer": peer}, secrets["drive"])
        assert driver["alive"], driver

    def status(self, side: str) -> dict[str, Any]:
        """Return what an end last said."""
        return dict(self.folders[side].status)

    def control(self, check: bool = False, **arguments: Any) -> dict[str, Any]:
        """Run the module, which finds both ends on this host; with ``side`` only that one is told."""
        return run_module("transfer_control", check, **{"id": [self.id], **arguments})

    def wait(self, side: str = "", seconds: float = 120) -> dict[str, Any]:
        """Wait for the end of a side, the driving one if none is named; return its last status."""
        return dict(launcher.watch(self.folders[side or self.driving], (), seconds))

    def log(self) -> str:
        """Return what both ends logged."""
        return "\n".join(f"{side}: {folder.log_tail()}" for side, folder in self.folders.items())

    def stop(self) -> None:
        """End both, and remove what they left in the state folder."""
        for side in (self.driving, self.serving):
            launcher.stop(self.folders[side], succeeded=False)
            with contextlib.suppress(Exception):
                self.folders[side].remove()


def arrived(dest: Path) -> int:
    """Return how many bytes are below a folder, whatever they are called."""
    total = 0
    for folder, _names, files in os.walk(dest):
        for name in files:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return total


def rate_over(count: Callable[[], int], seconds: float) -> float:
    """Return by how many bytes a second something grows."""
    before, began = count(), time.monotonic()
    time.sleep(seconds)
    return (count() - before) / (time.monotonic() - began)
