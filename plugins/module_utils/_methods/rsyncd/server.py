# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The serving end of method rsyncd."""

from __future__ import annotations

import contextlib
import glob
import ipaddress
import os
import socket
import subprocess
import sys
import tempfile
import time
from typing import Sequence

from ..._core import subprocesses
from ..._core.context import Context, Peer, Server
from ..._core.errors import TransferFailed
from ..._core.host_name import numeric_address
from ..._core.ports import ESTABLISHED, cannot_listen, has_socket
from ..._core.settings import DaemonModule
from ..._core.subprocesses import find_program, pipe
from ..._tree.held_root import program_path
from ..._tree.staging import open_staging
from ..rsync.leftover import adopt
from ..rsync.server_command import user_variables
from .acceptor import Acceptor, listen
from .conf import USER, DaemonPlan, daemon_conf
from .daemon_log import DaemonLog

_SPARE_CONNECTIONS = 4  # over one for each stream: a broken one may linger until its timeout
_AUTH_DIGEST = (3, 5, 0)  # the first version that can refuse weak ones
_LOOKS = 1.0  # seconds between two looks at this host's connections
_LOOK_SHARE = 50  # a look that takes a second is followed by so many without one
_MEMORY = "/dev/shm"  # where a file is on no disk

# A process that waits for the job's end: its input closes then. It removes files (argv) and ends the sessions that it
# was told of, which Linux could do by a signal on the parent's death, but not for the children of an rsync.
_GUARD = """
import os, signal, sys
sessions = set()
for line in sys.stdin:
    if line[0] == "0":
        sys.exit()
    (sessions.add if line[0] == "+" else sessions.discard)(int(line[1:]))
for path in sys.argv[1:]:
    try:
        os.unlink(path)
    except OSError:
        pass
for session in sessions:
    try:
        os.killpg(session, signal.SIGKILL)
    except OSError:
        pass
"""


def _password_prefix(transfer_id: str) -> str:
    return f"longhaul-{transfer_id}-"


def password_files(transfer_id: str) -> list[str]:
    """Return the files in memory that hold a transfer's password for the daemon, as far as they are this user's."""
    found = []
    for path in glob.glob(os.path.join(_MEMORY, f"{_password_prefix(transfer_id)}*")):
        with contextlib.suppress(OSError):
            if os.lstat(path).st_uid == os.geteuid():
                found.append(path)
    return found


def far_terms(subpath: str, name: str = "") -> str:
    """Return the path, as the daemon's clients say it, of a name in a folder of the module."""
    return "/" + "/".join(part for part in (subpath.strip("/"), name) if part)


class OwnDaemon(Server):
    """A daemon with one module, one user and one address, for one transfer.

    The module is the root and nothing else. ``ready``: ``port``, ``root``, ``subpath`` and ``link_dest`` as of a
    configured module, ``chroot``, ``leftover``, ``cmd``.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._guard: subprocess.Popen[bytes] | None = None
        self._acceptor: Acceptor | None = None
        self._daemon_log: DaemonLog | None = None
        self._files = [os.path.join(context.folder, f"rsyncd.{kind}") for kind in ("conf", "log")]
        self._secrets = self._write_secrets()
        try:
            self.ready = self._open()
        except BaseException:
            self.close()
            raise

    def _write_secrets(self) -> str:
        """Write the password where the daemon can open it at each connection; it does not accept a memfd."""
        for left in password_files(self._context.settings["id"]):  # of a job that was killed with its guard
            os.unlink(left)
        fd, path = tempfile.mkstemp(
            prefix=_password_prefix(self._context.settings["id"]),
            dir=_MEMORY if os.access(_MEMORY, os.W_OK) else self._context.folder,
        )
        with os.fdopen(fd, "w") as stream:  # 0600, as mkstemp makes it
            stream.write(f"{USER}:{self._context.secrets['daemon']}\n")
        self._files.append(path)
        return path

    def _open(self) -> Peer:
        context = self._context
        if context.settings["link_dest"] and context.side == "dest":
            raise TransferFailed(
                "link_dest is set, and the source could write to all that a daemon for this transfer must reach, and "
                "so change the older copies. Name method stream"
            )
        peers = _addresses(context.serve.get("allow") or [])
        self._write_conf(peers)
        listening = _listen(_address(context.serve.get("address", "")), list(context.serve.get("ports") or [0]))
        self._daemon_log = DaemonLog(self._files[1])
        self._guard = subprocesses.start(
            [sys.executable, "-I", "-S", "-c", _GUARD, *self._files],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            new_session=True,
        )
        most = context.settings["streams"] + _SPARE_CONNECTIONS
        self._acceptor = Acceptor(listening, peers, most, self._start, self._tell_guard, self._daemon_log, context.log)
        return {
            "port": self._acceptor.port,
            "root": os.fsdecode(context.root),
            "subpath": "",
            "link_dest": [],
            "chroot": os.geteuid() == 0,
            "leftover": bool(context.serve.get("leftover")),
            "cmd": self._argv(),
        }

    def _write_conf(self, peers: Sequence[str]) -> None:
        context, settings = self._context, self._context.settings
        both = [tuple(settings["rsync"][side]) for side in ("source", "dest")]
        plan = DaemonPlan(
            # Without chroot rsync's daemon opens nothing over a link, and what /proc has is one.
            path=os.fsdecode(program_path(context.root, context.root_fd) if os.geteuid() == 0 else context.root),
            writable=context.side == "dest",
            as_root=os.geteuid() == 0,
            numeric_ids=settings["numeric_ids"],
            peers=tuple(peers),
            secrets_file=self._secrets,
            folder=context.folder,
            timeout=settings["timeout"],
            digest="sha256" if min(both) >= _AUTH_DIGEST else "",
        )
        try:
            text = daemon_conf(plan)
        except ValueError as error:
            raise TransferFailed(
                f"{error}: a daemon cannot serve this path. Choose method rsync, or rename the folder"
            ) from error
        if find_program("rsync") is None:
            raise TransferFailed("there is no rsync on this host. Install it, or choose another method")
        with open(self._files[0], "w", encoding="utf-8", errors="surrogateescape") as stream:
            os.fchmod(stream.fileno(), 0o600)
            stream.write(text)

    def _argv(self) -> list[str]:
        return ["rsync", "--daemon", f"--config={self._files[0]}"]

    def _start(self, connection: socket.socket, is_alone: bool) -> subprocess.Popen[bytes]:
        """Start an rsync that serves the socket which is its standard input, as it does for inetd.

        One that runs alone continues the files that a killed one left.
        """
        if is_alone and self._context.side == "dest" and not self._context.settings["check"]:
            adopt(open_staging(self._context))
        return subprocesses.start(
            self._argv(),
            stdin=connection.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            extra_environment=user_variables(),
            new_session=True,
            die_with_parent=True,
            pass_fds=[self._context.root_fd] if self._context.root_fd >= 0 else [],
        )

    def _tell_guard(self, what: str, pid: int) -> None:
        if self._guard is not None:
            os.write(pipe(self._guard.stdin).fileno(), f"{what}{pid}\n".encode())

    def active(self) -> bool:
        """Return whether a client that has logged in is connected."""
        return self._acceptor is not None and self._acceptor.is_serving()

    def close(self) -> None:
        """End the connections and stop listening; what rsync logged last goes to the job's log, the files go."""
        if self._acceptor is not None:
            self._acceptor.close()
        if self._guard is not None:
            with contextlib.suppress(BrokenPipeError), pipe(self._guard.stdin) as lifeline:
                lifeline.write(b"0\n")
            self._guard.wait()
        if self._daemon_log is not None:
            self._daemon_log.close()
            said = self._daemon_log.text()
            if said:
                self._context.log(f"the daemon said:\n{said}")
        self._acceptor = self._guard = self._daemon_log = None
        for path in self._files:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


class ConfiguredDaemon(Server):
    """Stands by a daemon that an administrator configured: nothing is started, nothing ended.

    ``ready``: ``root``, ``subpath``, ``link_dest`` in the module's terms, ``leftover``, ``cmd``.
    """

    def __init__(self, context: Context, module: DaemonModule) -> None:
        self._port = int(module["port"])
        root, subpath = os.fsdecode(context.root), str(module.get("subpath") or "").strip("/")
        path = root[: len(root) - len(subpath)].rstrip("/") if subpath else root
        links = context.settings["link_dest"] if context.side == "dest" else []
        outside = [link for link in links if not f"{link}/".startswith(f"{path}/")]
        if outside:
            raise TransferFailed(
                f"link_dest {outside[0]} is not inside {path}, the path of module {module['name']}: the daemon cannot "
                "link to it. Use a module that holds both, or leave rsyncd_module out"
            )
        if context.side == "dest" and not context.settings["check"]:
            _give_staging(context)
        self.ready = {
            "root": root,
            "subpath": subpath,
            "link_dest": [far_terms(os.path.relpath(link, path)) for link in links],
            "leftover": bool(context.serve.get("leftover")),
            "cmd": ["rsync", "--daemon"],
        }
        self._is_active, self._look_again = False, 0.0

    def active(self) -> bool:
        """Return whether anybody is connected to the daemon's port; taken for granted where that cannot be seen.

        It is looked up once a second, and less often on a host with so many connections that a look takes long.
        """
        began = time.monotonic()
        if began >= self._look_again:
            self._is_active = has_socket(self._port, ESTABLISHED) is not False
            ended = time.monotonic()
            self._look_again = ended + max(_LOOKS, _LOOK_SHARE * (ended - began))
        return self._is_active

    def close(self) -> None:
        """Leave the daemon as it is."""


def _give_staging(context: Context) -> None:
    """Let the module's user, who must own the root to keep times, write into the transfer's own folder too."""
    owner = os.stat(context.top)
    if os.geteuid() == 0:
        open_staging(context).give_to(owner.st_uid, owner.st_gid)


def _address(name: str) -> str:
    """Return the numeric address to listen at; a name is looked up here, as the daemon would."""
    if not name:
        return ""
    try:
        return numeric_address(socket.getaddrinfo(name.strip("[]"), None, type=socket.SOCK_STREAM)[0][4])
    except OSError as error:
        raise TransferFailed(
            f"{name} is no address of this host ({error.strerror}). Set the host variable longhaul_address to the "
            "address at which the peer reaches it"
        ) from error


def _addresses(names: Sequence[str]) -> list[str]:
    """Return the numeric addresses of what may connect; a name that cannot be resolved allows nobody."""
    found: list[str] = []
    for name in names:
        with contextlib.suppress(ValueError):
            found.append(str(ipaddress.ip_address(name.partition("%")[0])))
            continue
        with contextlib.suppress(OSError):
            found += [str(answer[4][0]) for answer in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]
    return list(dict.fromkeys(found))


def _listen(address: str, ports: Sequence[int]) -> socket.socket:
    """Listen at the first of the ports that is free; raises TransferFailed."""
    for port in ports:
        try:
            listening = listen(address, port)
        except OSError as error:
            raise cannot_listen(address, port, error) from error
        if listening is not None:
            return listening
    many = len(ports) > 1
    raise TransferFailed(
        f"the port{'s' if many else ''} {', '.join(str(port) for port in ports)} at {address or 'this host'} "
        f"{'are' if many else 'is'} taken by another program, so the daemon for this transfer cannot "
        "listen there. Name a free port with port, or a range with port_range"
    )
