# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trees from disk to disk: nothing of the source is in memory, and the end is when the destination's disk has all."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ansible_collections.longhaul.fleet.tests.bench import counters, data
from ansible_collections.longhaul.fleet.tests.bench.measuring import Sample, Tool
from ansible_collections.longhaul.fleet.tests.bench.ours import STREAMS
from ansible_collections.longhaul.fleet.tests.bench.stage import Stage
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.loop_disk import loop_disk

PART = "disk"
KINDS = ("ext4", "xfs")
TREES = ("large", "small")
PEERS = ("cp -a on one host", "rsync -aHAX ssh", "rsync -aHAX daemon", "tar nc all attributes")
TITLES = {
    f"{PART}: {kind}, {tree}": f"{'a few large' if tree == 'large' else 'many small'} files from {kind} to {kind}"
    for kind in KINDS
    for tree in TREES
}
_SOURCE, _DEST, _COPY = ("alpha", "/data/disk"), ("beta", "/data/out"), ("alpha", "/data/copy")
_IMAGES = Path(__file__).resolve().parents[2] / ".build"  # on the disk that is measured
_FILES = 4
_LEAST = 1 << 30  # bytes of a disk
_ROOM = 2.5  # times the large files
_DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def measure(stage: Stage) -> None:
    """Measure both trees on each file system."""
    for kind in KINDS:
        with mounted(stage, kind, _ROOM, (_SOURCE,), (_DEST, _COPY), direct=True):
            for tree in TREES:
                _measure_tree(stage, kind, tree)
            _prepare(stage)


@contextlib.contextmanager
def mounted(stage: Stage, kind: str, room: float, *disks: Sequence[tuple[str, str]], direct: bool) -> Iterator[None]:
    """Mount disks of a kind for the time of a block, each at its places: a host and a path there.

    ``room`` is their size in times of the large files; ``direct``: the machine's own cache holds nothing of them.
    """
    size = max(_LEAST, int(room * stage.options.large))
    _IMAGES.mkdir(exist_ok=True)
    with contextlib.ExitStack() as held:
        folder = held.enter_context(tempfile.TemporaryDirectory(dir=_IMAGES))
        for places in disks:
            held.enter_context(loop_disk(stage.bed, kind, folder, size, *places, direct=direct))
        yield


def used(stage: Stage, path: str) -> int:
    """Return the bytes that are in use on a disk of the destination, after all was written to it."""
    stage.bed.exec("beta", ["sync", "-f", path], timeout=600)
    return counters.used(stage.bed, "beta", path.lstrip("/"))


def _measure_tree(stage: Stage, kind: str, tree: str) -> None:
    root = stage.place("disk") / tree
    if tree == "large":
        make_big_files(root, stage.options.large, _FILES)
    else:
        data.make_small(root, stage.options.files)
    tools = list(_tools(stage, f"disk/{tree}"))
    stage.measure(f"{PART}: {kind}, {tree}", tools, lambda: _prepare(stage))
    stage.bed.exec("alpha", ["rm", "-r", f"/data/disk/{tree}"], timeout=600)


def _prepare(stage: Stage) -> None:
    """Have an empty destination, nothing to write on either disk, and nothing of them in memory."""
    stage.bed.exec("beta", ["find", "/data/out", "-mindepth", "1", "-delete"], timeout=600)
    for host, path in (_SOURCE, _DEST):
        stage.bed.exec(host, ["sync", "-f", path], timeout=600)
    _DROP_CACHES.write_text("3\n", encoding="ascii")


def _tools(stage: Stage, tree: str) -> Iterator[Tool]:
    for name in PEERS:
        yield _synced(stage, stage.peer(name, tree))
    for name in STREAMS:
        yield _until_synced(stage.transfer(name, tree, verify="none", sync="data"))


def _synced(stage: Stage, tool: Tool) -> Tool:
    """Return a program after which the disk is waited for."""

    def wait(found: Sample) -> Sample:
        waited = stage.peers.timed("beta", ["sync", "-f", "/data/out"])["seconds"]
        return {"seconds": found["seconds"] + waited, "sync": waited}

    return tool.adding(wait)


def _until_synced(tool: Tool) -> Tool:
    """Add the seconds in which a transfer's last execution waits for the disk to those of its job."""
    return tool.adding(lambda found: {"seconds": found["seconds"] + found["sync"]})
