# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One large file whose older version lies in a tree beside the destination: what is sent, and what a disk needs."""

from __future__ import annotations

from ansible_collections.longhaul.fleet.tests.bench import data, disk
from ansible_collections.longhaul.fleet.tests.bench.measuring import Sample, Tool
from ansible_collections.longhaul.fleet.tests.bench.ours import STREAMS
from ansible_collections.longhaul.fleet.tests.bench.stage import Stage
from ansible_collections.longhaul.fleet.tests.support.disk_image import SHARES_EXTENTS
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files

PART = "image backup"
TITLES = {f"{PART}: {kind}": f"the same to a disk with {kind}, which can share extents" for kind in SHARES_EXTENTS}
SHARE = 0.01  # of the file that is changed in place
_TREE, _DISK = "image", "data/disk"
_ROOM = 3  # times the file


def per_change(tool: Tool, edited: int) -> Tool:
    """Add to what a tool gives how many times the bytes that were changed it sent."""
    return tool.adding(lambda found: {"times the change": found["wire"] / edited})


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
    for kind in SHARES_EXTENTS:
        _measure_on_disk(stage, kind, edited)


def _measure_on_disk(stage: Stage, kind: str, edited: int) -> None:
    options = {"dest": f"/{_DISK}/out/", "link_dest": [f"/{_DISK}/older"]}
    with disk.mounted(stage, kind, _ROOM, (("beta", f"/{_DISK}"),), direct=False):
        stage.bed.exec("beta", ["cp", "-a", "/data/older", f"/{_DISK}/older"], timeout=600)
        older = disk.used(stage, f"/{_DISK}")

        def empty() -> None:
            stage.bed.exec("beta", ["rm", "-rf", f"/{_DISK}/out"], timeout=600)
            disk.used(stage, f"/{_DISK}")  # so that it is written, too

        def growth(_found: Sample) -> Sample:
            return {"growth by change": (disk.used(stage, f"/{_DISK}") - older) / edited}

        tools = [per_change(stage.transfer(name, _TREE, **options), edited).adding(growth) for name in STREAMS]
        stage.measure(f"{PART}: {kind}", tools, empty)
