# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One large file whose older version lies in a tree beside the destination: what is sent, and what a disk needs."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from ansible_collections.longhaul.fleet.tests.bench import counters, data
from ansible_collections.longhaul.fleet.tests.bench.measuring import Sample, Tool
from ansible_collections.longhaul.fleet.tests.bench.ours import STREAMS
from ansible_collections.longhaul.fleet.tests.bench.stage import Stage
from ansible_collections.longhaul.fleet.tests.support.disk_image import SHARES_EXTENTS
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.loop_disk import loop_disk

PART = "image backup"
TITLES = {f"{PART}: {kind}": f"the same to a disk with {kind}, which can share extents" for kind in SHARES_EXTENTS}
SHARE = 0.01  # of the file that is changed in place
_TREE, _DISK = "image", "/data/disk"
_IMAGES = Path(__file__).resolve().parents[2] / ".build"
_ROOM = 3  # times the file
_LEAST = 1 << 30  # bytes of a disk


def per_change(tool: Tool, edited: int) -> Tool:
    """Add to what a tool gives how many times the bytes that were changed it sent."""

    def run() -> Sample:
        found = tool.run()
        return {**found, "times the change": found["wire"] / edited}

    return tool._replace(run=run)


def measure(stage: Stage) -> None:
    """Measure it in memory, beside rsync, and then on each file system that can share extents."""
    (path,) = make_big_files(stage.place(_TREE), stage.options.large)
    stage.bed.exec("beta", ["mkdir", "/data/out"])
    stage.fill(_TREE)
    stage.place("out", "beta").rename(stage.place("older", "beta"))
    edited = data.edit(path, SHARE)

    options = ("-aHAX", "--no-whole-file")
    peers = [
        stage.peers.rsync_ssh("rsync --link-dest ssh", *options, "--link-dest=/data/older"),
        stage.peers.rsync_daemon("rsync --link-dest daemon", *options, "--link-dest=/older"),
    ]
    tools = [stage.peer(peer, _TREE) for peer in peers]
    tools += [stage.transfer(name, _TREE, link_dest=["/data/older"]) for name in STREAMS]
    stage.measure(PART, [per_change(tool, edited) for tool in tools], stage.empty)
    _IMAGES.mkdir(exist_ok=True)
    for kind in SHARES_EXTENTS:
        _measure_on_disk(stage, kind, edited)


def _measure_on_disk(stage: Stage, kind: str, edited: int) -> None:
    with contextlib.ExitStack() as held:
        folder = held.enter_context(tempfile.TemporaryDirectory(dir=_IMAGES))
        size = max(_LEAST, _ROOM * stage.options.large)
        held.enter_context(loop_disk(stage.bed, kind, folder, size, ("beta", _DISK)))
        stage.bed.exec("beta", ["cp", "-a", "/data/older", f"{_DISK}/older"], timeout=600)
        older = counters.used_on_disk(stage.bed, "beta", _DISK)

        def empty() -> None:
            stage.bed.exec("beta", ["rm", "-rf", f"{_DISK}/out"], timeout=600)
            counters.used_on_disk(stage.bed, "beta", _DISK)  # so that it is written, too

        def with_growth(tool: Tool) -> Tool:
            def run() -> Sample:
                found = tool.run()
                grown = counters.used_on_disk(stage.bed, "beta", _DISK) - older
                return {**found, "growth by change": grown / edited}

            return tool._replace(run=run)

        options = {"dest": f"{_DISK}/out/", "link_dest": [f"{_DISK}/older"]}
        tools = [stage.transfer(name, _TREE, **options) for name in STREAMS]
        measured = [with_growth(per_change(tool, edited)) for tool in tools]
        stage.measure(f"{PART}: {kind}", measured, empty)
