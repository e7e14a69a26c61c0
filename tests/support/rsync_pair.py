# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two ends of a transfer on one machine, for the tests of the rsync methods.

The remote shell of ``over_shell`` is a script that lets the serving end's own handler decide and then runs what it
allows: everything but the network is real. ``over_daemon`` starts the real daemon.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Iterator

from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync import method as rsync
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync import passes as rsync_passes
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync import server_command
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.argv import FAR_LIST, Far
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.confinement import (
    CHROOT,
    RootConfinement,
    decide_confinement,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.leftover import adopt
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.run import RsyncPeer
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.shards import (
    Lists,
    decode_lists,
    divide,
    encode_lists,
    list_source,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsyncd import method as rsyncd
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.ssh import forced_command
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.staging import Staging, open_staging

ID = f"{os.urandom(8).hex()[:-1]}f"  # its own in each of the processes that run tests side by side
ALL = ["owner", "group", "permissions", "times", "acls", "xattrs", "hardlinks", "devices", "sparse"]
_SAID = subprocess.run(["rsync", "--version"], stdout=subprocess.PIPE, check=True).stdout
VERSION = [int(part) for part in _SAID.split()[2].decode().split(".")]

_SHELL = """\
import os, sys
sys.path[:0] = {path!r}
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._core.subprocesses import environment
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.confinement import RootConfinement
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.method import rsync_handler
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.ssh.service import Service
context = Context({side!r}, "serve", {root!r}, {settings!r}, {folder!r})
work = rsync_handler(context, RootConfinement({confined!r}))(" ".join(sys.argv[2:]), {adopting!r})
if not isinstance(work, Service):
    sys.exit(work(0, 1))
for fd in work.keeps:
    os.set_inheritable(fd, True)
os.chdir(work.cwd)
if {uid!r} is not None:
    os.setgroups([])
    os.setgid({uid!r})
    os.setuid({uid!r})
os.execvpe(work.argv[0], work.argv, environment(work.extra_environment))
"""


def settings(**changes: Any) -> dict[str, Any]:
    """Return a plan with every default."""
    plan: dict[str, Any] = {
        "id": ID,
        "method": "rsync",
        "trust": "full",
        "check": False,
        "rules": [],
        "only": None,
        "delete": False,
        "max_delete": None,
        "checksum": False,
        "inplace": False,
        "delta": "auto",
        "compress": {"algorithm": None, "level": None},
        "bwlimit": 0,
        "streams": 1,
        "congestion": "none",
        "congestion_first": "",
        "preserve": ALL,
        "numeric_ids": True,
        "owner_map": {},
        "one_file_system": False,
        "partial": True,
        "link_dest": [],
        "link_dest_exclude": [],
        "timeout": 30,
        "rsync_opts": [],
        "ciphers": "",
        "changes_max": 1000,
        "rsync": {"source": VERSION, "dest": VERSION},
        "time_units": {},
        "mounts": [],
    }
    assert set(changes) - {"rsyncd_module"} <= set(plan)
    plan.update(changes)
    streams = plan["streams"]
    return {"streams_max": streams, "streams_first": streams, **plan}


class Pair:
    """A source and a destination folder with a job folder each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source, self.dest = folder / "source", folder / "dest"
        for path in (self.source, self.dest, folder / "job-source", folder / "job-dest"):
            path.mkdir()
        self._open: list[Staging] = []
        self.leftover = False
        self.far_uid: int | None = None  # the user that the serving rsync runs as
        self.through: Callable[[int], int] = lambda port: port  # the port to which the driving end of rsyncd connects
        self.stop_after = 0.0  # seconds until the driving end is told to stop; 0: never

    def context(self, side: str, part: str, plan: dict[str, Any]) -> Context:
        root = self.source if side == "source" else self.dest
        made = Context(
            side=side,
            part=part,
            root=os.fsencode(root),
            settings=plan,
            folder=str(self.folder / f"job-{side}"),
            serve={"leftover": self.leftover if side == "dest" else False},
            log=lambda _text: None,
        )
        if (self.dest / f".longhaul-{ID}").is_dir() and side == "dest":
            self._open.append(open_staging(made))  # as the job does, before the peer sends anything
        return made

    def close(self) -> None:
        """Do what the job does at its end, whatever became of the transfer."""
        while self._open:
            self._open.pop().close()

    def adopt(self) -> int:
        """Do what the job does with what an interrupted run left; gives the bytes that are partial then."""
        with contextlib.closing(Staging(os.fsencode(self.dest), os.fsencode(f".longhaul-{ID}"))) as staged:
            return adopt(staged)

    def staged(self, plan: dict[str, Any]) -> Path:
        """Make what the job makes before a method is called, without a trace in the root's times."""
        staging = self.dest / f".longhaul-{ID}"
        if not plan["check"]:
            with self.times_kept():
                for name in ("tmp", "partial"):
                    (staging / name).mkdir(parents=True, exist_ok=True)
        return staging

    def unstage(self) -> None:
        """Do what the job does after a transfer that succeeded."""
        with self.times_kept():
            subprocess.run(["rm", "-rf", str(self.dest / f".longhaul-{ID}")], check=True)

    @contextlib.contextmanager
    def times_kept(self) -> Iterator[None]:
        before = os.stat(self.dest)
        try:
            yield
        finally:
            os.utime(self.dest, ns=(before.st_atime_ns, before.st_mtime_ns))

    def over_shell(self, connect: str = "push", **changes: Any) -> Outcome:
        """Run method rsync with the local stand-in for ssh."""
        plan = settings(**changes)
        self.staged(plan)
        drive, serve = ("source", "dest") if connect == "push" else ("dest", "source")
        context = self.context(drive, "drive", plan)
        context.peer = {"leftover": self.leftover}
        confinement = self.confinement(serve, plan)
        far = self.context(serve, "serve", plan)
        line = RsyncPeer(
            far=Far(address="peer:./", shell=self.shell(serve, plan)),
            far_roots=("/" if confinement.kind == CHROOT else str(far.root, "utf-8"),),
            keeps_lists=not confinement.kind,
        )
        if self.stop_after:
            threading.Timer(self.stop_after, context.stop.set).start()
        if serve == "source":
            rsync.rsync_handler(far, confinement)  # it makes the lists' folder
            if self.far_uid is not None:  # a job's rsync runs as the job's own user
                os.chmod(os.path.join(far.folder, server_command.LISTS), 0o755)
        outcome = rsync_passes.transfer(context, line, lambda: self._divided(far))
        self.close()
        if not outcome.failure:
            self.unstage()
        return outcome

    def confinement(self, side: str, plan: dict[str, Any]) -> RootConfinement:
        """Return what confines the serving end's rsync."""
        return decide_confinement(plan, side, tuple(VERSION), self.far_uid is None)

    @staticmethod
    def _divided(far: Context) -> Lists:
        lists = divide(
            list_source(far.root, far.settings), far.settings["streams"], os.path.join(far.folder, server_command.LISTS)
        )
        return decode_lists(encode_lists(lists), FAR_LIST)

    def shell(self, side: str, plan: dict[str, Any]) -> str:
        """Write the stand-in for ssh; gives what --rsh takes."""
        path = self.folder / f"shell-{side}.py"
        root = self.source if side == "source" else self.dest
        path.write_text(
            _SHELL.format(
                path=[entry for entry in sys.path if entry],
                settings=plan,
                folder=str(self.folder / f"job-{side}"),
                side=side,
                uid=self.far_uid,
                confined=self.confinement(side, plan).kind,
                adopting=side == "dest" and plan["streams"] == 1 and not plan["check"],
                root=os.fsencode(root),
            )
        )
        return f"{sys.executable} {path}"

    def over_daemon(self, connect: str = "push", **changes: Any) -> Outcome:
        """Run method rsyncd with a daemon of its own."""
        plan = settings(method="rsyncd", **changes)
        self.staged(plan)
        drive, serve = ("source", "dest") if connect == "push" else ("dest", "source")
        serving, driving = self.context(serve, "serve", plan), self.context(drive, "drive", plan)
        serving.serve.update(address="127.0.0.1", ports=[0], allow=["127.0.0.1"])
        serving.secrets = driving.secrets = {"daemon": "not-a-secret-of-anybody"}
        server = rsyncd.serve(serving)
        over = threading.Event()

        def look() -> None:  # as the job does
            while not over.wait(0.1):
                server.active()

        looking = threading.Thread(target=look)
        looking.start()
        try:
            driving.peer = {**server.ready, "address": "127.0.0.1", "port": self.through(server.ready["port"])}
            outcome = rsyncd.drive(driving)
        finally:
            over.set()
            looking.join()
            server.close()
            self.close()
        if not outcome.failure:
            self.unstage()
        return outcome

    def over_ssh(self, keys: Path, connect: str = "push", **changes: Any) -> Outcome:
        """Run method rsync over real ssh, to a private sshd; ``keys`` holds the pairs host and driver."""
        plan = settings(**changes)
        self.staged(plan)
        drive, serve = ("source", "dest") if connect == "push" else ("dest", "source")
        serving, driving = self.context(serve, "serve", plan), self.context(drive, "drive", plan)
        serving.serve.update(
            ssh="private",
            address="127.0.0.1",
            ports=[0],
            allow=["127.0.0.0/8"],
            public_key=(keys / "driver.pub").read_text(),
            gate=[sys.executable, "-I", "-S", forced_command.__file__],
        )
        serving.secrets = {"host_key": (keys / "host").read_text()}
        driving.secrets = {"identity": (keys / "driver").read_text()}
        server = rsync.serve(serving)
        try:
            driving.peer = {**server.ready, "address": "127.0.0.1"}
            outcome = rsync.drive(driving)
        finally:
            server.close()
            self.close()
        if not outcome.failure:
            self.unstage()
        return outcome

    def over(self, method: str, connect: str = "push", **changes: Any) -> Outcome:
        return (self.over_shell if method == "rsync" else self.over_daemon)(connect, **changes)
