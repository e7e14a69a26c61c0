# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Listen for the daemon of one transfer, and start an rsync for each connection, as inetd does.

The port is this process's own from the beginning to the end. A daemon that listened by itself would have to be found
again at its port, and whoever took that port before it would be taken for it, and get the login and the data. There is
nothing to be found here, on any system, with any user's rights.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import subprocess
import threading
import time
from typing import Callable, Sequence

from ..._core.host_name import bind_target
from ..._engine.net.pending_connections import Complaints, PendingConnection, PendingConnections, admit, wait_for_words
from ..._engine.wire.handshake import HandshakeError
from ..rsync.child import end_group
from .daemon_log import DaemonLog

_BACKLOG = 64
_PROOF_SECONDS = 60.0  # for a client to log in
_LOOK = 0.1  # seconds


def listen(address: str, port: int) -> socket.socket | None:
    """Listen at an address (empty: all of this host's) and port (0: any); None if it is taken. Raises OSError."""
    families = [socket.AF_INET6 if ":" in address else socket.AF_INET]
    if not address and socket.has_dualstack_ipv6():
        families.insert(0, socket.AF_INET6)
    for family in families:
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if not address and family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listening.bind(bind_target(address, port))
            listening.listen(_BACKLOG)
            return listening
        except OSError as error:
            listening.close()
            if error.errno == errno.EADDRINUSE:
                return None
            if family == families[-1]:
                raise
    return None


class Acceptor:
    """Accepts the connections of ``allowed`` addresses (empty: any) and serves each by a process of its own.

    At most ``most`` clients that have logged in are served; rsync's own limit counts strangers, too. ``start`` gets the
    connection and whether no other process is at work, and returns the process that serves the connection; no other one
    begins meanwhile. ``watch`` is told when a process begins and when it is over.
    """

    def __init__(
        self,
        listening: socket.socket,
        allowed: Sequence[str],
        most: int,
        start: Callable[[socket.socket, bool], subprocess.Popen[bytes]],
        watch: Callable[[str, int], None],
        daemon_log: DaemonLog,
        log: Callable[[str], None],
    ) -> None:
        self.port = int(listening.getsockname()[1])
        self._socket, self._allowed, self._most = listening, allowed, most
        self._start, self._watch, self._daemon_log = start, watch, daemon_log
        self._pending, self._complain = PendingConnections(), Complaints(log)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._start_lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()  # those that are not over, logged in or not
        self._logged_in: set[int] = set()  # processes whose clients have
        listening.settimeout(2 * _LOOK)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for met in admit(self._socket, self._allowed, self._pending, self._complain, self._stop):
            thread = threading.Thread(target=self._serve, args=met, daemon=True)
            with self._lock:
                self._threads.add(thread)
            thread.start()

    def _serve(self, connection: socket.socket, pending: PendingConnection) -> None:
        """Be the thread that starts a process and outlives it (see subprocesses.start)."""
        try:
            with contextlib.ExitStack() as process_held:
                with connection, self._pending.hold(pending):
                    wait_for_words(connection)
                    pending.is_silent = False
                    process = self._begin(connection)
                    process_held.callback(self._end, process)
                    connection.close()
                    self._watch("+", process.pid)
                    self._wait_for_login(process)
                while process.poll() is None and not self._stop.wait(_LOOK):
                    pass
        except (OSError, HandshakeError) as error:
            if not self._stop.is_set():
                self._complain(f"port {self.port}: {error}; listening on")
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _begin(self, connection: socket.socket) -> subprocess.Popen[bytes]:
        with self._start_lock:
            process = self._start(connection, not self._processes)
            self._processes.add(process)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        end_group(process)
        self._processes.discard(process)
        self._logged_in.discard(process.pid)
        self._daemon_log.forget(process.pid)
        self._watch("-", process.pid)

    def _wait_for_login(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the client of a process has logged in; end the process where it does not, or has ended."""
        deadline = time.monotonic() + _PROOF_SECONDS
        while process.poll() is None and not self._stop.wait(_LOOK):
            if self._daemon_log.has_logged_in(process.pid):
                if len(self._logged_in) < self._most:
                    self._logged_in.add(process.pid)
                else:
                    self._complain(f"port {self.port}: {self._most} clients are served, and no more: dropped")
                    end_group(process)
                return
            if time.monotonic() > deadline:
                self._complain(f"port {self.port}: a client did not log in in {_PROOF_SECONDS:.0f} seconds: dropped")
                end_group(process)

    def is_serving(self) -> bool:
        """Return whether a client that has logged in is connected."""
        return bool(self._logged_in)

    def close(self) -> None:
        """Stop listening, and end all that was started."""
        self._stop.set()
        self._thread.join()
        self._socket.close()
        with self._lock:
            threads = list(self._threads)
        self._pending.end_all()
        for thread in threads:
            with contextlib.suppress(RuntimeError):
                thread.join()
