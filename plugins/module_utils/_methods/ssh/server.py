# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The serving end of a transfer over ssh.

The driving end logs in with a key that was made for this transfer. Its forced command is the gate
(``forced_command``), which hands the connection to this process; what runs is decided here, by a method's ``handler``.
So nothing of the decision stands in a file, and a key that was left behind opens nothing.
"""

from __future__ import annotations

import os
import pwd
import select
import shlex
import shutil
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import Callable, Sequence

from ..._core.confinement.confine import Confinement
from ..._core.confinement.plan import plan_process
from ..._core.context import Context, Peer, Server
from ..._core.errors import CommandRefusal, TransferFailed
from . import authorized_keys, sshd
from .client_command import HELLO, alias, hello_answer
from .forced_command import SOCKET
from .forced_command_socket import ClientConnection, listen, receive
from .service import Service, ServiceProcess, Work, start

__all__ = ["Handler", "Service", "SshServer", "Work"]

KEY_LIFE = 24 * 3600  # seconds that a key holds which nobody takes back
KEY_RENEWAL = 3600.0  # seconds
REFUSED = 126  # exit code of a command that was not allowed
SPARE_SESSIONS = 16  # over one for each stream: broken ones may linger, and the driving end asks things in between


# Called with the requested command, and whether no other program is at work; none begins meanwhile. Raises
# CommandRefusal.
Handler = Callable[[str, bool], Work]


class SshServer(Server):
    """An ssh server for one transfer: the host's own with a key line added, or a private one.

    ``context.serve``:

    - ``ssh``: ``system`` or ``private``
    - ``public_key``: the driving end's one-time key, ``type base64``
    - ``allow``: addresses it may come from; empty: any (behind a NAT they are not known)
    - ``address``: where to listen (private), and what ``ready`` repeats
    - ``ports``: to try in order (private), 0: any free one. ``port``: of the host's sshd (system; default 22)
    - ``user``: who logs in (system; default the job's own user, as always with private)
    - ``authorized_keys``: that user's file (system; default ``~/.ssh/authorized_keys``)
    - ``host_keys``: of the host's sshd, ``type base64`` each (system; default: what this host's files say)
    - ``gate``: argv of the gate up to the folder (default: this Python with the job's engine.pyz)

    ``context.secrets["host_key"]``: private host key in OpenSSH's format (private).
    ``ready``: ``port``, ``user``, ``host_keys``, ``address``, ``alias``. ``conversation``: the command whose success
    is that of the transfer; empty if there is none.
    Raises TransferFailed, and then nothing is left behind.
    """

    def __init__(self, context: Context, handler: Handler, chroots: bool = False, conversation: str = ""):
        self._context, self._handler, self._conversation = context, handler, conversation
        # What runs for a connection is confined. This process is not: it starts an sshd, which needs all that root may
        # do and programs that gain rights (PAM, SELinux's change of domain), and it keeps authorized_keys.
        self._confinement = Confinement(plan_process(context, chroots))
        in_force = self._confinement.find_out()
        self._id = context.settings["id"]
        serve = context.serve
        private = serve["ssh"] == "private"
        own = pwd.getpwuid(os.geteuid())
        self._user = own if private or not serve.get("user") else _account(serve["user"])
        sshd.check_shell(self._user)
        self._foreign = self._user.pw_uid != own.pw_uid
        self._lock = threading.Lock()  # for the sessions and programs
        self._start_lock = threading.Lock()
        self._key_lock = threading.Lock()
        self._sessions: dict[socket.socket, int] = {}  # and where its client's messages go
        settings = context.settings
        self._most_sessions = max(int(settings["streams"]), int(settings["streams_max"])) + SPARE_SESSIONS
        self._programs: set[ServiceProcess] = set()
        self._closing = threading.Event()
        self._daemon: sshd.PrivateSshd | None = None
        self._keys = ""  # the system's file that holds our line
        self._files: list[str] = []  # in the job's folder, removed at the end
        self._listener: socket.socket | None = None
        self._folder = ""  # where the gate finds us
        try:
            self._folder = self._make_gate_folder()
            self._files.append(os.path.join(self._folder, SOCKET))
            self._listener = listen(self._folder, self._user.pw_uid)
            threading.Thread(target=self._accept, daemon=True, name="gate").start()
            self.ready = self._open_private() if private else self._open_system()
            self.ready["confinement"] = in_force
        except BaseException:
            self.close()
            raise

    # how it is reached it reachable

    def _make_gate_folder(self) -> str:
        """Return the folder where the forced command finds the job: the job's own, or one for the login user."""
        if not self._foreign:
            return self._context.folder
        # Only root writes there, and what a killed job left has the same name
        folder = os.path.join("/run" if os.path.isdir("/run") else "/var/run", f"longhaul-{self._id}")
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        os.chmod(folder, 0o755)
        engine = os.path.join(self._context.folder, "engine.pyz")
        if os.path.exists(engine):
            os.chmod(shutil.copy(engine, folder), 0o644)
        return folder

    def _gate_command(self) -> str:
        engine = os.path.join(self._folder, "engine.pyz")
        program = self._context.serve.get("gate") or [sys.executable, "-I", "-S", engine, "gate"]
        return " ".join(shlex.quote(word) for word in [*program, self._folder])

    def _key(self, version: tuple[int, int]) -> authorized_keys.Key:
        serve = self._context.serve
        return authorized_keys.Key(
            transfer_id=self._id,
            public_key=serve["public_key"],
            command=self._gate_command(),
            addresses=tuple(serve.get("allow") or ()),
            until=int(time.time()) + KEY_LIFE,
            version=version,
        )

    def _ready(self, port: int, host_keys: Sequence[str]) -> Peer:
        return {
            "port": port,
            "user": self._user.pw_name,
            "host_keys": list(host_keys),
            "address": self._context.serve.get("address", ""),
            "alias": alias(self._id),
        }

    def _open_private(self) -> Peer:
        context, serve = self._context, self._context.serve
        program = sshd.find_sshd()
        version = sshd.sshd_version(program)
        sshd.make_privsep_folder(program, context.log)
        keys = self._private_file("authorized_keys")
        with open(keys, "wb") as file:
            file.write(self._key(version).line())
        host_key = context.secret_file(context.secrets["host_key"], "host_key")
        if host_key.startswith(context.folder):  # a system without memfd
            self._files.append(host_key)
        policy = sshd.host_policy(program)
        pam = sshd.use_pam(self._user.pw_name)

        def config(port: int) -> str:
            path = self._private_file("sshd_config")
            with open(path, "w", encoding="utf-8") as file:
                file.write(
                    sshd.config_text(
                        address=serve.get("address", ""),
                        port=port,
                        user=self._user.pw_name,
                        host_key=host_key,
                        authorized_keys=keys,
                        version=version,
                        policy=policy,
                        use_pam=pam,
                    )
                )
            return path

        self._daemon = sshd.PrivateSshd(
            program, serve.get("address", ""), serve.get("ports") or (), config, context.log
        )
        threading.Thread(target=self._renew, args=(version,), daemon=True, name="key").start()
        return self._ready(self._daemon.port, [sshd.public_key_of(context.secrets["host_key"])])

    def _open_system(self) -> Peer:
        serve = self._context.serve
        program = sshd.find_sshd()
        host_keys = serve.get("host_keys") or sshd.system_host_keys(sshd.system_settings(program))
        version = sshd.sshd_version(program)
        self._keys = serve.get("authorized_keys") or os.path.join(self._user.pw_dir, ".ssh", "authorized_keys")
        self._write_key(version)
        threading.Thread(target=self._renew, args=(version,), daemon=True, name="key").start()
        return self._ready(int(serve.get("port") or 22), host_keys)

    def _private_file(self, name: str) -> str:
        path = os.path.join(self._context.folder, name)
        if path not in self._files:
            self._files.append(path)
        return path

    def _write_key(self, version: tuple[int, int]) -> None:
        if self._keys:
            authorized_keys.add(self._keys, self._key(version), self._user.pw_uid, self._user.pw_gid)
        else:
            new = self._private_file("authorized_keys.new")
            with open(new, "wb") as file:
                file.write(self._key(version).line())
            os.replace(new, self._private_file("authorized_keys"))

    def _renew(self, version: tuple[int, int]) -> None:
        while not self._closing.wait(KEY_RENEWAL):
            with self._key_lock:  # so that close() cannot remove the line between the question and the writing
                if self._closing.is_set():
                    return
                try:
                    self._write_key(version)
                except TransferFailed as problem:
                    self._context.log(f"the key could not be renewed: {problem}")

    # how a connection is served

    def _accept(self) -> None:
        while self._listener is not None:
            try:
                connection, _address = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._session, args=(connection,), daemon=True, name="session").start()

    def _session(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            command, handed = receive(connection)
            with self._lock:
                if self._closing.is_set():
                    handed.close()
                    return
                is_one_too_many = len(self._sessions) >= self._most_sessions
                self._sessions[connection] = handed.stderr
            try:
                try:
                    code = self._refuse(handed) if is_one_too_many else self._run(connection, command, handed)
                finally:
                    with self._lock:
                        self._sessions[connection] = -1
                    handed.close()
                connection.sendall(bytes([code]))
            finally:
                with self._lock:
                    self._sessions.pop(connection, None)

    def _refuse(self, handed: ClientConnection) -> int:
        """Refuse a connection over those that a transfer needs: each could keep a program running."""
        self._context.log(f"a connection is refused: {self._most_sessions} are open")
        message = f"longhaul: {self._most_sessions} connections of this transfer are open, and it needs no more\n"
        os.write(handed.stderr, message.encode())
        return REFUSED

    def _run(self, connection: socket.socket, command: str, handed: ClientConnection) -> int:
        if command == HELLO:
            os.write(handed.stdout, hello_answer(self._id))
            return 0
        try:
            program = self._begin(command, handed)
        except (CommandRefusal, OSError) as problem:
            self._context.log(f"refused: {command[:200]!r}: {problem}")
            os.write(handed.stderr, f"longhaul: {problem}\n".encode("utf-8", "replace"))
            return REFUSED
        over = threading.Event()
        watch = threading.Thread(target=_watch, args=(connection, handed.stdout, program, over), daemon=True)
        watch.start()
        code = program.wait()
        over.set()
        connection.shutdown(socket.SHUT_RD)  # wakes the watch
        watch.join()
        with self._lock:
            self._programs.discard(program)
            if command == self._conversation:
                self.has_succeeded = code == 0
        return code

    def _begin(self, command: str, handed: ClientConnection) -> ServiceProcess:
        with self._start_lock:
            with self._lock:
                is_alone = not self._programs
            program = start(self._handler(command, is_alone), handed, self._confinement.apply)
            with self._lock:
                self._programs.add(program)
                if self._closing.is_set():
                    program.send(signal.SIGTERM)
        return program

    def active(self) -> bool:
        """Return whether a connection of the driving end is open now."""
        with self._lock:
            return bool(self._sessions)

    def close(self) -> None:
        """Take the key back first, then end what runs, then the daemon; leaves no file, process or port."""
        with self._lock:
            self._closing.set()
            programs = list(self._programs)
            self._say_last_words()
        try:
            if self._keys:
                with self._key_lock:
                    authorized_keys.remove(self._keys, self._id, self._user.pw_uid, self._user.pw_gid)
        finally:
            for program in programs:
                program.send(signal.SIGTERM)
            for program in programs:
                program.end()
            self._wait_for_sessions()
            if self._daemon is not None:
                self._daemon.close()
            self._close_gate()
            self._confinement.close()

    def _say_last_words(self) -> None:
        """Tell the driving end, whose programs pass it on, why this one ends; what cannot be sent at once is not."""
        words = f"longhaul: {self._context.last_words}\n".encode()
        for stderr in self._sessions.values():
            if self._context.last_words and stderr >= 0 and select.select([], [stderr], [], 0)[1]:
                with suppress(OSError):
                    os.write(stderr, words)

    def _wait_for_sessions(self) -> None:
        deadline = time.monotonic() + 5
        while self.active() and time.monotonic() < deadline:
            time.sleep(0.01)

    def _close_gate(self) -> None:
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)  # close alone does not wake accept
            self._listener.close()
        if self._foreign and self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        for path in self._files:
            with suppress(FileNotFoundError):
                os.unlink(path)


def _account(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise TransferFailed(f"There is no user {name} on this host, so nobody can log in under this name.") from None


def _watch(connection: socket.socket, stdout: int, program: ServiceProcess, over: threading.Event) -> None:
    """End a program whose connection is lost: the gate was killed, or sshd closed its end of the output."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    poll.register(stdout, 0)  # reports only that nobody reads any more
    poll.poll()
    if not over.is_set():
        program.end()
