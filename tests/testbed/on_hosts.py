# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What tests do on the testbed's hosts: programs, processes, sockets, disks."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple, Sequence

INODES = 2_000_000  # of /data; a tmpfs without a limit cannot be given one later
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": "/root", "USER": "root", "LOGNAME": "root"}


class TestbedError(Exception):
    """The testbed could not be brought up or changed."""

    __test__ = False  # not a test, whatever pytest makes of the name


class Process(NamedTuple):
    """A process of a host; ``pid`` is the host's own number for it."""

    pid: int
    uid: int
    argv: tuple[str, ...]


class Listener(NamedTuple):
    """A socket that waits for others; ``protocol`` is tcp, tcp6, udp or udp6."""

    protocol: str
    port: int


def started(pid: int) -> str:
    """Return when a process started (clock ticks since boot), to detect a reused pid."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def wait_until_gone(name: str, pid: int, begun: str) -> None:
    """Wait until a process has ended that another program started; raise TestbedError if it does not."""
    until = time.monotonic() + 10
    while started(pid) == begun:
        if time.monotonic() > until:
            raise TestbedError(f"{name} (process {pid}) does not end")
        time.sleep(0.01)


class OnHosts:
    """Hosts that are up. ``Testbed`` brings them up."""

    def __init__(self, hosts: Sequence[str], data_size: str) -> None:
        self.hosts = tuple(hosts)
        self._data_options = f"mode=755,size={data_size},nr_inodes={INODES}"
        self._pids: dict[str, int] = {}  # of the first process of each host, and of the "hub", as the machine counts

    def root(self, host: str) -> Path:
        """Return the path below which the machine sees a host's files; absolute symlinks lead out of it."""
        return Path(f"/proc/{self._pids[host]}/root")

    def pid(self, host: str) -> int:
        """Return the machine's pid of a host's first process."""
        return self._pids[host]

    def argv(self, host: str, argv: Sequence[str | bytes], user: str = "root") -> list[str | bytes]:
        """Return the argv that runs a program in a host."""
        entering = ["nsenter", "-t", str(self._pids[host]), "-m", "-u", "-i", "-n", "-p", "--root", "--wd", "--"]
        return [*entering, *([] if user == "root" else ["runuser", "-u", user, "--"]), *argv]

    def popen(
        self, host: str, argv: Sequence[str | bytes], *, user: str = "root", **more: Any
    ) -> subprocess.Popen[Any]:
        """Start a program in a host."""
        return subprocess.Popen(self.argv(host, argv, user), env=ENVIRONMENT, **more)

    def exec(
        self,
        host: str,
        argv: Sequence[str | bytes],
        *,
        user: str = "root",
        check: bool = True,
        input: str | None = None,
        timeout: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in a host to its end, with text in and out."""
        ended = subprocess.run(
            self.argv(host, argv, user),
            env=ENVIRONMENT,
            input=input if input is not None else "",
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=timeout,
            check=False,
        )
        if check and ended.returncode:
            raise TestbedError(f"{host}: {argv!r} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
        return ended

    def processes(self, host: str) -> list[Process]:
        """Return a host's processes except the testbed's own: the first one, sshd, and its sessions."""
        found = []
        for folder in sorted((self.root(host) / "proc").glob("[0-9]*"), key=lambda path: int(path.name)):
            with contextlib.suppress(OSError):
                argv = tuple(os.fsdecode(word) for word in (folder / "cmdline").read_bytes().split(b"\0")[:-1])
                process = Process(int(folder.name), folder.stat().st_uid, argv)
                if argv and not self._is_own(process):
                    found.append(process)
        return found

    @staticmethod
    def _is_own(process: Process) -> bool:
        title = process.argv[0]
        listens = "[listener]" in title
        own_listener = listens and process.argv[0].startswith("sshd: /usr/sbin/sshd -D -e [listener]")
        return process.pid == 1 or own_listener or (title.startswith(("sshd: ", "sshd-session: ")) and not listens)

    def kill(self, host: str, process: Process | int, number: int = signal.SIGKILL) -> None:
        """Send a signal to a process of a host, unless it has ended since it was found."""
        pid = process.pid if isinstance(process, Process) else process
        ended = self.exec(host, ["kill", f"-{int(number)}", "--", str(pid)], check=False)
        if ended.returncode and "No such process" not in ended.stderr:
            raise TestbedError(f"{host}: process {pid} did not get signal {int(number)}: {ended.stderr}")

    def crash(self, host: str) -> None:
        """Kill everything on a host at once, as a reboot does; its files stay, but for /run and /tmp."""
        keep = {1, *(int(line) for line in self.exec(host, ["pgrep", "-o", "-x", "sshd"]).stdout.split())}
        for _round in range(3):  # sessions that start just then
            pids = [path.name for path in (self.root(host) / "proc").glob("[0-9]*") if int(path.name) not in keep]
            self.exec(host, ["kill", "-9", "--", *pids], check=False)
        kept = ["!", "-path", "/run/sshd", "!", "-path", "/run/netns"]  # the second is a mount, once `ip netns` ran
        self.exec(host, ["find", "/run", "/tmp", "-xdev", "-mindepth", "1", *kept, "-delete"])

    def listeners(self, host: str) -> list[Listener]:
        """Return the listening sockets of a host, except sshd's port 22."""
        found = set()
        for protocol, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
            for line in Path(f"/proc/{self._pids[host]}/net/{protocol}").read_text().splitlines()[1:]:
                fields = line.split()
                port = int(fields[1].rpartition(":")[2], 16)
                if fields[3] == state and (protocol[:3], port) != ("tcp", 22):
                    found.add(Listener(protocol, port))
        return sorted(found)

    def limit_disk(self, host: str, size: str, *, inodes: int = INODES) -> None:
        """Set how much /data of a host may hold (``100m``), and how many files."""
        self.exec(host, ["mount", "-o", f"remount,size={size},nr_inodes={inodes}", "/data"])

    def empty_data(self, host: str) -> None:
        """Mount an empty /data of the original size on a host, whatever is still open in the old one."""
        self.exec(host, ["umount", "--lazy", "/data"])
        self.exec(host, ["mount", "-t", "tmpfs", "-o", self._data_options, "none", "/data"])
