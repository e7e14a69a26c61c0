# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real rsync client, run on the daemon's own host. Private to the collection."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import subprocess
import tempfile
from typing import Iterator, Mapping, NamedTuple, Sequence

from .._core import subprocesses
from .conf import Module
from .options import OPTIONS

_KNOCK = 10  # seconds
_SECONDS = 20  # without any progress
_PATIENCE = 60  # for one run
_SEEN_BY_ALL = "/run"
# What would turn a trial from this host away, or count it; the private daemon is asked about everything else.
_LEFT_OUT = frozenset(["hosts_allow", "hosts_deny", "max_connections", "lock_file", "log_file"])


class ClientResult(NamedTuple):
    """Result of a run of rsync, with its output and the private daemon's log."""

    code: int
    said: str
    log: str = ""


class Daemon(NamedTuple):
    """Where the daemon is."""

    address: str
    port: int
    pid: int  # of its main process; 0 where that is not known
    behind_proxy: bool = False  # it expects a proxy's word about who connects, which rsync cannot say


class RsyncClient:
    """Runs rsync against the daemon, or against a private one with a module's options in the daemon's own view."""

    def __init__(self, rsync: str, daemon: Daemon, nsenter: str) -> None:
        self._rsync, self._daemon, self._nsenter = rsync, daemon, nsenter

    def listing(self) -> ClientResult:
        """Ask the daemon for its modules; where it stands behind a proxy, see only whether it is there."""
        if self._daemon.behind_proxy:
            return self._knock()
        host = f"[{self._daemon.address}]" if ":" in self._daemon.address else self._daemon.address
        return self._run(["--contimeout=10", f"rsync://{host}:{self._daemon.port}/"], "", {}, ())

    def run(
        self, arguments: Sequence[str], place: str, module: Module, login: tuple[str, str], private: bool
    ) -> ClientResult:
        """Run rsync with arguments; ``{}`` among them stands for the module's place (``sub/``, empty for its root)."""
        user, password = login
        who = f"{user}@" if user else ""
        host = f"[{self._daemon.address}]" if ":" in self._daemon.address else self._daemon.address
        words = [] if private else ["--contimeout=10"]
        port = "" if private else f":{self._daemon.port}"
        url = f"rsync://{who}{'private' if private else host}{port}/{module.name}/{place}"
        words += [url if word == "{}" else word for word in arguments]
        if password:
            words.insert(0, "--password-file=-")
        with contextlib.ExitStack() as stack:
            files: tuple[int, ...] = ()
            environment: dict[str, str] = {}
            if private:
                config = stack.enter_context(_config_file(private_conf(module)))
                log = stack.enter_context(_log_file())
                files = (log.number,)
                environment["RSYNC_CONNECT_PROG"] = self._private_command(config, log.path)
            ran = self._run(words, password, environment, files)
            if private:
                os.lseek(log.number, 0, os.SEEK_SET)
                ran = ran._replace(log=os.read(log.number, 1 << 16).decode(errors="replace"))
        return ran

    def _knock(self) -> ClientResult:
        try:
            socket.create_connection((self._daemon.address, self._daemon.port), timeout=_KNOCK).close()
        except OSError as error:
            return ClientResult(10, f"failed to connect to {self._daemon.address}: {error}")
        return ClientResult(0, "")

    def _private_command(self, config: str, log: str) -> str:
        view = [self._nsenter, f"--target={self._daemon.pid}", "--mount", "--"]
        argv = view if self._nsenter and self._daemon.pid else []
        argv = [*argv, self._rsync, "--server", "--daemon", f"--config={config}", f"--log-file={log}", "."]
        return " ".join(shlex.quote(word) for word in argv)

    def _run(
        self, words: list[str], password: str, environment: Mapping[str, str], files: tuple[int, ...]
    ) -> ClientResult:
        try:
            ran = subprocesses.run(
                [self._rsync, f"--timeout={_SECONDS}", "--no-motd", *words],
                given=f"{password}\n".encode() if password else b"",
                stderr=subprocess.STDOUT,
                extra_environment=environment,
                pass_fds=files,
                timeout=_PATIENCE,
                new_session=True,  # without a terminal nobody is asked for a password
            )
        except subprocess.TimeoutExpired:
            return ClientResult(30, f"no answer for {_PATIENCE} seconds: timeout waiting for daemon")
        return ClientResult(ran.returncode, ran.stdout.decode(errors="replace"))


def private_conf(module: Module) -> str:
    """Write the configuration of a private daemon: the module with all that counts for it. Pure."""
    lines = [f"[{module.name}]"]
    lines += [
        f"{OPTIONS[key].name} = {value}"
        for key, value in sorted(module.options.items())
        if key in OPTIONS and OPTIONS[key].scope == "module" and key not in _LEFT_OUT
    ]
    return "\n".join(lines) + "\n"


class _Log(NamedTuple):
    number: int  # the descriptor
    path: str


@contextlib.contextmanager
def _config_file(text: str) -> Iterator[str]:
    """Write a file where the daemon sees it too: a unit may have a /tmp of its own. rsync takes no nameless one."""
    folder = _SEEN_BY_ALL if os.access(_SEEN_BY_ALL, os.W_OK) else None
    with tempfile.NamedTemporaryFile(dir=folder, prefix="longhaul-rsyncd-", suffix=".conf") as stream:
        stream.write(text.encode("utf-8", "surrogateescape"))
        stream.flush()
        yield stream.name


@contextlib.contextmanager
def _log_file() -> Iterator[_Log]:
    """Yield a file that a daemon may write whatever of this host it may write: on Linux, one without a name."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("rsyncd", 0)
        try:
            yield _Log(number, f"/proc/self/fd/{number}")
        finally:
            os.close(number)
    else:
        with tempfile.NamedTemporaryFile() as stream:
            yield _Log(stream.fileno(), stream.name)
