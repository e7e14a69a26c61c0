# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The raw programs that the transfer methods are measured against, run by hand between two testbed hosts."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._ssh.ciphers import choose_ciphers
from ansible_collections.longhaul.fleet.tests.bench.measuring import Sample
from ansible_collections.longhaul.fleet.tests.testbed import Listener, Testbed

PORT = 7100
SSH_FILES = "/run/bench"  # on alpha: what lets it log in to beta
FETCHED = Path(__file__).resolve().parents[2] / ".cache/bench/usr/bin"  # by tests/tools/bench-programs
MAY_LACK = {"rclone": "rclone sftp", "fpsync": "fpsync ssh"}  # programs, and the peers that need them

RSYNCD_CONF = """\
use chroot = no
uid = root
gid = root
[data]
path = /data
read only = no
"""
ALL_ATTRIBUTES = ["--format=posix", "--acls", "--xattrs", "--xattrs-include=*", "--numeric-owner"]


class Peer(NamedTuple):
    """A program on alpha that moves ``/data/<tree>`` into ``/data/out`` on beta, and its server on beta if it has one.

    ``argv`` is given the tree's name. ``until_server_ends``: the work is done only then. ``seconds`` reads the time
    from what the program says, where that is better than a clock beside it.
    """

    name: str
    argv: Callable[[str], list[str]]
    serve: list[str] | None = None
    protocol: str = "tcp"
    port: int = PORT
    until_server_ends: bool = False
    seconds: Callable[[str], float] | None = None


class Peers:
    """The programs, ready to run between the hosts of a testbed."""

    def __init__(self, bed: Testbed) -> None:
        self.bed, self.address = bed, bed.data_address("beta")
        folder = bed.root("alpha") / SSH_FILES.lstrip("/")
        folder.mkdir(mode=0o700)
        shutil.copy(bed.key, folder / "key")
        shutil.copy(bed.known_hosts, folder / "known_hosts")
        (bed.root("beta") / "etc/bench-rsyncd.conf").write_text(RSYNCD_CONF)
        for program in ("rclone", "fpsync", "fpart"):
            found = shutil.which(program, path=str(FETCHED))
            if found:
                shutil.copy(found, bed.root("alpha") / "usr/local/bin" / program)
        self.cipher = best_cipher(bed)
        options = ["-F", "none", "-i", f"{SSH_FILES}/key", "-o", f"UserKnownHostsFile={SSH_FILES}/known_hosts"]
        self._ssh = [*options, "-o", "BatchMode=yes", "-c", self.cipher]
        self.shell = shlex.join(["ssh", *self._ssh])
        self._daemon = ["rsync", "--daemon", "--no-detach", "--config=/etc/bench-rsyncd.conf", f"--port={PORT}"]
        self._by_name = {peer.name: peer for peer in self._make()}

    def lacking(self) -> dict[str, str]:
        """Return the tools that cannot be measured here, with the reason."""
        return {
            name: f"{program} is not there: see tests/tools/bench-programs"
            for program, name in MAY_LACK.items()
            if self.bed.exec("alpha", ["which", program], check=False).returncode
        }

    def __getitem__(self, name: str) -> Peer:
        return self._by_name[name]

    def rsync_ssh(self, name: str, *options: str, to: str = "/data/out/") -> Peer:
        """Return rsync over ssh, with the best cipher."""
        return Peer(name, lambda tree: ["rsync", *options, "-e", self.shell, f"/data/{tree}/", f"{self.address}:{to}"])

    def rsync_daemon(self, name: str, *options: str) -> Peer:
        """Return rsync to a daemon."""
        url = f"rsync://{self.address}:{PORT}/data/out/"
        return Peer(name, lambda tree: ["rsync", *options, f"/data/{tree}/", url], self._daemon)

    def tar_nc(self, name: str, *create: str, extract: tuple[str, ...] = ()) -> Peer:
        """Return tar through netcat; the end is when the receiving tar has ended."""
        unpack = shlex.join(["tar", *extract, "-xpf", "-", "-C", "/data/out"])
        pack = shlex.join(["tar", *create, "-cf", "-"])
        receive = ["sh", "-c", f"nc.openbsd -l {PORT} | {unpack}"]
        return Peer(
            name,
            lambda tree: ["sh", "-c", f"{pack} -C /data/{tree} . | nc.openbsd -N {self.address} {PORT}"],
            receive,
            until_server_ends=True,
        )

    def _make(self) -> list[Peer]:
        sftp = [
            *("rclone", "copy", "--config", "", "--sftp-host", self.address, "--sftp-user", "root"),
            *("--sftp-key-file", f"{SSH_FILES}/key", "--sftp-known-hosts-file", f"{SSH_FILES}/known_hosts"),
            "--sftp-disable-hashcheck",
        ]
        put = shlex.join(["sftp", "-q", "-b", "-", *self._ssh, self.address])
        return [
            Peer("cp -a on one host", lambda tree: ["cp", "-a", f"/data/{tree}", "/data/copy"]),
            Peer(
                "iperf3",
                lambda tree: ["iperf3", "-c", self.address, "-p", str(PORT), "-n", self._size(tree), "-J"],
                ["iperf3", "-s", "-1", "-p", str(PORT)],
                "tcp6",
                seconds=lambda said: float(json.loads(said)["end"]["sum_received"]["seconds"]),
            ),
            self.rsync_ssh("rsync -aHAX ssh", "-aHAX"),
            self.rsync_daemon("rsync -a daemon", "-a"),
            self.rsync_daemon("rsync -aHAX daemon", "-aHAX"),
            self.tar_nc("tar nc"),
            self.tar_nc("tar nc all attributes", *ALL_ATTRIBUTES, extract=("--acls", "--xattrs", "--xattrs-include=*")),
            Peer("scp", lambda tree: ["scp", "-qrp", *self._ssh, f"/data/{tree}", f"{self.address}:/data/out/"]),
            Peer("sftp", lambda tree: ["sh", "-c", f"echo put -rp /data/{tree} /data/out/ | {put}"]),
            Peer("rclone sftp", lambda tree: [*sftp, f"/data/{tree}", ":sftp:/data/out"]),
            Peer("fpsync ssh", self._fpsync),
        ]

    def _fpsync(self, tree: str) -> list[str]:
        """Return fpsync with two rsyncs at a time, and about eight pieces of work whatever the tree is."""
        files = len(self.bed.exec("alpha", ["find", f"/data/{tree}", "-type", "f", "-printf", "x"]).stdout)
        pieces = ["-f", str(max(1, files // 8)), "-s", str(max(1, int(self._size(tree)) // 8))]
        ends = [f"/data/{tree}/", f"root@{self.address}:/data/out/"]
        attributes = "-lptgoDHAX --numeric-ids"  # -a without -r, since fpsync gives each rsync its list of files
        return ["env", f"RSYNC_RSH={self.shell}", "fpsync", "-n", "2", *pieces, "-o", attributes, *ends]

    def _size(self, tree: str) -> str:
        return self.bed.exec("alpha", ["du", "-sb", f"/data/{tree}"]).stdout.split()[0]

    def run(self, peer: Peer, tree: str) -> Sample:
        """Run a peer to its end; give the seconds it took."""
        argv = peer.argv(tree)
        with self._serving(peer) as server:
            begun = time.monotonic()
            said = self.bed.exec("alpha", argv, timeout=3600).stdout
            if server and peer.until_server_ends:
                server.wait(60)
            seconds = time.monotonic() - begun
        return {"seconds": peer.seconds(said) if peer.seconds else seconds}

    def timed(self, host: str, argv: list[str]) -> Sample:
        """Run a program on one host to its end; give the seconds it took."""
        begun = time.monotonic()
        self.bed.exec(host, argv, timeout=3600)
        return {"seconds": time.monotonic() - begun}

    @contextlib.contextmanager
    def started(self, peer: Peer, tree: str) -> Iterator[subprocess.Popen[Any]]:
        """Run a peer beside the block, which may kill it; whatever is left of it ends with the block."""
        with self._serving(peer):
            process = self.bed.popen(
                "alpha", peer.argv(tree), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                yield process
            finally:
                kill_all(self.bed, "alpha")
                process.wait(10)

    @contextlib.contextmanager
    def _serving(self, peer: Peer) -> Iterator[subprocess.Popen[Any] | None]:
        """Run the peer's server on beta for the time of a block, which begins when it listens."""
        if peer.serve is None:
            yield None
            return
        server = self.bed.popen("beta", peer.serve, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 10
            while Listener(peer.protocol, peer.port) not in self.bed.listeners("beta"):
                if time.monotonic() > until or server.poll() is not None:
                    raise RuntimeError(f"{peer.serve!r} does not listen on port {peer.port}")
                time.sleep(0.01)
            yield server
        finally:
            kill_all(self.bed, "beta")
            server.wait(10)


def kill_all(bed: Testbed, host: str) -> None:
    """Kill everything on a host that is not the testbed's own."""
    pids = [str(process.pid) for process in bed.processes(host)]
    if pids:
        bed.exec(host, ["kill", "-9", "--", *pids], check=False)  # some may end by themselves meanwhile


def best_cipher(bed: Testbed) -> str:
    """Return the cipher that the collection itself would choose between the two hosts."""
    offered = bed.exec("alpha", ["ssh", "-F", "none", "-G", "beta"]).stdout.splitlines()
    (ciphers,) = [line.split()[1].split(",") for line in offered if line.startswith("ciphers ")]
    aes = " aes " in Path("/proc/cpuinfo").read_text()
    return choose_ciphers(ciphers, None, aes)[0].split(",", maxsplit=1)[0]
