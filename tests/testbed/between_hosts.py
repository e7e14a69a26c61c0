# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What tests do to the networks between the testbed's hosts: slow, cut, blocked."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from . import network
from .line import Line
from .on_hosts import OnHosts, TestbedError, started, wait_until_gone

DATA = f'{{ "eth1", "{network.LONG}" }}'  # the devices of the data network, as nft names them


class BetweenHosts(OnHosts):
    """The networks of hosts that are up. ``eth1`` is a host's link to the data network."""

    _relay: subprocess.Popen[bytes] | None = None  # the long line, if this program made it

    def shape(self, host: str, rate: str | None) -> None:
        """Hold what a host sends and what it receives on the data network to a rate (``100mbit``); None: no limit."""
        checked = rate is not None
        self._run(host, ["tc", *network.shaping("eth1", rate)], check=checked)
        self._run("hub", ["tc", *network.shaping(f"data{self.hosts.index(host)}", rate)], check=checked)

    @property
    def folder(self) -> Path:
        """The testbed's own folder on the machine."""
        raise NotImplementedError

    def lengthen(self, line: Line) -> None:
        """Have what the first two hosts send each other on the data network take a long line, until ``shorten``.

        IPv4 and IPv6; connections that are there change over to it. ``shape`` and ``cut`` do not concern it.
        """
        self.shorten()
        pids = [self._pids[host] for host in self.hosts[:2]]
        counts = self.folder / "line-counts.json"
        spec = {"pids": pids, "device": network.LONG, "line": line.dump(), "counts": str(counts)}
        relay = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).with_name("line_relay.py")), json.dumps(spec)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=(self.folder / "log").open("ab"),
            start_new_session=True,  # a kept testbed keeps it, too
        )
        self._relay = relay
        with relay.stdout or contextlib.nullcontext() as said:
            if said is None or not said.readline():
                raise TestbedError(f"the line was not made:\n{(self.folder / 'log').read_text(errors='replace')}")
        (self.folder / "line.json").write_text(json.dumps({"pid": relay.pid, "started": started(relay.pid)}))
        number = int(self.folder.name)
        for index, host in enumerate(self.hosts[:2]):
            self._ip(host, network.long_lines(number, index, 1 - index))
            self._forget_lines(host)

    def shorten(self) -> list[dict[str, int]]:
        """Undo ``lengthen``; return what became of the packets from the first host and from the second, if it was."""
        record = self.folder / "line.json"
        try:
            found = json.loads(record.read_text())
        except FileNotFoundError:
            return []
        if started(found["pid"]) == found["started"]:
            os.kill(found["pid"], signal.SIGTERM)
            if self._relay is not None:
                self._relay.wait(10)
            else:  # another program started it
                wait_until_gone("the line", found["pid"], found["started"])
        self._relay = None
        record.unlink()
        for host in self.hosts[:2]:
            self._forget_lines(host)
        counts: list[dict[str, int]] = json.loads((self.folder / "line-counts.json").read_text())
        return counts

    def _forget_lines(self, host: str) -> None:
        """Forget what earlier connections taught the kernel about the way to the other hosts."""
        self._run(host, ["ip", "tcp_metrics", "flush"], check=False)

    @staticmethod
    def congestions() -> list[str]:
        """Return the congestion controls that hosts may have by default: those that every user of the machine may."""
        return Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()

    def set_congestion(self, algorithm: str, *hosts: str) -> None:
        """Set the default congestion control of hosts (none: all): the machine's own may be BBR, and is at first Reno.

        It counts for connections made from then on. Raises TestbedError for one that is not among ``congestions``.
        """
        if algorithm not in self.congestions():
            raise TestbedError(f"the kernel lets hosts have {', '.join(self.congestions())}, and not {algorithm}")
        for host in hosts or self.hosts:
            self._run(host, network.congestion(algorithm))

    def cut(self) -> None:
        """Cut the data network: what the hosts send each other is lost without a word, and no link goes down."""
        self._ip("hub", [f"link set data{index} nomaster" for index in range(len(self.hosts))])

    def mend(self) -> None:
        """Mend what ``cut`` cut."""
        self._ip("hub", [f"link set data{index} master data" for index in range(len(self.hosts))])

    def set_wire_mtu(self, mtu: int) -> None:
        """Let the data network carry packets up to a size in bytes; 1500 at first. The hosts' own links keep theirs."""
        self._ip("hub", [f"link set data{index} mtu {mtu}" for index in range(len(self.hosts))])

    def unplug(self, host: str) -> None:
        """Cut a host off from Ansible: its management port is dead, and no link goes down on the host."""
        self._ip("hub", [f"link set mgmt{self.hosts.index(host)} nomaster"])

    def plug(self, host: str) -> None:
        """Let Ansible reach again what ``unplug`` cut off."""
        self._ip("hub", [f"link set mgmt{self.hosts.index(host)} master mgmt"])

    def block(
        self,
        host: str,
        port: int | None = None,
        *,
        but: int | None = None,
        reject: bool = False,
        established: bool = False,
    ) -> None:
        """Let no new connection from another host to a TCP port of a host in (None: to none of its ports, ``but`` one).

        They get no answer, or a reset with ``reject``. ``established`` stops connections that are there, too. The
        management network is left alone.
        """
        every = ["tcp", "dport", "!=", str(but)] if but else ["meta", "l4proto", "tcp"]
        what = ["tcp", "dport", str(port)] if port else every
        opening = [] if established else ["tcp", "flags", "&", "(syn | ack)", "==", "syn"]
        verdict = ["reject", "with", "tcp", "reset"] if reject else ["drop"]
        chain = ["chain", "inet", "longhaul", "input", "{ type filter hook input priority 0; }"]
        for command in (
            ["add", "table", "inet", "longhaul"],
            ["add", *chain],
            ["add", "rule", "inet", "longhaul", "input", "iifname", DATA, *what, *opening, *verdict],
        ):
            self._run(host, ["nft", *command])

    def unblock(self, host: str) -> None:
        """Let in again what ``block`` kept out."""
        self._run(host, ["nft", "delete", "table", "inet", "longhaul"], check=False)

    def restore(self) -> None:
        """Undo what ``shape``, ``lengthen``, ``set_congestion``, ``cut`` and ``block`` did."""
        self.shorten()
        self.set_congestion(network.FAIR)
        self.mend()
        for host in self.hosts:
            self.shape(host, None)
            self.unblock(host)

    def _run(self, where: str, argv: list[str], *, check: bool = True, input: str = "") -> None:
        """Run one of the machine's programs in the network of a host or of the hub."""
        entering = ["nsenter", "-t", str(self._pids[where]), "-n", "--"]
        ended = subprocess.run([*entering, *argv], input=input, capture_output=True, text=True, check=False)
        if check and ended.returncode:
            raise TestbedError(f"{where}: {argv!r} ended with {ended.returncode}:\n{ended.stderr}{input}")

    def _ip(self, where: str | None, lines: list[str]) -> None:
        text = "".join(line + "\n" for line in lines)
        if where is not None:
            self._run(where, ["ip", "-batch", "-"], input=text)
            return
        ended = subprocess.run(["ip", "-batch", "-"], input=text, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise TestbedError(f"the machine's end of the network could not be made:\n{ended.stderr}{text}")
