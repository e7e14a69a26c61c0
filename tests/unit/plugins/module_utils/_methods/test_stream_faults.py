# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers by stream on disks, hosts and lines that fail: it says what it could not do, and a rerun goes on."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.support import faulty
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.faulty import fault, mounted
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.support.relay import Relay
from ansible_collections.longhaul.fleet.tests.support.small_disk import small_disk
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.small_tree import make_tree
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import (
    MIB,
    expect_running,
    expect_same,
    make_pair,
    needs_root,
    noise,
    partial_folder,
    run_through,
    start,
    transfer,
    wait_until_safe,
)

needs_fuse = pytest.mark.skipif(bool(faulty.why_not()), reason=f"cannot run here: {faulty.why_not()}")


@pytest.fixture(name="behind")
def a_folder_behind(tmp_path: Path) -> Path:
    """Return the folder that a faulty file system shows."""
    (tmp_path / "behind").mkdir()
    return tmp_path / "behind"


@needs_fuse
@pytest.mark.parametrize("encrypt", [False, True])
@pytest.mark.parametrize("size", [100_000, 9 * MIB], ids=["small", "large"])
def test_a_file_that_a_bad_disk_does_not_give(trees, behind, size, encrypt):
    source, dest, _work = trees
    make_tree(behind)
    (behind / "bad").write_bytes(noise(1, size))
    (dest / "bad").write_bytes(b"older version")
    with mounted(behind, source, fault("read", "bad", errno.EIO, after=size // 2 & ~4095)):
        outcome = transfer(trees, delete=True, encrypt=encrypt)
        found = [(one["path"], one["reason"]) for one in outcome["errors"]]
        assert found == [("bad", "cannot be read: Input/output error")]
        assert (dest / "bad").read_bytes() == b"older version"
        assert differences(source, dest, skip=[b"bad", b""]) == []
    healthy = (behind, *trees[1:])
    expect_same(healthy, transfer(healthy, delete=True))


@needs_fuse
def test_a_folder_that_a_bad_disk_does_not_list(trees, behind):
    source, dest, _work = trees
    make_tree(behind)
    healthy = (behind, *trees[1:])
    expect_same(healthy, transfer(healthy))
    (behind / "none").unlink()
    (behind / "new").write_text("new")
    with mounted(behind, source, fault("readdir", "b", errno.EIO)):
        outcome = transfer(trees, delete=True)
    assert [(one["path"], one["reason"]) for one in outcome["errors"]] == [
        ("a/b", "cannot be read: Input/output error")
    ]
    assert outcome["files_deleted"] == 0 and "could not be read completely" in outcome["warnings"][0]
    assert (dest / "a/b/file").exists() and (dest / "none").exists() and (dest / "new").read_text() == "new"
    assert transfer(healthy, delete=True)["files_deleted"] == 1
    assert differences(behind, dest) == []


@needs_fuse
@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_a_quota_that_is_used_up(trees, behind, large):
    source, dest, _work = trees
    for number in range(4 if large else 60):
        (source / f"f{number}").write_bytes(noise(number, 6 * MIB if large else 200_000))
    with mounted(behind, dest, fault("write", "", errno.EDQUOT, after=8 * MIB)):
        outcome = transfer(trees)
        assert "full" in outcome["failed"] and "quota" in outcome["failed"].lower(), outcome
        assert "run the transfer again" in outcome["failed"]
    with mounted(behind, dest):
        expect_same(trees, transfer(trees))


@needs_root
def test_a_destination_without_inodes_fails_plainly_and_goes_on_later(trees):
    source, dest, _work = trees
    for number in range(100):
        (source / f"d{number % 7}").mkdir(exist_ok=True)
        (source / f"d{number % 7}" / f"f{number}").write_bytes(b"%d" % number)
    with small_disk(dest, "size=50m,nr_inodes=60") as remount:
        outcome = transfer(trees)
        assert "no inodes" in outcome.get("failed", ""), outcome
        remount("nr_inodes=1000")
        expect_same(trees, transfer(trees))


@pytest.mark.parametrize("side", ["source", "dest"])
def test_an_end_that_may_open_few_files(trees, side):
    """Many large files are on their way at once, each of them open at both ends."""
    source, dest, _work = trees
    make_tree(source)
    deep = source.joinpath(*["deep"] * 60)
    deep.mkdir(parents=True)
    (deep / "file").write_text("deep")
    for number in range(100):
        (source / f"large{number:03}").write_bytes(noise(number, 300_000))
    pair = make_pair(trees, streams=2)
    run_through(pair, side, "ulimit -n 24")
    outcome = pair.run()
    reasons = [one["reason"] for one in outcome.get("errors", [])]
    reasons += [outcome["failed"]] if "failed" in outcome else []  # neither, where fewer were open at once
    assert all("Too many open files" in reason for reason in reasons), outcome
    for path in dest.glob("large*"):
        assert path.read_bytes() == (source / path.name).read_bytes()
    expect_same(trees, transfer(trees))


@needs_fuse
@pytest.mark.newest
def test_a_receiver_with_a_slow_disk_is_not_a_dead_one(trees, behind):
    source, dest, _work = trees
    (source / "image").write_bytes(noise(1, 4 * MIB))
    begun = time.monotonic()
    with mounted(behind, dest, fault("write", seconds=2.5)):
        outcome = transfer(trees, timeout=4)
        expect_same(trees, outcome)
    assert time.monotonic() - begun > 8 and not outcome["resumed"]


@pytest.mark.newest
@pytest.mark.parametrize("side", ["dest", *rarely("source")])
def test_an_end_that_stands_still_for_a_while_is_not_a_dead_one(trees, side):
    source, _dest, _work = trees
    (source / "image").write_bytes(noise(1, 48 * MIB))
    pair = start(make_pair(trees, bwlimit=16 * MIB, timeout=20))
    wait_until_safe(pair, MIB)
    os.killpg(pair.processes[side].pid, signal.SIGSTOP)
    time.sleep(7)  # half of the timeout is how long silence may last
    expect_running(pair)
    os.killpg(pair.processes[side].pid, signal.SIGCONT)
    expect_same(trees, pair.finish())


@pytest.mark.parametrize("encrypt", [False, True])
def test_one_of_several_data_connections_is_reset(trees, encrypt):
    source, _dest, _work = trees
    (source / "image").write_bytes(noise(3, 12 * MIB) * 4)
    pair = make_pair(trees, encrypt=encrypt, streams=3, bwlimit=40 * MIB, timeout=20)
    pair.start("dest")
    with Relay(int(pair.peer["port"])) as relay:
        pair.peer["port"] = relay.port
        pair.start("source")
        for reset in (1, 2):
            relay.wait(reset * 12 * MIB)
            relay.reset_newest()
        outcome = pair.finish()
        assert relay.cuts == 2
    expect_same(trees, outcome)
    assert "work goes to the others" in pair.stderr("dest") + pair.stderr("source")


@pytest.mark.newest
def test_a_partial_file_of_an_older_version_is_of_no_use(trees):
    source, dest, _work = trees
    size = 96 * MIB
    (source / "image").write_bytes(noise(1, size // 4) * 4)
    before = (source / "image").stat()
    pair = start(make_pair(trees, bwlimit=40 * MIB))
    wait_until_safe(pair, MIB)
    pair.kill("dest")
    pair.finish()
    assert list(partial_folder(pair).iterdir())
    (source / "image").write_bytes(noise(2, size // 4) * 4)  # as long, and of the same time
    os.utime(source / "image", ns=(before.st_atime_ns, before.st_mtime_ns))
    outcome = transfer(trees)
    expect_same(trees, outcome)
    assert outcome["bytes_sent"] == size
    assert [path.name for path in dest.iterdir()] == ["image"]


def test_a_bit_that_was_flipped_at_the_destination(trees):
    source, dest, _work = trees
    make_tree(source)
    (source / "large").write_bytes(noise(1, 5 * MIB))
    expect_same(trees, transfer(trees))
    for path, at in ((dest / "large", 3 * MIB + 5), (dest / "a/b/file", 17)):
        status = path.stat()
        with path.open("r+b") as file:
            file.seek(at)
            (byte,) = file.read(1)
            file.seek(at)
            file.write(bytes([byte ^ 4]))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert not transfer(trees)["changed"]
    outcome = transfer(trees, checksum=True)
    expect_same(trees, outcome)
    assert outcome["bytes_sent"] < 100_000  # a block of the large file, and the small one


CLOCK = """\
import os, time
real = {name: getattr(time, name) for name in ("time", "time_ns")}
def step():
    try:
        return int(open(os.environ["STEP"]).read())
    except (OSError, ValueError):
        return 0
time.time = lambda: real["time"]() + step()
time.time_ns = lambda: real["time_ns"]() + step() * 10**9
"""


@pytest.mark.often(1)
@pytest.mark.newest
@pytest.mark.parametrize("seconds", [-20 * 365 * 86400, -30, 30, 20 * 365 * 86400])
def test_clocks_that_step_meanwhile(trees, tmp_path, seconds):
    """The machine's own clock is not touched: both ends read one that steps."""
    source, _dest, _work = trees
    make_tree(source)
    (source / "image").write_bytes(noise(1, 32 * MIB))
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(CLOCK)
    path = os.pathsep.join([str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    pair = make_pair(trees, bwlimit=16 * MIB, timeout=20)
    for side in ("source", "dest"):
        pair.env[side].update(PYTHONPATH=path, STEP=str(tmp_path / "step"))
    start(pair)
    wait_until_safe(pair, MIB)
    (tmp_path / "step").write_text(str(seconds))
    (source / "a/b/file").write_bytes(b"y" * 5000)  # what is written after the clock went back is older than before
    os.utime(source / "a/b/file", ns=(0, 1_000_000_000_123_456_789 + seconds * 10**9))
    outcome = pair.finish()
    assert outcome.get("errors") == [] and not outcome["failure"], outcome
    again = transfer(trees)
    expect_same(trees, again)
    assert again["files_updated"] == 2 and again["bytes_sent"] == 5000  # the file and its other name


@needs_root
@pytest.mark.newest
def test_the_power_fails_between_data_and_journal(trees, tmp_path):
    """What the disk holds at that moment is what the file system wrote to its device: a copy of that starts again."""
    source, dest, work = trees
    size = 160 * MIB
    (source / "image").write_bytes(noise(1, size // 4) * 4)
    device, copied, rescued = tmp_path / "device", tmp_path / "copied", tmp_path / "rescued"
    with device.open("wb") as file:
        file.truncate(2 * size)
    subprocess.run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(device)], check=True)
    mount_device(device, dest)
    pair = make_pair(trees, bwlimit=60 * MIB)
    try:
        shutil.rmtree(dest / "lost+found")
        start(pair)
        wait_until_safe(pair, 16 * MIB)
        for process in pair.processes.values():
            os.killpg(process.pid, signal.SIGSTOP)
        for journal in partial_folder(pair).glob("*.ranges"):  # which may come to the disk before the data do
            fd = os.open(journal, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
        shutil.copyfile(device, copied)
        for side in ("source", "dest"):
            pair.kill(side)
        pair.stop()
    finally:
        subprocess.run(["umount", "--lazy", str(dest)], check=True)
    rescued.mkdir()
    mount_device(copied, rescued)
    try:
        staged = rescued / partial_folder(pair).relative_to(dest)
        (journal,) = staged.glob("*.ranges")
        ranges = [
            tuple(map(int, line.split()[1:3])) for line in journal.read_text().splitlines() if line.count(" ") == 3
        ]
        content, arrived = (source / "image").read_bytes(), journal.with_suffix("").read_bytes()
        assert ranges and all(arrived[first:last] == content[first:last] for first, last in ranges)
        assert arrived != content
        rerun = (source, rescued, work)
        outcome = transfer(rerun)
        expect_same(rerun, outcome)
        assert outcome["resumed"] and outcome["bytes_sent"] < size
    finally:
        subprocess.run(["umount", "--lazy", str(rescued)], check=True)


def mount_device(device: Path, point: Path) -> None:
    """Mount a file as a device."""
    ended = subprocess.run(
        ["mount", "-o", "loop", str(device), str(point)], capture_output=True, text=True, check=False
    )
    if ended.returncode:
        pytest.skip(f"cannot run here: {ended.stderr.strip()}")
