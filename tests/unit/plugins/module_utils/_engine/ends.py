# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run both ends of a transfer, each in a process of its own, as the jobs on two hosts would be.

As a program: ``ends.py REQUEST.json RESULT.json`` is one end. The serving end ends when its standard input does.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SECRET = "0123456789abcdef0123456789abcdef"
ID = os.urandom(8).hex()  # its own in each of the processes that run tests side by side
PACKAGE = "ansible_collections.longhaul.fleet.plugins.module_utils"
SUCCEEDED = "succeeded"  # a file in the folder of an end, as of a job: what is staged may go
ALL = ["owner", "group", "permissions", "times", "acls", "xattrs", "hardlinks", "devices", "sparse"]


def settings(method: str, **changes: Any) -> dict[str, Any]:
    """Return the settings of a plan with some values other than the defaults.

    What a request may lack is left to the parser.
    """
    parse_settings = importlib.import_module(f"{PACKAGE}._core.settings").parse_settings
    needed = {
        "id": ID,
        "method": method,
        "check": False,
        "rules": [],
        "delete": False,
        "checksum": False,
        "compress": {"algorithm": None, "level": None},
        "bwlimit": 0,
        "streams": changes.get("streams", 1),
        "preserve": ALL,
        "numeric_ids": True,
        "one_file_system": False,
        "partial": True,
        "link_dest": [],
        "timeout": 60,
        "rsync_opts": [],
        "ciphers": "",
        "changes_max": 1000,
        "tar": {"source": "gnu", "dest": "gnu"},
        "nc": {"source": "builtin", "dest": "builtin"},
        "scp_legacy_flag": True,
    }
    return {**parse_settings(needed), **changes}


class NotReady(Exception):
    """The serving end did not come up; the message is all that is known of it."""


class Pair:
    """Two ends of one transfer between two folders, on the loopback address."""

    def __init__(self, work: Path, source: Path, dest: Path, plan: dict[str, Any], serving: str = "dest") -> None:
        self.work, self.plan = work, plan
        self.roots = {"source": str(source), "dest": str(dest)}
        self.serving, self.driving = serving, "source" if serving == "dest" else "dest"
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.serve: dict[str, Any] = {"address": "127.0.0.1", "ports": [], "allow": []}
        self.secrets: dict[str, dict[str, str]] = {
            "serve": {"exchange": SECRET},
            "drive": {"exchange": SECRET},
        }
        self.peer: dict[str, Any] = {}
        self.env: dict[str, dict[str, str]] = {"source": {}, "dest": {}}
        self.pythons = {"source": sys.executable, "dest": sys.executable}
        self.engine = ""  # the archive that both ends run from; empty if that is the collection
        self.worth: int | None = None  # small files from which on other processes write; None: as many as always

    def use_ssh(self) -> None:
        """Let the ends meet over a private sshd, with keys made for it."""
        keys = self.work / "keys"
        if not keys.exists():
            keys.mkdir(parents=True)
            for name in ("host", "driver"):
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name)], check=True)
        gate = importlib.import_module(f"{PACKAGE}._methods.ssh.forced_command").__file__
        self.serve.update(
            ssh="private",
            public_key=" ".join((keys / "driver.pub").read_text().split()[:2]),
            allow=["127.0.0.0/8"],
            gate=[sys.executable, "-I", "-S", gate],
        )
        self.secrets["serve"] = {"host_key": (keys / "host").read_text()}
        self.secrets["drive"] = {"identity": (keys / "driver").read_text()}

    def use_tls(self) -> None:
        """Set certificates for both sides of a stream."""
        credentials = importlib.import_module(
            "ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.credentials"
        )
        made = {part: credentials.certificate(part) for part in ("serve", "drive")}
        for part, other in (("serve", "drive"), ("drive", "serve")):
            self.secrets[part].update(tls_key=made[part][0], tls_certificate=made[part][1], tls_peer=made[other][1])

    def start(self, side: str) -> None:
        """Start one end; the serving one first."""
        folder = self.work / f"job-{side}"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = "serve" if side == self.serving else "drive"
        request = {
            "side": side,
            "part": part,
            "root": self.roots[side],
            "settings": self.plan,
            "folder": str(folder),
            "serve": dict(self.serve),
            "peer": dict(self.peer),
            "secrets": self.secrets[part],
            "engine": self.engine,
            "worth": self.worth,
        }
        (folder / "request.json").write_text(json.dumps(request))
        result = folder / "result.json"
        for old in (result, folder / SUCCEEDED):
            old.unlink(missing_ok=True)
        with open(folder / "stderr", "w") as errors:
            self.processes[side] = subprocess.Popen(
                [self.pythons[side], __file__, str(folder / "request.json"), str(result)],
                stdin=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
                env={**os.environ, **self.env[side]},
            )
        if part == "serve":
            said = self._wait(side, result)
            if "ready" not in said:
                raise NotReady(said)
            self.peer.update(said["ready"])
            self.peer.setdefault("address", "127.0.0.1")
            result.unlink()

    def _wait(self, side: str, result: Path, seconds: float = 300) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while not result.exists():
            if self.processes[side].poll() is not None and not result.exists():
                return {"died": self.processes[side].returncode, "stderr": self.stderr(side)}
            if time.monotonic() > deadline:
                raise TimeoutError(self.stderr(side))
            time.sleep(0.01)
        return json.loads(result.read_text())

    def stderr(self, side: str) -> str:
        """What an end logged."""
        return (self.work / f"job-{side}" / "stderr").read_text()

    def progress(self, side: str) -> dict[str, Any]:
        """How far an end was when it ended; ``counted`` are the bytes as it counted them."""
        return json.loads((self.work / f"job-{side}" / "progress.json").read_text())

    @property
    def is_over(self) -> bool:
        """Whether the driving end has said what became of the transfer."""
        return (self.work / f"job-{self.driving}" / "result.json").exists()

    def finish(self) -> dict[str, Any]:
        """Wait for the driving end; gives its outcome (or ``failed``: why, or ``died``), and ends both."""
        try:
            outcome = self._wait(self.driving, self.work / f"job-{self.driving}" / "result.json")
            if outcome.get("errors_total") == 0 and not outcome["failure"]:
                (self.work / f"job-{self.serving}" / SUCCEEDED).touch()
            return outcome
        finally:
            self.stop()

    def kill(self, side: str) -> None:
        """SIGKILL everything that an end runs."""
        os.killpg(self.processes[side].pid, signal.SIGKILL)
        self.processes[side].wait()

    def stop(self) -> None:
        """End both."""
        for side in (self.driving, self.serving):
            process = self.processes.pop(side, None)
            if process is None:
                continue
            if process.poll() is None and process.stdin:
                process.stdin.close()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def run(self) -> dict[str, Any]:
        """Run the whole transfer."""
        self.start(self.serving)
        if not self.peer:
            raise AssertionError(self.stderr(self.serving))
        self.start(self.driving)
        return self.finish()


def _write(path: str, values: dict[str, Any]) -> None:
    with open(path + ".new", "w") as stream:
        json.dump(values, stream)
    os.replace(path + ".new", path)


def main(request_path: str, result_path: str) -> int:
    """Be one end."""
    with open(request_path) as stream:
        request = json.load(stream)
    package = PACKAGE
    if request["engine"]:
        sys.path.insert(0, request["engine"])
        package = "longhaul"
    context_module = importlib.import_module(f"{package}._core.context")
    errors = importlib.import_module(f"{package}._core.errors")
    open_staging = importlib.import_module(f"{package}._tree.staging").open_staging
    method = importlib.import_module(f"{package}._methods.registry").load(request["settings"]["method"])
    if request["worth"] is not None:
        importlib.import_module(f"{package}._engine.receiver.writer_pool").WORTH = request["worth"]
    context = context_module.Context(
        side=request["side"],
        part=request["part"],
        root=os.fsencode(request["root"]),
        settings=request["settings"],
        folder=request["folder"],
        peer=request["peer"],
        serve=request["serve"],
        secrets=request["secrets"],
    )
    with contextlib.suppress(OSError):  # as a job does: a source that is not there is the method's business
        context.root_fd = importlib.import_module(f"{package}._tree.held_root").open_held(context.root)
    writes = request["side"] == "dest" and not request["settings"]["check"]
    if writes:
        context.serve["leftover"] = open_staging(context).prepare()
    held = contextlib.ExitStack()
    if request["side"] == "dest":
        job = importlib.import_module(f"{package}._job.transfer_job")
        context.older_fds = job.hold_older(context.settings["link_dest"])
        importlib.import_module(f"{package}._tree.time_units").learn_file_systems(context)
        held.enter_context(job.hold_beside(context))
    succeeded = Path(request["folder"], SUCCEEDED)
    confinement = importlib.import_module(f"{package}._job.confine_job").confine_job(context)  # as a job does
    try:
        if request["part"] == "serve":
            server = method.serve(context)
            told = {"time_units": context.settings["time_units"], "mounts": context.settings["mounts"]}
            ready = {"confinement": confinement, **told, **server.ready}
            _write(result_path, {"ready": ready})
            sys.stdin.read()
            server.close()
        else:
            outcome = method.drive(context)
            outcome.confinement = confinement
            if not outcome.failure and not outcome.errors_total:
                succeeded.touch()
            _write(result_path, outcome.as_dict())
    except errors.TransferFailed as error:
        _write(result_path, {"failed": str(error)})
    finally:
        progress = {**context.progress.as_dict(), "counted": context.progress.bytes_done}
        _write(os.path.join(request["folder"], "progress.json"), progress)
        held.close()
        if writes:
            left = open_staging(context).settle(request["settings"]["partial"] and not succeeded.exists())
            context.log(left or "the staging folder is settled")
    return int(not succeeded.exists())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
