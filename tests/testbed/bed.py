# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The testbed as tests use it. See the package's docstring for what it is made of."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Sequence

from . import network
from .between_hosts import BetweenHosts
from .on_hosts import PATH, TestbedError, started, wait_until_gone

STATE = Path("/run/longhaul-testbed")
PROGRAMS = ("ip", "tc", "nft", "nsenter", "pivot_root", "mount", "ssh", "ssh-keygen", "sshd", "sudo")
SUDO_PASSWORD = "move it safely"  # of the users mover and plain
NUMBERS = range(1, 251)


def why_not() -> str | None:
    """Return why no testbed can be brought up here, or None if it can."""
    if sys.platform != "linux":
        return "the testbed needs Linux"
    if os.geteuid() != 0:
        return "the testbed needs root"
    missing = [name for name in PROGRAMS if not shutil.which(name, path=PATH)]
    return f"the testbed needs {', '.join(missing)}: run tests/tools/system-packages" if missing else None


class Testbed(BetweenHosts):
    """Hosts that are up from ``with Testbed() as bed:`` to the end of the block.

    ``hosts`` are their names, ``data_size`` how much their ``/data`` (a tmpfs) may hold. With ``keep`` the hosts stay
    when this program ends, until ``Testbed.attach(number).close()``.
    """

    __test__ = False

    def __init__(self, hosts: Sequence[str] = ("alpha", "beta"), *, data_size: str = "4g", keep: bool = False) -> None:
        super().__init__(hosts, data_size)
        self.number, self._keep = 0, keep
        self._starters: list[subprocess.Popen[str]] = []
        self._host_keys: dict[str, str] = {}

    # ---- life

    def __enter__(self) -> Testbed:
        return self.up()

    def __exit__(self, *_ended: object) -> None:
        self.close()

    def up(self) -> Testbed:
        """Bring the hosts up; they answer to ssh when this returns. Raises TestbedError, and leaves nothing then."""
        reason = why_not()
        if reason:
            raise TestbedError(reason)
        lock = self._take_number()
        try:
            self._start(lock)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(lock)
        return self

    def _take_number(self) -> int:
        """Find a number that no living testbed has. Its lock belongs to the hub's process, and ends with it."""
        STATE.mkdir(mode=0o700, exist_ok=True)
        for number in NUMBERS:
            lock = os.open(STATE / f"{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            self.number = number
            shutil.rmtree(self.folder, ignore_errors=True)  # of a testbed that died
            self.folder.mkdir(mode=0o700)
            return lock
        raise TestbedError(f"{len(NUMBERS)} testbeds are up already: see {STATE}")

    def _start(self, lock: int) -> None:
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "testbed", "-f", str(self.key)], check=True
        )
        lines = [
            f"{network.data(self.number, index).ipv4} {name}.data\n{network.management(self.number, index).ipv4} {name}"
            for index, name in enumerate(self.hosts)
        ]
        spec = {
            "hosts": lines,
            "authorized_key": Path(f"{self.key}.pub").read_text(encoding="ascii").strip(),
            "data_options": self._data_options,
            "keep": self._keep,
        }
        reports = {"hub": self._launch({**spec, "name": None}, lock)}
        for name in self.hosts:
            (self.folder / name).mkdir()
            reports[name] = self._launch({**spec, "name": name, "folder": str(self.folder / name)})
        for name, starter in reports.items():
            self._pids[name] = self._report(name, starter)["pid"]
        self._drop_link()  # of a testbed that died a moment ago
        self._ip(None, network.machine_lines(self.number, self._pids["hub"]))
        self._ip("hub", network.hub_lines([self._pids[name] for name in self.hosts]))
        for index, name in enumerate(self.hosts):
            self._ip(name, network.host_lines(self.number, index))
            self.set_congestion(network.FAIR, name)
        for name in self.hosts:
            self._host_keys[name] = self._report(name, reports[name])["host_key"]
        self._write_known_hosts()
        record = {"hosts": self.hosts, "pids": self._pids, "started": {n: started(p) for n, p in self._pids.items()}}
        (self.folder / "testbed.json").write_text(json.dumps(record))
        for name in self.hosts:
            self._wait_for_sshd(name)

    def _launch(self, spec: dict[str, Any], *fds: int) -> subprocess.Popen[str]:
        starter = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).with_name("host.py")), json.dumps(spec)],
            stdin=subprocess.DEVNULL if self._keep else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(self.folder / "log").open("ab"),
            text=True,
            pass_fds=fds,
            start_new_session=True,  # an interrupt from the terminal is for the tests; they close the testbed
        )
        self._starters.append(starter)
        return starter

    def _report(self, name: str, starter: subprocess.Popen[str]) -> dict[str, Any]:
        assert starter.stdout
        line = starter.stdout.readline()
        if not line:
            said = (self.folder / "log").read_text(errors="replace")
            raise TestbedError(f"{name} did not start:\n{said}")
        report: dict[str, Any] = json.loads(line)
        return report

    def _write_known_hosts(self) -> None:
        lines = []
        for index, name in enumerate(self.hosts):
            names = [*network.management(self.number, index), *network.data(self.number, index)]
            lines.append(f"{','.join(names)} {self._host_keys[name]}\n")
        self.known_hosts.write_text("".join(lines))

    def _wait_for_sshd(self, name: str) -> None:
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection((self.address(name), 22), timeout=1) as tried:
                if tried.recv(4) == b"SSH-":
                    return
            time.sleep(0.01)
        log = self.root(name) / "var/log/testbed-sshd.log"
        raise TestbedError(f"sshd of {name} does not answer:\n{log.read_text(errors='replace')}")

    def close(self) -> None:
        """Take everything down; harmless where it is down already."""
        if self.number:
            self.shorten()
        for master in (self.folder / "cp").glob("*") if self.number else ():
            subprocess.run(["ssh", "-S", str(master), "-O", "exit", "x"], check=False, capture_output=True)
        for name, pid in self._pids.items():
            with contextlib.suppress(ProcessLookupError):
                begun = started(pid)
                os.kill(pid, signal.SIGKILL)
                if not self._starters:  # of another program, which does not wait for it here
                    wait_until_gone(name, pid, begun)
        for starter in self._starters:
            for pipe in (starter.stdin, starter.stdout):
                if pipe:
                    pipe.close()
            try:
                starter.wait(10)
            except subprocess.TimeoutExpired:
                starter.kill()
                starter.wait()
        self._starters, self._pids = [], {}
        if self.number:
            self._drop_link()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _drop_link(self) -> None:
        subprocess.run(["ip", "link", "del", f"lh{self.number}"], check=False, capture_output=True)

    @classmethod
    def attach(cls, number: int) -> Testbed:
        """Return the testbed that another program left up with ``keep``. Raise TestbedError if there is none."""
        bed = cls(keep=True)
        bed.number = number
        try:
            record = json.loads((bed.folder / "testbed.json").read_text())
        except FileNotFoundError:
            raise TestbedError(f"there is no testbed {number}") from None
        if {name: started(pid) for name, pid in record["pids"].items()} != record["started"]:
            shutil.rmtree(bed.folder)
            raise TestbedError(f"testbed {number} had died; its folder is removed")
        bed.hosts, bed._pids = tuple(record["hosts"]), record["pids"]
        return bed

    @staticmethod
    def numbers() -> list[int]:
        """Return the numbers of all testbeds that have a folder."""
        return sorted(int(path.parent.name) for path in STATE.glob("*/testbed.json"))

    # ---- where things are

    @property
    def folder(self) -> Path:
        """The testbed's own folder on the machine."""
        return STATE / str(self.number)

    @property
    def key(self) -> Path:
        """The private key that opens root, mover and plain on all hosts."""
        return self.folder / "key"

    @property
    def known_hosts(self) -> Path:
        """The host keys under all addresses."""
        return self.folder / "known_hosts"

    def address(self, host: str) -> str:
        """Return the address at which the machine, and so Ansible, reaches a host."""
        return network.management(self.number, self.hosts.index(host)).ipv4

    def data_address(self, host: str, *, ipv6: bool = False) -> str:
        """Return the address at which the other hosts reach a host: its longhaul_address."""
        found = network.data(self.number, self.hosts.index(host))
        return found.ipv6 if ipv6 else found.ipv4

    def inventory(
        self,
        path: Path,
        *,
        user: str = "root",
        data: bool = True,
        ipv6: bool = False,
        extra: dict[str, Any] | None = None,
    ) -> Path:
        """Write an inventory (JSON, which is YAML) of the hosts, and give its path.

        ``user`` is root, mover (becomes root with a password) or plain (cannot). ``data=False`` leaves
        longhaul_address out, ``ipv6`` gives the IPv6 one. ``extra`` are more variables for all hosts.
        """
        (self.folder / "cp").mkdir(exist_ok=True)
        variables: dict[str, Any] = {
            "ansible_user": user,
            "ansible_ssh_private_key_file": str(self.key),
            "ansible_ssh_common_args": f"-F none -o IdentitiesOnly=yes -o UserKnownHostsFile={self.known_hosts}",
            "ansible_control_path_dir": str(self.folder / "cp"),  # a later testbed has the same addresses
            "ansible_python_interpreter": "/usr/bin/python3",
        }
        if user == "mover":
            variables.update(ansible_become=True, ansible_become_password=SUDO_PASSWORD)
        hosts = {}
        for name in self.hosts:
            hosts[name] = {"ansible_host": self.address(name)}
            if data:
                hosts[name]["longhaul_address"] = self.data_address(name, ipv6=ipv6)
        path.write_text(json.dumps({"all": {"hosts": hosts, "vars": {**variables, **(extra or {})}}}, indent=2))
        return path
