# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Slow transfers of which the cause is known: whether the result names it.

Each is a whole task between two hosts of a testbed, of which one thing is made slow. Whatever it is, the result must
name it (``bottleneck.name`` and ``bottleneck.cause``), or advise what belongs to it. A small send buffer is not among
them: Linux 6.18 lets a connection have far more under way than ``tcp_wmem`` says.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any, Callable, ContextManager, Iterator, NamedTuple

from ansible_collections.longhaul.fleet.tests.support.collections_folder import collections_folder
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.slow_disk import counted_slow_disk, slow_disk, why_not
from ansible_collections.longhaul.fleet.tests.testbed import Line, Testbed

from .scale import Say

ROUNDS = 6
MIB = 1 << 20
SLOW = 12 * MIB  # bytes a second of a slow disk
_SOURCE, _DEST = "/data/tree", "/data/out"


class Cause(NamedTuple):
    """One thing that is slow. ``method`` is stream, unless the options name another one."""

    name: str
    provoke: Callable[[Testbed], ContextManager[object]]
    size: int  # bytes that are sent
    expected: str  # bottleneck.name, or one of several after each other
    cause: str = ""  # bottleneck.cause
    sentence: str = ""  # a part of it
    options: dict[str, Any] = {}


@contextlib.contextmanager
def _nothing(_bed: Testbed) -> Iterator[None]:
    yield


def _line(line: Line, congestion: str = "", sysctl: tuple[str, str, str] | None = None) -> Any:
    """Return what puts a line between the hosts; ``sysctl``: a host, and what it has under which name."""

    @contextlib.contextmanager
    def provoke(bed: Testbed) -> Iterator[None]:
        kept = ""
        if congestion:
            bed.set_congestion(congestion)
        if sysctl:
            kept = bed.exec(sysctl[0], ["cat", sysctl[1]]).stdout.strip()
            bed.exec(sysctl[0], ["sh", "-c", f"echo {sysctl[2]} > {sysctl[1]}"])
        bed.lengthen(line)
        try:
            yield
        finally:
            bed.restore()
            if sysctl:
                bed.exec(sysctl[0], ["sh", "-c", f"echo {kept} > {sysctl[1]}"])

    return provoke


def _disk(host: str, path: str, counted: bool = False) -> Any:
    def provoke(bed: Testbed) -> ContextManager[Path]:
        return (counted_slow_disk if counted else slow_disk)(bed, host, path, 400 * MIB, SLOW)

    return provoke


@contextlib.contextmanager
def _shaped(bed: Testbed) -> Iterator[None]:
    bed.shape("alpha", "60mbit")
    try:
        yield
    finally:
        bed.shape("alpha", None)


@contextlib.contextmanager
def _slow_tls(bed: Testbed) -> Iterator[None]:
    """Let both hosts agree on a cipher of TLS that has no instructions of its own."""
    keep = f"cp -p {_OPENSSL} {_OPENSSL}.kept"
    for host in ("alpha", "beta"):  # which have this folder for themselves
        bed.exec(host, ["sh", "-c", f"{keep}; printf '{_CHACHA}' > {_OPENSSL}"])
    try:
        yield
    finally:
        for host in ("alpha", "beta"):
            bed.exec(host, ["mv", f"{_OPENSSL}.kept", _OPENSSL])


_OPENSSL = "/etc/ssl/openssl.cnf"
_CHACHA = "\\n".join(
    (
        *("openssl_conf = start", "[start]", "ssl_conf = tls", "[tls]", "system_default = every", "[every]"),
        "Ciphersuites = TLS_CHACHA20_POLY1305_SHA256\\n",
    )
)


@contextlib.contextmanager
def _busy(bed: Testbed) -> Iterator[None]:
    """Let what is run at the source share one processor with programs that do nothing else than use it."""
    servers = bed.exec("alpha", ["pgrep", "-x", "sshd"]).stdout.split()
    every = os.sched_getaffinity(0)
    mask = f"{1 << min(every):x}"
    spinners = bed.exec("alpha", ["sh", "-c", f"for _ in 1 2 3; do taskset {mask} sh -c {_SPIN!r} & echo $!; done"])
    try:
        for server in servers:
            bed.exec("alpha", ["taskset", "-ap", mask, server])
        yield
    finally:
        bed.exec("alpha", ["kill", *spinners.stdout.split()])
        whole = f"{sum(1 << one for one in every):x}"
        for server in servers:
            bed.exec("alpha", ["taskset", "-ap", whole, server])


_SPIN = "exec >/dev/null 2>&1; while :; do :; done"
_CLEAN = Line(rtt=0.06, rate=200_000_000)
_TCP = "/proc/sys/net/ipv4/tcp_"
CAUSES = (
    Cause("bwlimit", _nothing, 40 * MIB, "network", "bwlimit", options={"bwlimit": "8m"}),
    Cause("bwlimit, rsync", _nothing, 120 * MIB, "network", "bwlimit", options={"bwlimit": "8m", "method": "rsync"}),
    Cause("a shaped link", _shaped, 40 * MIB, "network", sentence="both ends waited for the network"),
    Cause("a full line", _line(Line(rtt=0.04, rate=60_000_000)), 40 * MIB, "network", "full_line"),
    Cause(
        "losses",
        _line(Line(rtt=0.06, rate=60_000_000, loss=0.02), "reno"),
        *(16 * MIB, "network", "loss"),
        options={"congestion": "none", "streams": 1},
    ),
    Cause(
        "a small receive window",
        _line(_CLEAN, sysctl=("beta", f"{_TCP}rmem", "4096 65536 131072")),
        *(12 * MIB, "network", "receive_window"),
        options={"streams": 1},
    ),
    Cause("a slow disk at the source", _disk("alpha", _SOURCE), 80 * MIB, "source_disk"),
    Cause("a slow disk at the destination", _disk("beta", _DEST), 80 * MIB, "destination_disk"),
    *(
        Cause(
            f"a slow disk at the {side} that is counted, {method}",
            _disk(host, path, counted=True),
            *(160 * MIB, f"{side}_disk"),
            sentence=f"the {side}'s disk was busy for",
            options={"method": method},
        )
        for side, host, path in (("source", "alpha", _SOURCE), ("destination", "beta", _DEST))
        for method in ("stream", "rsync", "sftp")
    ),
    Cause(
        "an expensive cipher",
        _slow_tls,
        *(1800 * MIB, "source_cpu destination_cpu", "cipher"),
        options={"streams": 1, "encryption": "required"},
    ),
    Cause("compression", _nothing, 120 * MIB, "source_cpu", options={"compress": "zlib", "streams": 1}),
    Cause(
        "a busy processor",
        _busy,
        *(60 * MIB, "source_cpu", "contention"),
        options={"compress": "zlib", "streams": 1},
    ),
)


def run(only: str | None, rounds: int, say: Say) -> tuple[int, int]:
    """Provoke each cause so often; return how many were named, and how many there were."""
    named = tried = 0
    causes = [cause for cause in CAUSES if not only or only in cause.name]
    with Testbed(data_size="2500m") as bed, tempfile.TemporaryDirectory() as folder:
        inventory = bed.inventory(Path(folder) / "inventory.yml", extra={"ansible_pipelining": True})
        playbooks = Playbooks(inventory, Path(folder), collections_folder())
        for cause in causes:
            if "disk" in cause.name and why_not():
                say(f"{cause.name}: cannot be provoked here: {why_not()}")
                continue
            for _round in range(rounds):
                found = _transfer(bed, playbooks, cause)
                good = _is_named(cause, found)
                tried, named = tried + 1, named + good
                said = f"{found['name']} {found['cause']}".strip()
                say(f"{cause.name}: {said}. {found['sentence']}" + ("" if good else f" WRONG: {found['evidence']}"))
    return named, tried


def _is_named(cause: Cause, found: dict[str, Any]) -> bool:
    is_cause = not cause.cause or found["cause"] == cause.cause
    return found["name"] in cause.expected.split() and is_cause and cause.sentence in found["sentence"].lower()


def _transfer(bed: Testbed, playbooks: Playbooks, cause: Cause) -> dict[str, Any]:
    """Move a tree under one cause, and return what the result says held it back."""
    with cause.provoke(bed):
        source, dest = (bed.root(host) / path[1:] for host, path in (("alpha", _SOURCE), ("beta", _DEST)))
        if "compress" in cause.options:
            source.mkdir()
            with open(source / "digits", "w", encoding="ascii") as file:
                for number in range(cause.size // MIB):
                    file.write(random.Random(number).randbytes(MIB // 2).hex())
        else:
            make_big_files(source, cause.size)
        bed.exec("alpha", ["sh", "-c", "sync; echo 3 > /proc/sys/vm/drop_caches"], check=False)
        ends = {"src_host": "alpha", "src": f"{_SOURCE}/", "dest_host": "beta", "dest": _DEST}
        task = {"name": "Transfer", "longhaul.fleet.transfer": {"method": "stream", **ends, **cause.options}}
        ended = playbooks.run([task], hosts="alpha", timeout=300).expect_success()
        found: dict[str, Any] = ended.result("Transfer")["bottleneck"]
    for folder in (source, dest):
        shutil.rmtree(folder, ignore_errors=True)
    return found
