# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Millions of empty files: both ends must need little memory, however many there are."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from .memory import Watched
from .scale import Say, Trees, disk_for, empty_trees, expect, expect_good

ENTRIES = 5_000_000
MOST = 150  # MiB that any process of either end may need
_EACH = 1000  # files in a folder
_FOLDERS = 500  # in the folder above
_SECONDS, _SLOWEST = 60, 1000  # at most for a transfer, and entries in each second besides


def run(entries: int, say: Say, disk: str | None = None) -> dict[str, int]:
    """Transfer a tree of so many entries, and once more; returns the peaks of both ends in MiB."""
    with disk_for(2 * entries, disk) as mounted:
        made = empty_trees(mounted)  # which go with the disk
        began = time.monotonic()
        count = _make(made.source, entries)
        say(f"entries: made {count} entries in {time.monotonic() - began:.0f} s")
        peaks = {"source": 0, "dest": 0}
        for changes in (True, False):
            began = time.monotonic()
            outcome, used = _transfer(made, _SECONDS + entries // _SLOWEST)
            seconds = time.monotonic() - began
            peaks = {side: max(peaks[side], used[side]) for side in peaks}
            say(
                f"entries: {'transferred' if changes else 'run again'} in {seconds:.0f} s, {count / seconds:.0f} a "
                f"second; the largest process needed {used['source']} MiB at the source and {used['dest']} at the "
                f"destination"
            )
            expect(bool(outcome["changed"]) == changes, f"changed is {outcome['changed']}")
            if changes:
                expect(outcome["files_total"] == count, f"{outcome['files_total']} of {count} entries were counted")
        _compare(os.fsencode(made.source), os.fsencode(made.dest))
        for side, used in peaks.items():
            expect(used < MOST, f"the {side} needed {used} MiB of memory, and {MOST} are enough")
        return peaks


def _transfer(made: Trees, seconds: int) -> tuple[dict, dict[str, int]]:
    pair = made.pair(streams=2, timeout=600)
    pair.start("dest")
    try:
        pair.start("source")
        until = time.monotonic() + seconds
        with Watched({side: process.pid for side, process in pair.processes.items()}) as watched:
            while not pair.is_over and pair.processes["source"].poll() is None:
                expect(time.monotonic() < until, f"the transfer was not over after {seconds} s")
                time.sleep(0.05)
            watched.look()
            outcome = pair.finish()
    finally:
        pair.stop()
    return expect_good(outcome), {side: size >> 20 for side, size in watched.peaks.items()}


def _make(root: Path, entries: int) -> int:
    """Make empty files in folders of folders; returns how many entries there are, the root among them."""
    made, number = 1, 0
    while made < entries:
        if number % _FOLDERS == 0:
            above = root / f"{number // _FOLDERS:04}"
            above.mkdir()
            made += 1
        folder = os.open(_made(above / f"{number:06}"), os.O_RDONLY | os.O_DIRECTORY)
        made += 1
        try:
            files = min(_EACH, entries - made)
            for file in range(files):
                os.mknod(f"{file:04}", 0o100644, dir_fd=folder)
        finally:
            os.close(folder)
        made += max(0, files)
        number += 1
    return made


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _compare(source: bytes, dest: bytes) -> None:
    """Compare two trees of folders and empty files, a folder at a time."""
    names, others = sorted(os.listdir(source)), sorted(os.listdir(dest))
    expect(names == others, f"{os.fsdecode(dest)} has other names")
    for name in names:
        here, there = os.path.join(source, name), os.path.join(dest, name)
        a, b = os.lstat(here), os.lstat(there)
        same = (a.st_mode, a.st_mtime_ns, a.st_nlink) == (b.st_mode, b.st_mtime_ns, b.st_nlink)
        if stat.S_ISDIR(a.st_mode):
            _compare(here, there)
        else:
            same = same and a.st_size == b.st_size
        expect(same, f"{os.fsdecode(there)} is not the same")
