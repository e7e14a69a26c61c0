# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A transfer that is killed at half and run again: how many bytes are sent a second time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from ansible_collections.longhaul.fleet.tests.bench import counters
from ansible_collections.longhaul.fleet.tests.bench.measuring import Sample
from ansible_collections.longhaul.fleet.tests.bench.ours import TRANSFERS
from ansible_collections.longhaul.fleet.tests.bench.peers import Peer, kill_all
from ansible_collections.longhaul.fleet.tests.bench.stage import Stage

_MOST = 600  # seconds that half of a transfer may take
_LOOK = 0.002  # seconds from one look at the counter to the next


class Kind(NamedTuple):
    """Something to interrupt. ``started`` runs it beside a block and yields what says whether it still runs."""

    name: str
    run: Callable[[], Sample]
    started: Callable[[], AbstractContextManager[Callable[[], bool]]]
    is_ours: bool = False


def of_peer(stage: Stage, peer: Peer, tree: str) -> Kind:
    """Make a raw program interruptible."""

    @contextlib.contextmanager
    def started():
        with stage.peers.started(peer, tree) as process:
            yield lambda: process.poll() is None

    return Kind(peer.name, lambda: stage.peers.run(peer, tree), started)


def of_transfer(stage: Stage, name: str, tree: str) -> Kind:
    """Make one of the collection's transfers interruptible; its playbook ends by itself when both ends are dead."""

    @contextlib.contextmanager
    def started():
        running = stage.ours.start(tree, **TRANSFERS[name])
        try:
            yield lambda: running.process.poll() is None
        finally:
            running.wait(120)

    return Kind(name, lambda: stage.ours.run(tree, **TRANSFERS[name]), started, is_ours=True)


def runner(stage: Stage, kind: Kind, size: int, unit: int) -> Callable[[], Sample]:
    """Return what interrupts and reruns; an undisturbed run, made once, says how many bytes the whole takes.

    ``size`` are the bytes of the tree. ``unit`` is what may be sent again at most: one range on every stream.
    """
    whole: list[int] = []

    def run() -> Sample:
        if not whole:
            whole.append(_payload(stage, kind.run)[1])
            stage.empty()
        before = counters.wire(stage.bed)
        with kind.started() as alive:
            _wait_for_half(stage, alive, before, size // 2)
            for host in stage.bed.hosts:
                kill_all(stage.bed, host)
        first = counters.wire(stage.bed).since(before).payload
        sample, second = _payload(stage, kind.run)
        again = max(0, first + second - whole[0])
        return {**sample, "sent again": again, "ranges again": again / unit}

    return run


def _payload(stage: Stage, run: Callable[[], Sample]) -> tuple[Sample, int]:
    before = counters.wire(stage.bed)
    sample = run()
    return sample, counters.wire(stage.bed).since(before).payload


def _wait_for_half(stage: Stage, alive: Callable[[], bool], before: counters.Wire, half: int) -> None:
    until = time.monotonic() + _MOST
    while counters.wire(stage.bed).since(before).payload < half:
        if not alive():
            raise RuntimeError("it ended before half of the bytes had been sent")
        if time.monotonic() > until:
            raise RuntimeError(f"half of the bytes were not sent within {_MOST} s")
        time.sleep(_LOOK)
