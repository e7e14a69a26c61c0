# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The raw programs that the transfer methods are measured against, run by hand between two testbed hosts."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

from ansible_collections.longhaul.fleet.tests.testbed import Listener, Testbed

PORT = 7100
SSH_FILES = "/run/bench"  # on alpha: what lets it log in to beta

RSYNCD_CONF = """\
use chroot = no
uid = root
gid = root
[out]
path = /data/out
read only = no
"""


class Peers:
    """Moves ``/data/<tree>`` on alpha to an empty ``/data/out`` on beta; each method gives the seconds it took."""

    def __init__(self, bed: Testbed) -> None:
        self.bed, self.address = bed, bed.data_address("beta")
        folder = bed.root("alpha") / SSH_FILES.lstrip("/")
        folder.mkdir(mode=0o700)
        shutil.copy(bed.key, folder / "key")
        shutil.copy(bed.known_hosts, folder / "known_hosts")
        (bed.root("beta") / "etc/bench-rsyncd.conf").write_text(RSYNCD_CONF)
        options = ("-F", "none", "-i", f"{SSH_FILES}/key", "-o", f"UserKnownHostsFile={SSH_FILES}/known_hosts")
        self._ssh = [*options, "-o", "BatchMode=yes"]

    def all(self) -> dict[str, Callable[[str], float]]:
        """Give the peers by the name that the report uses."""
        return {
            "cp -a (on one host)": self.copy,
            "iperf3": self.iperf,
            "rsync -aHAX over ssh": self.rsync_ssh,
            "rsync -aHAX to a daemon": self.rsync_daemon,
            "tar | nc": self.tar_nc,
            "scp -rp": self.scp,
        }

    def copy(self, tree: str) -> float:
        """Copy on alpha alone: what the file system and the processor allow."""
        self.bed.exec("alpha", ["rm", "-rf", "/data/copy"])
        seconds = self._timed("alpha", ["cp", "-a", f"/data/{tree}", "/data/copy"])
        self.bed.exec("alpha", ["rm", "-rf", "/data/copy"])
        return seconds

    def iperf(self, tree: str) -> float:
        """Send as many bytes as the tree holds, of no file: what the wire allows."""
        count = self.bed.exec("alpha", ["du", "-sb", f"/data/{tree}"]).stdout.split()[0]
        with self._serving(["iperf3", "-s", "-1", "-p", str(PORT)], "tcp6"):
            said = self.bed.exec("alpha", ["iperf3", "-c", self.address, "-p", str(PORT), "-n", count, "-J"]).stdout
        return float(json.loads(said)["end"]["sum_received"]["seconds"])

    def rsync_ssh(self, tree: str) -> float:
        """Run rsync over ssh with what ssh chooses."""
        shell = "ssh " + " ".join(self._ssh)
        return self._timed("alpha", ["rsync", "-aHAX", "-e", shell, f"/data/{tree}/", f"{self.address}:/data/out/"])

    def rsync_daemon(self, tree: str) -> float:
        """Run rsync to a daemon."""
        argv = ["rsync", "--daemon", "--no-detach", "--config=/etc/bench-rsyncd.conf", f"--port={PORT}"]
        with self._serving(argv, "tcp"):
            target = f"rsync://{self.address}:{PORT}/out/"
            return self._timed("alpha", ["rsync", "-aHAX", f"/data/{tree}/", target])

    def tar_nc(self, tree: str) -> float:
        """Send a tar archive through netcat; the end is when the receiving tar has ended."""
        receive = f"nc.openbsd -l {PORT} | tar -xpf - -C /data/out"
        send = f"tar -cf - -C /data/{tree} . | nc.openbsd -N {self.address} {PORT}"
        with self._serving(["sh", "-c", receive], "tcp") as server:
            begun = time.monotonic()
            self.bed.exec("alpha", ["sh", "-c", send], timeout=3600)
            server.wait(60)
            return time.monotonic() - begun

    def scp(self, tree: str) -> float:
        """Run scp with what ssh chooses."""
        return self._timed("alpha", ["scp", "-qrp", *self._ssh, f"/data/{tree}", f"{self.address}:/data/out/"])

    def _timed(self, host: str, argv: list[str]) -> float:
        begun = time.monotonic()
        self.bed.exec(host, argv, timeout=3600)
        return time.monotonic() - begun

    @contextlib.contextmanager
    def _serving(self, argv: list[str], protocol: str) -> Iterator[subprocess.Popen[Any]]:
        """Run a server on beta for the time of a block, which begins when it listens."""
        server = self.bed.popen("beta", argv, stdout=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 10
            while Listener(protocol, PORT) not in self.bed.listeners("beta"):
                if time.monotonic() > until or server.poll() is not None:
                    raise RuntimeError(f"{argv!r} does not listen on port {PORT}")
                time.sleep(0.01)
            yield server
        finally:
            for process in self.bed.processes("beta"):
                self.bed.exec("beta", ["kill", str(process.pid)], check=False)
            server.wait(10)
