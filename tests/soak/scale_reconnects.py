# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A line that breaks a hundred times during one transfer: it must end, and send again only what was cut."""

from __future__ import annotations

import random
import time
from pathlib import Path

from ..support.compare import differences
from ..support.relay import Relay
from ..unit.plugins.module_utils._engine.ends import Pair
from .scale import Say, expect, expect_good, trees

CUTS = 100
MIB = 1 << 20
_FILE = 32 * MIB  # which is sent in ranges of 4 MiB
_RANGE = 4 * MIB
_STEP = 12 * MIB  # bytes from one cut to the next
_ALL = 10  # each tenth cut breaks the conversation, too
_STREAMS = 2
_SECONDS = 60.0  # without a byte


def run(cuts: int, say: Say) -> tuple[int, int]:
    """Cut connections so often during one transfer; returns the bytes of the tree, and those that travelled."""
    with trees() as made:
        size = _make(made.source, cuts)
        pair = made.pair(streams=_STREAMS, bwlimit=64 * MIB, timeout=60)
        pair.start("dest")
        began = time.monotonic()
        try:
            with Relay(int(pair.peer["port"])) as relay:
                pair.peer["port"] = relay.port
                pair.start("source")
                done, lost = _cut(relay, pair, cuts)
                outcome = pair.finish()
        finally:
            pair.stop()
        say(
            f"reconnects: {done} cuts of {relay.cuts} connections in {time.monotonic() - began:.0f} s; of {size} bytes "
            f"{relay.passed} travelled, {max(0, relay.passed - size)} of them again"
        )
        expect_good(outcome)
        expect(done == cuts, f"the transfer was over after {done} cuts")
        expect(differences(made.source, made.dest) == [], "the trees differ")
        most = size + lost + size // 100 + MIB
        expect(relay.passed <= most, f"{relay.passed} bytes travelled, and {most} are enough")
        again = expect_good(made.pair(streams=_STREAMS).run())
        expect(not again["changed"], "the second run changed something")
        return size, relay.passed


def _make(root: Path, cuts: int) -> int:
    """Make files that take longer than all cuts: large ones, and small ones between them; returns their bytes."""
    noise = random.Random(1).randbytes(MIB)
    total = 0
    for number in range((cuts + 2) * _STEP // _FILE + 1):
        with open(root / f"large {number:04}", "xb") as file:
            for piece in range(_FILE // MIB):
                file.write(b"%08d %08d" % (number, piece) + noise[17:])
        (root / f"small {number:04}").write_bytes(noise[: 1000 + number])
        total += _FILE + 1000 + number
    return total


def _cut(relay: Relay, pair: Pair, cuts: int) -> tuple[int, int]:
    """Cut connections after each step; returns how often, and the bytes that may have been lost by that.

    What a connection loses are the ranges that the destination has not confirmed: the one that comes and the one
    before it. Whoever cuts all loses that of each connection.
    """
    lost = 0
    for number in range(1, cuts + 1):
        mark, until = relay.passed + _STEP, time.monotonic() + _SECONDS
        seen = relay.passed
        while relay.passed < mark:
            if pair.is_over or pair.processes["source"].poll() is not None:
                return number - 1, lost
            if relay.passed > seen:
                seen, until = relay.passed, time.monotonic() + _SECONDS
            expect(time.monotonic() < until, f"nothing moved for {_SECONDS:.0f} s after {number - 1} cuts")
            time.sleep(0.005)
        before = relay.cuts
        if number % _ALL == 0:
            relay.cut_all()
        else:
            relay.cut_newest()
        lost += (relay.cuts - before) * 2 * _RANGE
    return cuts, lost
