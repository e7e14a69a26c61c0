# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The same days of one tree, backed up by the playbooks backup and restore, rsync --link-dest, restic and borg.

Every tool has a repository of its own on one disk of the destination. A day is an edit of the source, after which each
tool backs it up in its turn. The numbers of a day are therefore single runs: ``--repeat`` counts for nothing here.
"""

from __future__ import annotations

import os
import random
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ansible_collections.longhaul.fleet.tests.bench import counters, data, disk
from ansible_collections.longhaul.fleet.tests.bench.measuring import Sample, Tool
from ansible_collections.longhaul.fleet.tests.bench.peers import FETCHED
from ansible_collections.longhaul.fleet.tests.bench.stage import Stage
from ansible_collections.longhaul.fleet.tests.support.control_node import adopt_orphans
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files

PART = "backup tools"
OURS, RSYNC, RESTIC, BORG = "playbook", "rsync --link-dest ssh", "restic sftp", "borg ssh"
DAYS = {
    "first": "the first backup",
    "same": "a backup with nothing changed",
    "edited": "a backup after 1 % of the files were changed",
    "moved": "a backup after 1,000 files were moved to another folder",
    "touched": "a backup after 1,000 files got a new time",
    "chmod": "a backup after 1,000 files got another mode",
    "image": "a backup after 1 % of one large file was changed in place",
    "prune": "the oldest backup removed",
    "restore": "one file restored from the last backup",
}
TITLES = {f"{PART}: {day}": about for day, about in DAYS.items()}
_KIND, _DISK, _SOURCE = "xfs", "/data/disk", "/data/days"
_ROOM = 5  # times the large files
_MOVED = 1000
_FILE = "00003/0000305"  # one that no edit touches


class Keeper(NamedTuple):
    """A tool that keeps backups on the destination; each call does one thing to its end."""

    name: str
    backup: Callable[[int], object]
    remove_oldest: Callable[[], object]
    restore: Callable[[], object]


def measure(stage: Stage) -> None:
    """Live the days, one after the other."""
    adopt_orphans()
    tree = stage.place("days")
    data.make_small(tree, stage.options.files)
    (image,) = make_big_files(tree / "image", stage.options.large // 8)
    edits: dict[str, Callable[[], object]] = {
        "first": lambda: None,
        "same": lambda: None,
        "edited": partial(_change, tree, stage.options.files // 100),
        "moved": partial(_move, tree),
        "touched": partial(_touch, tree),
        "chmod": partial(_chmod, tree),
        "image": partial(data.edit, image, 0.01),
    }
    with disk.mounted(stage, _KIND, _ROOM, (("beta", _DISK),), direct=False):
        keepers = list(_keepers(stage))
        for number, (day, edit) in enumerate(edits.items()):
            edit()
            _measure_day(stage, day, [(keeper, partial(keeper.backup, number)) for keeper in keepers])
        _measure_day(stage, "prune", [(keeper, keeper.remove_oldest) for keeper in keepers])
        _measure_day(stage, "restore", [(keeper, keeper.restore) for keeper in keepers])


def _measure_day(stage: Stage, day: str, work: list[tuple[Keeper, Callable[[], object]]]) -> None:
    def counted(do: Callable[[], object]) -> Sample:
        grown, used, begun = disk.used(stage, _DISK), counters.processor(stage.bed), time.monotonic()
        do()
        seconds = time.monotonic() - begun
        processor = counters.processor(stage.bed) - used
        return {"seconds": seconds, "processor": processor, "growth": disk.used(stage, _DISK) - grown}

    tools = [
        Tool(keeper.name, partial(stage.counted, partial(counted, do)), keeper.name == OURS) for keeper, do in work
    ]
    stage.measure(f"{PART}: {day}", tools, lambda: None, repeat=1)


def _change(tree: Path, count: int) -> None:
    source = random.Random(6)
    for folder in sorted(tree.glob("[0-9]*"))[: max(1, count // 10)]:
        for path in sorted(folder.iterdir())[10:20]:
            path.write_bytes(source.randbytes(path.stat().st_size + 1))


def _folders(tree: Path, start: int) -> list[Path]:
    """Return ten folders of a hundred files, or as many as there are."""
    return sorted(tree.glob("[0-9]*"))[start : start + _MOVED // 100]


def _move(tree: Path) -> None:
    (tree / "moved").mkdir()
    for folder in _folders(tree, 100):
        folder.rename(tree / "moved" / folder.name)


def _touch(tree: Path) -> None:
    for folder in _folders(tree, 200):
        for path in folder.iterdir():
            os.utime(path, (1, 1795262400))


def _chmod(tree: Path) -> None:
    for folder in _folders(tree, 300):
        for path in folder.iterdir():
            path.chmod(0o600)


def _keepers(stage: Stage) -> Iterator[Keeper]:
    """Make the repositories, and return the tools that are there."""
    bed = stage.bed
    for name in ("ours", "rsync", "restic", "borg"):
        bed.exec("beta", ["mkdir", "-m", "700", f"{_DISK}/{name}"])
    bed.exec("alpha", ["mkdir", "-p", "/data/restored"])
    yield Keeper(
        OURS,
        lambda _number: stage.ours.backup_by_playbook(_SOURCE, f"{_DISK}/ours"),
        lambda: stage.ours.prune_of_playbook(f"{_DISK}/ours", len(DAYS) - 3),
        lambda: stage.ours.restore_by_playbook(_SOURCE, f"{_DISK}/ours", _FILE, "/data/restored/ours"),
    )
    yield _rsync(stage)
    programs = _installed(stage)
    if "restic" in programs:
        yield _restic(stage)
    if "borg" in programs:
        yield _borg(stage)


def _rsync(stage: Stage) -> Keeper:
    folder, shell, address = f"{_DISK}/rsync", stage.peers.shell, stage.peers.address

    def backup(number: int) -> None:
        before = [f"--link-dest={folder}/{number - 1}"] if number else []
        argv = ["rsync", "-aHAX", "--numeric-ids", *before, "-e", shell, f"{_SOURCE}/", f"{address}:{folder}/{number}/"]
        stage.bed.exec("alpha", argv, timeout=3600)

    def restore() -> None:
        last = len(DAYS) - 3
        argv = ["rsync", "-aHAX", "-e", shell, f"{address}:{folder}/{last}/{_FILE}", "/data/restored/rsync"]
        stage.bed.exec("alpha", argv, timeout=3600)

    return Keeper(
        RSYNC,
        backup,
        lambda: stage.bed.exec("beta", ["rm", "-r", f"{folder}/0"], timeout=3600),
        restore,
    )


def _restic(stage: Stage) -> Keeper:
    folder = f"{_DISK}/restic"
    command = f"sftp.command={stage.peers.shell} root@{stage.peers.address} -s sftp"
    start = ["env", "RESTIC_PASSWORD=bench", "HOME=/root", "restic", "-q", "-o", command, "-r", f"sftp:x:{folder}"]

    def run(*argv: str) -> None:
        stage.bed.exec("alpha", [*start, *argv], timeout=3600)

    run("init")
    return Keeper(
        RESTIC,
        lambda _number: run("backup", _SOURCE),
        lambda: run("forget", "--keep-last", str(len(DAYS) - 3), "--prune"),
        lambda: run("restore", "latest", "--target", "/data/restored/restic", "--include", f"{_SOURCE}/{_FILE}"),
    )


def _borg(stage: Stage) -> Keeper:
    folder = f"{_DISK}/borg"
    repository = f"ssh://root@{stage.peers.address}{folder}"
    said = ["BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes", "HOME=/root", f"BORG_RSH={stage.peers.shell}"]

    def run(*argv: str) -> None:
        stage.bed.exec("alpha", ["env", *said, "borg", *argv], timeout=3600)

    def remove_oldest() -> None:
        run("delete", f"{repository}::0")
        run("compact", repository)

    run("init", "-e", "none", repository)
    last = f"{repository}::{len(DAYS) - 3}"
    restored = f"cd /data/restored && exec borg extract {shlex.quote(last)} {shlex.quote(_SOURCE[1:] + '/' + _FILE)}"
    return Keeper(
        BORG,
        lambda number: run("create", f"{repository}::{number}", _SOURCE),
        remove_oldest,
        lambda: stage.bed.exec("alpha", ["env", *said, "sh", "-c", restored], timeout=3600),
    )


def _installed(stage: Stage) -> list[str]:
    """Install what tests/tools/bench-programs fetched on both hosts, note what lacks, and return the programs."""
    found = []
    for program in ("restic", "borg"):
        if not (FETCHED / program).exists():
            stage.notes.append(f"{PART}: {program} is not there: see tests/tools/bench-programs")
            continue
        found.append(program)
        for host in stage.bed.hosts:
            shutil.copy(FETCHED / program, stage.bed.root(host) / "usr/bin" / program)
    if "borg" in found:
        packages = FETCHED.parent / "lib/python3/dist-packages"
        for host in stage.bed.hosts:
            place = stage.bed.root(host) / "usr/lib/python3/dist-packages"
            shutil.copytree(packages, place, symlinks=True, dirs_exist_ok=True)
    return found
