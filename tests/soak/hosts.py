# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Both ends of a transfer on this machine, without Ansible: each is a process that runs the endpoint's steps.

``Host`` has what ``Session`` needs of a ``HostRunner``, so that everything from the options to the comparison is the
product's own. Jobs are forked from the host's process instead of being started from the packed engine: what takes a
tenth of a second then takes a hundredth, and a patch of the product that is in force when the host begins
is in force in its jobs, too.
"""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import gc
import importlib
import os
import pickle
import pkgutil
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core import subprocesses
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.engine import pack_engine
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed

_UTILS = "ansible_collections.longhaul.fleet.plugins.module_utils"
_PACKAGES = ("_core", "_model", "_tree", "_engine", "_methods", "_rsyncd", "_job")
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4  # <linux/prctl.h>
_OPEN: list[socket.socket] = []  # the ends of the hosts' sockets in this process


@dataclass(frozen=True)
class User:
    """Who a host's work is done as."""

    uid: int = 0
    gid: int = 0
    groups: tuple[int, ...] = ()


ROOT = User()
ORDINARY = User(65534, 65534, (54002, 54003))  # who is in several groups; has a name, as ssh wants it


def import_engine() -> None:
    """Import all that jobs may import later: the folder of the sources may be closed to another user."""
    for package in _PACKAGES:
        folder = importlib.import_module(f"{_UTILS}.{package}").__path__
        for found in pkgutil.walk_packages(folder, f"{_UTILS}.{package}."):
            importlib.import_module(found.name)
    for name in ("encodings.idna", "shutil", "hashlib", "ssl", "subprocess", "getpass"):
        importlib.import_module(name)
    for codec in ("ascii", "idna", "latin-1", "utf-8"):
        codecs.lookup(codec)


class Host:
    """One end of transfers, as Session knows it."""

    connection = "local"

    def __init__(self, name: str, folder: Path, user: User = ROOT, rsyncd_conf: str = "") -> None:
        """Begin; ``folder`` takes the state of jobs and must be open to the user."""
        self.name = name
        self.variables = {"ansible_connection": "local", "longhaul_address": "127.0.0.1"}
        folder.mkdir(parents=True, exist_ok=True)
        os.chown(folder, user.uid, user.gid)
        self._lock = threading.Lock()
        self._folder = folder
        import_engine()
        ours, its = socket.socketpair()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking where threads run: none of them is ours
            self._pid = os.fork()
        if not self._pid:
            for other in (*_OPEN, ours):
                os.close(other.fileno())
            _be_host(its, folder, user, rsyncd_conf)
        its.close()
        self._socket = ours
        _OPEN.append(ours)
        self._stream = ours.makefile("rwb")

    def run(self, *steps: dict[str, Any], secrets: dict[str, str] | None = None) -> list[dict[str, Any]]:
        """Run steps as one execution of the module would. Raises HostFailed."""
        with self._lock:
            try:
                pickle.dump((list(steps), secrets or {}), self._stream)
                self._stream.flush()
                good, given = pickle.load(self._stream)
            except (OSError, EOFError) as error:
                raise HostFailed(f"{self.name}: the host is gone ({error!r})") from error
        if not good:
            raise HostFailed(f"{self.name}: {given}")
        return given

    def reset(self) -> None:
        """Nothing is kept that could break."""

    def keep_off_disks(self) -> None:
        """Secrets pass through a pipe."""

    def kill_job(self) -> bool:
        """SIGKILL the job that runs there, with all that it started; gives whether there was one."""
        killed = False
        for folder in self._folder.glob("state/*/*"):
            with contextlib.suppress(OSError, ValueError):
                os.killpg(int((folder / "job.pid").read_text()), signal.SIGKILL)
                killed = True
        return killed

    def let_next_job_die(self, changes: int | None) -> None:
        """Have jobs that begin from now on killed at their next change of the disk but so many; None: none of them."""
        self.run({"do": "die", "changes": changes})

    def close(self) -> None:
        """End the host and its jobs."""
        self.kill_job()
        _OPEN.remove(self._socket)
        self._socket.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self._stream.close()
        self._socket.close()
        os.waitpid(self._pid, 0)


def _be_host(connection: socket.socket, folder: Path, user: User, rsyncd_conf: str) -> None:
    """Answer questions until nobody asks any more. Never returns."""
    code = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        engine = folder / "engine.pyz"
        engine.write_bytes(_packed())
        os.chmod(engine, 0o644)
        _become(user, folder)
        _settle_in(folder, rsyncd_conf)
        stream = connection.makefile("rwb")
        commands = importlib.import_module(f"{_UTILS}._job.commands")
        while True:
            try:
                asked, secrets = pickle.load(stream)
            except EOFError:
                break
            try:
                if asked[0]["do"] == "die":
                    _DIES[:] = [asked[0]["changes"]] if asked[0]["changes"] is not None else []
                    asked = []
                answer = (True, commands.run_steps(asked, commands.StepContext(secrets, str(engine))))
            except Exception as error:  # what the module would end with
                known = type(error).__name__ in ("StateError", "TransferFailed")
                answer = (False, str(error) if known else traceback.format_exc())
            pickle.dump(answer, stream)
            stream.flush()
            _reap()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


_PACKED: list[bytes] = []


def _packed() -> bytes:
    if not _PACKED:
        _PACKED.append(pack_engine())
    return _PACKED[0]


def _become(user: User, folder: Path) -> None:
    os.environ["HOME"] = str(folder)
    os.environ.pop("XDG_STATE_HOME", None)
    if user.uid:
        if os.path.exists("/usr/bin/python3"):
            sys.executable = "/usr/bin/python3"  # this one may lie in another user's home
        os.setgroups(user.groups)
        os.setgid(user.gid)
        os.setuid(user.uid)
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # its own /proc is its own again, as after an exec
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        os.umask(0o022)


def _settle_in(folder: Path, rsyncd_conf: str) -> None:
    """Let jobs be forked, and state be kept in the folder."""
    state, launcher, probe = (importlib.import_module(f"{_UTILS}._job.{n}") for n in ("state", "launcher", "probe"))
    state.state_root = lambda: str(folder / "state")
    launcher.subprocesses = _Programs
    probe._RSYNCD_CONFIGS = (rsyncd_conf,)
    # What cannot change from one transfer to the next, and takes most of the time of a probe:
    for name in ("addresses", "_link_speed"):
        found = getattr(probe, name)()
        setattr(probe, name, lambda found=found: found)
    equipment = importlib.import_module(f"{_UTILS}._methods.detect_programs")
    look, seen = equipment.look_at_programs, {}

    def look_once(methods: Any) -> Any:
        key = tuple(methods)
        if key not in seen:
            seen[key] = look(methods)
        return seen[key]

    probe.look_at_programs = look_once


def _reap() -> None:
    """Leave no job behind that has ended, nor its number, which another process may have from then on."""
    with contextlib.suppress(ChildProcessError):
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            if pid in _NOTED:
                _NOTED.pop(pid).unlink(missing_ok=True)


_NOTED: dict[int, Path] = {}  # where the number of each job stands


class _Job:
    """A job that was forked, as far as the launcher looks at its process."""

    def __init__(self, argv: list[str], stdout: Any, extra_environment: Mapping[str, str], **_more: Any) -> None:
        env = subprocesses.environment(extra_environment)
        reading, writing = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(writing)
            _be_job(argv[-2:], reading, stdout.fileno(), env)
        os.close(reading)
        _NOTED[self.pid] = Path(argv[-1], "job.pid")
        _NOTED[self.pid].write_text(str(self.pid))
        self.stdin = open(writing, "wb", buffering=0)  # noqa: SIM115
        self._over = False

    def poll(self) -> int | None:
        if not self._over:
            try:
                self._over = bool(os.waitpid(self.pid, os.WNOHANG)[0])
            except ChildProcessError:
                self._over = True
        return 0 if self._over else None

    def wait(self, seconds: float) -> int:
        deadline, pause = time.monotonic() + seconds, 0.001
        while self.poll() is None:
            if time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired("job", seconds)
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        return 0


class _Programs:
    """What the launcher uses of the module that starts programs."""

    start = _Job
    own_variables = staticmethod(subprocesses.own_variables)


_DIES: list[int] = []  # after how many changes of the disk the next job is killed
_CHANGES = ("chmod", "chown", "fchmod", "fchown", "ftruncate", "link", "mkdir", "mkfifo", "mknod", "rename", "replace")
_CHANGES += ("rmdir", "symlink", "unlink", "utime")


def _count_down(changes: int) -> None:
    """Have this process and what it started killed at its next change of the disk but so many."""
    left = [changes]

    def counted(do: Callable[..., Any]) -> Callable[..., Any]:
        def act(*given: Any, **more: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                os.killpg(0, signal.SIGKILL)
            return do(*given, **more)

        return act

    for name in _CHANGES:
        setattr(os, name, counted(getattr(os, name)))


def _be_job(arguments: list[str], secrets: int, log: int, env: dict[str, str]) -> None:
    code = 1
    gc.freeze()  # as a packed job does: unused objects of the parent would close files that are the job's own by now
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        os.dup2(secrets, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.closerange(3, 256)
        os.chdir("/")
        os.environ.clear()
        os.environ.update(env)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        if _DIES and arguments[0] == "job":
            _count_down(_DIES[0])
        main = importlib.import_module(f"{_UTILS}._job.main")
        code = main.main(arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
