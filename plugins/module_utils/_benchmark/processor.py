# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure what one core of a host encrypts, hashes and compresses in a second, and what others use of all cores.

Rates are by the processor time of this thread, so other work on the host does not lower them. Python has no cipher of
its own: TLS runs between two ends in memory, as the stream does it. The ciphers of ssh are the same algorithms in TLS
1.2, where one can be chosen; ssh's own packets cost a little more.
"""

from __future__ import annotations

import os
import ssl
import subprocess
import time
import zlib
from functools import partial
from typing import TYPE_CHECKING, Callable, NamedTuple, cast

from .._core.files import ALGORITHMS, new_hash
from .._core.subprocesses import find_program, run
from .._core.time_accounting import cores
from .._engine.content import zstd

if TYPE_CHECKING:
    from typing import TypedDict

    class ProcessorRates(TypedDict):
        """Rates of a processor: bytes a second of one core, by algorithm."""

        cores: int
        load: float  # share of all cores that others used meanwhile
        ciphers: dict[str, float]  # ssh's names, and TLS
        hashes: dict[str, float]
        compression: dict[str, float]  # algorithm-level; bytes of input

else:
    ProcessorRates = dict

TLS = "tls"
_SSH = {  # names in ssh, and those of the same algorithms in TLS 1.2
    "aes128-gcm@openssh.com": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "aes256-gcm@openssh.com": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "chacha20-poly1305@openssh.com": "ECDHE-ECDSA-CHACHA20-POLY1305",
}
_ZLIB_LEVELS, _ZSTD_LEVELS = (1, 6), (1, 3)
_PIECE = 512 << 10  # bytes at once, as the stream has it
_LEAST_SECONDS = 0.02  # for each rate
_SSH_SECONDS = 5.0

MakeContext = Callable[[bool], ssl.SSLContext]  # told whether for the serving end


class Jiffies(NamedTuple):
    """Processor time since the boot, in units of the kernel: all cores together, and the part that was idle."""

    total: int
    idle: int


def read_jiffies() -> Jiffies | None:
    """Return the processor time of this host; None if the system does not say."""
    try:
        with open("/proc/stat", encoding="ascii", errors="replace") as stream:
            return parse_jiffies(stream.readline())
    except OSError:
        return None


def parse_jiffies(line: str) -> Jiffies | None:
    """Return what the first line of ``/proc/stat`` says; None if it says nothing. Pure."""
    words = line.split()
    if len(words) < 6 or words[0] != "cpu" or not all(word.isdigit() for word in words[1:]):
        return None
    numbers = [int(word) for word in words[1:9]]  # those of guests are counted in the first ones, too
    return Jiffies(sum(numbers), numbers[3] + numbers[4])


def load_between(before: Jiffies | None, after: Jiffies | None, own: float) -> float:
    """Return which share of all cores others used, where this process used ``own`` units. Pure."""
    if before is None or after is None or after.total <= before.total:
        return 0.0
    total = after.total - before.total
    return min(1.0, max(0.0, (total - (after.idle - before.idle) - own) / total))


def measure(data: bytes, make: MakeContext, seconds: float, gap: Callable[[str], None]) -> ProcessorRates:
    """Measure this host's processor on ``data`` for about ``seconds``."""
    before, began = read_jiffies(), time.process_time()
    count = 1 + len(_SSH) + len(ALGORITHMS) + len(_ZLIB_LEVELS) + len(_ZSTD_LEVELS)
    share = max(_LEAST_SECONDS, seconds / count)
    found: ProcessorRates = {
        "cores": cores(),
        "load": 0.0,
        "ciphers": _ciphers(data, make, share, gap),
        "hashes": {name: rate_of(new_hash(name).update, data, share) for name in ALGORITHMS},
        "compression": {
            **{f"zlib-{level}": rate_of(partial(zlib.compress, level=level), data, share) for level in _ZLIB_LEVELS},
            **{
                f"zstd-{level}": rate_of(partial(zstd.compress, level=level), data, share)
                for level in (_ZSTD_LEVELS if zstd.available() else ())
            },
        },
    }
    own = (time.process_time() - began) * os.sysconf("SC_CLK_TCK")
    found["load"] = load_between(before, read_jiffies(), own)
    return found


def rate_of(work: Callable[[memoryview], object], data: bytes, seconds: float) -> float:
    """Return how many bytes a second one core works through, piece by piece, for ``seconds`` at least."""
    view, at, done = memoryview(data), 0, 0
    began, until = time.thread_time(), time.monotonic() + seconds
    while not done or time.monotonic() < until:
        piece = view[at : at + _PIECE]
        work(piece)
        done += len(piece)
        at = at + _PIECE if at + _PIECE < len(data) else 0
    return done / max(time.thread_time() - began, 1e-6)


def _ciphers(data: bytes, make: MakeContext, share: float, gap: Callable[[str], None]) -> dict[str, float]:
    found = {}
    wanted = {TLS: "", **{name: suite for name, suite in _SSH.items() if name in _ciphers_of_ssh()}}
    for name, suite in wanted.items():
        try:
            found[name] = cipher_rate(make(False), make(True), suite, data, share)
        except (ssl.SSLError, OSError, ValueError) as error:
            gap(f"The rate of {name} could not be measured: {error}.")
    if len(found) > 1:
        gap("The rates of ssh's ciphers are those of the same algorithms in TLS: ssh itself is a little slower.")
    return found


def _ciphers_of_ssh() -> frozenset[str]:
    program = find_program("ssh")
    if not program:
        return frozenset()
    try:
        said = run([program, "-Q", "cipher"], timeout=_SSH_SECONDS).stdout
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()
    return frozenset(said.decode(errors="replace").split())


def cipher_rate(client: ssl.SSLContext, server: ssl.SSLContext, suite: str, data: bytes, seconds: float) -> float:
    """Return what one core encrypts or decrypts in a second, whichever is slower, with a suite of TLS 1.2.

    An empty suite: with what TLS 1.3 agrees on. Raises SSLError.
    """
    if suite:
        for context in (client, server):
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(suite)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sender = client.wrap_bio(to_client, to_server, server_side=False)
    receiver = server.wrap_bio(to_server, to_client, server_side=True)
    _shake_hands(sender, receiver)
    view, room = memoryview(data), memoryview(bytearray(_PIECE))
    at = done = 0
    spent = {sender: 0.0, receiver: 0.0}
    until = time.monotonic() + seconds
    while not done or time.monotonic() < until:
        began = time.thread_time()
        left = count = sender.write(view[at : at + _PIECE])
        turned = time.thread_time()
        while left > 0:
            left -= cast(int, receiver.read(left, room))
        spent[sender] += turned - began
        spent[receiver] += time.thread_time() - turned
        done += count
        at = at + count if at + count < len(data) else 0
    return done / max(*spent.values(), 1e-6)


def _shake_hands(*ends: ssl.SSLObject) -> None:
    waiting = list(ends)
    for _round in range(20):
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                continue
        if not waiting:
            return
    raise ssl.SSLError("the handshake does not end")
