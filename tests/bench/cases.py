# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of the benchmark: which tools move which tree, from which state of the destination, over which wire."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.ranges import unit
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.plan import STREAMS_TRIED, STREAMS_UNASKED
from ansible_collections.longhaul.fleet.tests.bench import (
    backup_tools,
    counters,
    data,
    disk,
    image_backup,
    interruption,
    long_line,
)
from ansible_collections.longhaul.fleet.tests.bench.measuring import Sample, Tool
from ansible_collections.longhaul.fleet.tests.bench.ours import STREAMS, TRANSFERS
from ansible_collections.longhaul.fleet.tests.bench.peers import ALL_ATTRIBUTES
from ansible_collections.longhaul.fleet.tests.bench.stage import Stage
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.testbed import network

LARGE_FILES = 4
ALL_PEERS = (
    *("cp -a on one host", "iperf3", "rsync -aHAX ssh", "rsync -a daemon", "rsync -aHAX daemon", "tar nc"),
    *("tar nc all attributes", "scp", "sftp", "rclone sftp", "fpsync ssh"),
)
LOOKING_PEERS = ("rsync -aHAX ssh", "rsync -a daemon", "rsync -aHAX daemon", "rclone sftp", "fpsync ssh")
SENDERS = ("engine.pyz", "rsync")  # words in the argv of the process that sends


class Part(NamedTuple):
    """A part of the benchmark; ``about`` says in a line what it measures."""

    about: str
    measure: Callable[[Stage], None]


def start(stage: Stage) -> None:
    """A single small file: what a job costs before it moves anything."""
    data.make_small(stage.place("start"), 1)
    tools = [stage.peer(name, "start") for name in LOOKING_PEERS] + [stage.transfer(n, "start") for n in TRANSFERS]
    stage.measure("start", tools, stage.empty)


def large(stage: Stage) -> None:
    make_big_files(stage.place("large"), stage.options.large, LARGE_FILES)
    tools = [stage.peer(name, "large") for name in ALL_PEERS] + [stage.transfer(name, "large") for name in TRANSFERS]
    stage.measure("large", tools, stage.empty)


def small(stage: Stage) -> None:
    data.make_small(stage.place("small"), stage.options.files)
    tools = [stage.peer(name, "small") for name in ALL_PEERS] + [stage.transfer(name, "small") for name in TRANSFERS]
    stage.measure("small", tools, stage.empty)


def warm(stage: Stage) -> None:
    data.make_small(stage.place("small"), stage.options.files)
    stage.fill("small")
    tools = [stage.peer(name, "small") for name in LOOKING_PEERS]
    tools += [stage.transfer(name, "small") for name in TRANSFERS]
    stage.measure("warm", tools, lambda: None)


def sparse(stage: Stage) -> None:
    data.make_sparse(stage.place("sparse"), stage.options.large)

    peers = [
        stage.peers.rsync_daemon("rsync -aHAXS daemon", "-aHAXS"),
        stage.peers.rsync_ssh("rsync -aHAXS ssh", "-aHAXS"),
        stage.peers.tar_nc("tar --sparse nc", *ALL_ATTRIBUTES, "--sparse"),
    ]
    tools = [stage.peer(peer, "sparse") for peer in peers] + [stage.transfer(name, "sparse") for name in STREAMS]
    stage.measure(
        "sparse", [tool.adding(lambda _found: {"allocated": counters.used(stage.bed)}) for tool in tools], stage.empty
    )


def changed(stage: Stage) -> None:
    """The destination has the file as it was before 1 % of it was changed in place."""
    (path,) = make_big_files(stage.place("changed"), stage.options.large)
    basis = stage.place("basis", "beta")
    basis.mkdir()
    stage.bed.exec("beta", ["mkdir", "/data/out"])
    stage.fill("changed")
    stage.bed.exec("beta", ["cp", "-a", "/data/out/.", "/data/basis/"], timeout=600)
    edited = data.edit(path, image_backup.SHARE)

    def prepare() -> None:
        stage.empty()
        stage.bed.exec("beta", ["cp", "-a", "/data/basis/.", "/data/out/"], timeout=600)

    tools = [stage.peer(name, "changed") for name in ("rsync -aHAX ssh", "rsync -aHAX daemon")]
    tools += [stage.transfer(name, "changed") for name in (*STREAMS, "transfer rsync", "transfer rsyncd")]
    stage.measure("changed", [image_backup.per_change(tool, edited) for tool in tools], prepare)


def killed(stage: Stage) -> None:
    """One large file on the slow wire; both ends are killed at half, then the same is run again."""
    make_big_files(stage.place("killed"), stage.options.large)
    size = stage.options.large
    peers = [
        stage.peers.rsync_daemon("rsync --inplace daemon", "-aHAX", "--inplace"),
        stage.peers.rsync_ssh("rsync --inplace ssh", "-aHAX", "--inplace"),
    ]
    kinds = [interruption.of_peer(stage, peer, "killed") for peer in peers]
    kinds += [interruption.of_transfer(stage, name, "killed") for name in (*STREAMS, "transfer rsync")]
    # The stream engine begins with as many connections, and may just be trying twice as many.
    streams = 2 * min(STREAMS_UNASKED, os.cpu_count() or 1)
    most = streams * unit(size, STREAMS_TRIED)
    tools = [Tool(kind.name, interruption.runner(stage, kind, size, most), kind.is_ours) for kind in kinds]
    with stage.shaped():
        stage.measure("killed", tools, stage.empty)


def gigabit(stage: Stage) -> None:
    make_big_files(stage.place("large"), stage.options.large, LARGE_FILES)
    size = stage.options.large
    most = network.bits(stage.options.rate) / 8 * counters.MTU_PAYLOAD / counters.MTU_FRAME

    def share(found: Sample) -> Sample:
        return {"share of the wire": size / found["seconds"] / most}

    peers = ("iperf3", "rsync -aHAX ssh", "rsync -aHAX daemon", "tar nc", "scp")
    tools = [stage.peer(name, "large") for name in peers] + [stage.transfer(name, "large") for name in STREAMS]
    with stage.shaped():
        stage.measure("gigabit", [tool.adding(share) for tool in tools], stage.empty)


def text(stage: Stage) -> None:
    """A quarter of the size of the large files, on the slow wire."""
    data.make_text(stage.place("text"), stage.options.large // 4)
    tools = [
        stage.peer(stage.peers.rsync_daemon("rsync -az daemon", "-az"), "text"),
        stage.transfer("transfer stream TLS", "text", "stream TLS compress none", compress="none"),
        stage.transfer("transfer stream TLS", "text", "stream TLS compress auto", compress="auto"),
        stage.transfer("transfer stream plain", "text", "stream plain compress none", compress="none"),
        stage.transfer("transfer stream plain", "text", "stream plain compress auto", compress="auto"),
    ]
    with stage.shaped():
        stage.measure("text", tools, stage.empty)


def backup(stage: Stage) -> None:
    """A snapshot of a tree in which nothing has changed since the one before."""
    data.make_small(stage.place("small"), stage.options.files)
    for folder in ("out", "backup", "peer", "peer/0"):
        stage.place(folder, "beta").mkdir()
    stage.fill("small")
    stage.place("peer/0", "beta").rmdir()
    stage.place("out", "beta").rename(stage.place("peer/0", "beta"))
    stage.ours.backup("small")
    made = 0

    def link_dest() -> Sample:
        nonlocal made
        made += 1
        options = ("-aHAX", f"--link-dest=/data/peer/{made - 1}")
        peer = stage.peers.rsync_ssh("", *options, to=f"/data/peer/{made}/")
        return stage.counted(lambda: stage.peers.run(peer, "small"))

    tools = [
        Tool("rsync --link-dest ssh", link_dest),
        Tool("backup", lambda: stage.counted(lambda: stage.ours.backup("small")), is_ours=True),
    ]
    stage.measure("backup", tools, lambda: None)
    _prune(stage)


def _prune(stage: Stage) -> None:
    """Remove the trees that the backups made, but for the last, one in a run: by policy, and by hand."""
    kept, removed = stage.options.repeat + 1, 0

    def prune() -> Sample:
        nonlocal kept
        kept -= 1
        return stage.ours.prune(kept)

    def remove() -> Sample:
        nonlocal removed
        removed += 1
        return stage.peers.timed("beta", ["rm", "-r", f"/data/peer/{removed - 1}"])

    stage.measure("prune", [Tool("rm -r", remove), Tool("prune", prune)], lambda: None)


def entries(stage: Stage) -> None:
    """A tree of very many entries: when the first byte of a file arrives, and the memory of both ends."""
    data.make_entries(stage.place("entries"), stage.options.entries)

    def watched(tool: Tool) -> Tool:
        def run() -> Sample:
            with counters.Watch(stage.bed, SENDERS) as watch:
                found = tool.run()
            first = watch.first()
            if first is not None:
                found["first byte"] = first
            return {**found, "memory source": watch.peak["alpha"], "memory dest": watch.peak["beta"]}

        return tool._replace(run=run)

    tools = [stage.peer("rsync -aHAX daemon", "entries")]
    tools += [stage.transfer(name, "entries") for name in STREAMS]
    stage.measure("entries", [watched(tool) for tool in tools], stage.empty)


PARTS = {
    "start": Part("one small file to an empty destination: what it takes to start", start),
    "large": Part("a few large files to an empty destination", large),
    "small": Part("many small files to an empty destination", small),
    "warm": Part("many small files, nothing changed", warm),
    "sparse": Part("one sparse image to an empty destination", sparse),
    "changed": Part("one large file, 1 % of it changed in place", changed),
    image_backup.PART: Part(
        "one large file, 1 % of it changed since the older tree beside the destination", image_backup.measure
    ),
    "killed": Part("one large file on the slow wire, killed at half and run again", killed),
    "gigabit": Part("the large files on the slow wire", gigabit),
    long_line.PART: Part("one large file, and many small ones, over lines with a long round trip", long_line.measure),
    disk.PART: Part("large and small files from disk to disk, until the destination's has all", disk.measure),
    "text": Part("text that compresses on the slow wire", text),
    "backup": Part("a snapshot with nothing changed, and pruning", backup),
    backup_tools.PART: Part("the days of one tree, backed up by several tools", backup_tools.measure),
    "entries": Part("a tree of very many entries (with --entries)", entries),
}
