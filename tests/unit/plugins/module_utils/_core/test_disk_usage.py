# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Counters of the kernel on real and invented devices, and lines of zpool."""

from __future__ import annotations

import os
import subprocess
import time
from types import SimpleNamespace

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core import disk_usage, time_accounting
from ansible_collections.longhaul.fleet.plugins.module_utils._core.disk_usage import (
    DiskCounters,
    DiskMeter,
    MountedOn,
    devices_of,
    mounted_on,
    parse_counters,
    parse_pool,
    pool_of,
    usage_between,
    whole_devices,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy import serving
from ansible_collections.longhaul.fleet.tests.support.disk_image import CannotMount, disk_image
from ansible_collections.longhaul.fleet.tests.support.small_disk import small_disk

MIB = 1 << 20
LINE = "   8       0 sda 83094 13118 3690546 41772 103385 104805 6690184 45599 0 23540 95193 60694 1 14626696 6847 16 9"
OLD = "   8       1 sda1 10 0 80 5 20 0 160 7 0 12 12"  # Linux 4.17 has no discards


def test_counters_are_parsed_by_device_and_what_cannot_be_read_is_left_out():
    found = parse_counters(f"{LINE}\n{OLD}\n\n8 2 sda2 1 2\n8 x sda3 1 2 3 4 5 6 7 8 9 10 11\n")
    assert found == {
        "8:0": DiskCounters(23.54, 3690546 * 512, 6690184 * 512),
        "8:1": DiskCounters(0.012, 80 * 512, 160 * 512),
    }


BEFORE = {"8:0": DiskCounters(10.0, 100, 200), "8:16": DiskCounters(5.0, 0, 0)}
AFTER = {"8:0": DiskCounters(12.0, 150, 500), "8:16": DiskCounters(9.0, 1, 10)}


@pytest.mark.parametrize(
    ("after", "devices", "expected"),
    [
        (AFTER, ["8:0"], {"seconds": 10, "busy": 2.0, "read": 50, "written": 300}),
        (AFTER, ["8:0", "8:16"], {"seconds": 10, "busy": 4.0, "read": 51, "written": 310}),  # the busiest one
        (AFTER, [], {}),
        (AFTER, ["8:0", "8:32"], {}),  # one of them is not counted
        ({"8:0": DiskCounters(0.1, 1, 1)}, ["8:0"], {"seconds": 10, "busy": 0.0, "read": 0, "written": 0}),
        ({"8:0": DiskCounters(99.0, 100, 200)}, ["8:0"], {"seconds": 10, "busy": 10, "read": 0, "written": 0}),
        ({}, ["8:0"], {}),
    ],
)
def test_usage_is_that_of_all_devices(after, devices, expected):
    assert usage_between(BEFORE, after, devices, 10) == expected
    assert usage_between(BEFORE, after, devices, 0) == {}


@pytest.fixture
def sysfs(tmp_path):
    """LVM (dm-1) on LUKS (dm-0) on a partition of sda, and on the whole sdb; one that lies on itself."""

    def device(place, number, *below):
        folder = tmp_path / "devices" / place
        (folder / "slaves").mkdir(parents=True, exist_ok=True)
        (folder / "dev").write_text(f"{number}\n")
        (tmp_path / "dev" / "block").mkdir(parents=True, exist_ok=True)
        (tmp_path / "dev" / "block" / number).symlink_to(folder)
        for one in below:
            (folder / "slaves" / os.path.basename(one)).symlink_to(tmp_path / "devices" / one)

    device("sda", "8:0")
    device("sdb", "8:16")
    device("sda/sda2", "8:2")
    (tmp_path / "devices" / "sda" / "sda2" / "partition").write_text("2\n")
    device("dm-0", "253:0", "sda/sda2")
    device("dm-1", "253:1", "dm-0", "sdb")
    device("dm-2", "253:2", "dm-2")
    return str(tmp_path)


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("8:0", ["8:0"]),
        ("8:2", ["8:0"]),
        ("253:0", ["8:0"]),
        ("253:1", ["8:0", "8:16"]),
        ("253:2", ["253:2"]),
        ("9:9", ["9:9"]),
    ],
)
def test_the_whole_disks_below_a_device_are_found(sysfs, device, expected):
    assert whole_devices(device, sysfs) == expected


MOUNTS = """27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
31 27 0:44 / /tank rw,nosuid shared:5 - fuse tank/data rw,user_id=0
32 27 0:45 / /odd rw - """


@pytest.mark.parametrize(
    ("number", "expected"), [(27, ("ext4", "/dev/vda")), (31, ("fuse", "tank/data")), (32, ("", "")), (9, ("", ""))]
)
def test_the_source_of_a_mount_is_found(number, expected):
    assert mounted_on(MOUNTS, number) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("92%\tDEGRADED\n", {"pool_state": "DEGRADED", "pool_full": 0.92}),
        ("5\tONLINE", {"pool_state": "ONLINE", "pool_full": 0.05}),
        ("-\tFAULTED", {"pool_state": "FAULTED", "pool_full": 0.0}),
        ("999%\tONLINE", {"pool_state": "ONLINE", "pool_full": 1.0}),
        ("92%\tGOOD", {}),
        ("", {}),
    ],
)
def test_a_line_of_zpool_is_parsed(line, expected):
    assert parse_pool(line) == expected


@pytest.mark.parametrize(
    ("mounted", "asked"),
    [
        (MountedOn("zfs", "tank/data"), "tank"),
        (MountedOn("fuse", "tank"), "tank"),
        (MountedOn("ext4", "tank"), ""),
        (MountedOn("zfs", "-f/data"), ""),
        (MountedOn("nfs4", "server:/tank"), ""),
    ],
)
def test_only_a_pool_is_asked_for(monkeypatch, tmp_path, mounted, asked):
    program = tmp_path / "zpool"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\nprintf "81%%\\tONLINE\\n"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) + ":" + os.environ["PATH"])
    assert pool_of(mounted) == ({"pool_state": "ONLINE", "pool_full": 0.81} if asked else {})
    said = (tmp_path / "asked").read_text() if asked else ""
    assert said == (f"list -H -o capacity,health {asked}\n" if asked else "")


def _write(folder, size):
    with open(folder / "file", "wb") as file:
        file.write(os.urandom(size))
        os.fsync(file.fileno())


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: mounting needs root")
@pytest.mark.parametrize("kind", ["ext4", "btrfs"])
def test_what_is_written_to_a_real_disk_is_counted(tmp_path, kind):
    try:
        with disk_image(tmp_path, kind, 256 * MIB) as mounted:
            fd = os.open(mounted, os.O_RDONLY)
            try:
                meter = DiskMeter(fd)
                _write(mounted, 20 * MIB)
                first = meter.usage()
                meter.begin()
                second = meter.usage()
                (device,) = devices_of(fd)
            finally:
                os.close(fd)
    except CannotMount as error:
        pytest.skip(f"cannot run here: {error}")
    assert os.path.basename(os.path.realpath(f"/sys/dev/block/{device}")).startswith("loop")
    assert 20 * MIB <= first["written"] < 40 * MIB
    assert 0 < first["busy"] <= first["seconds"]
    assert second["written"] < 2 * MIB


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: mounting needs root")
def test_a_file_system_without_a_device_is_not_counted(tmp_path):
    with small_disk(tmp_path, "size=30m"):
        fd = os.open(tmp_path, os.O_RDONLY)
        try:
            meter = DiskMeter(fd)
            _write(tmp_path, MIB)
            assert (devices_of(fd), meter.usage()) == ([], {})
        finally:
            os.close(fd)


def test_an_account_has_the_disk_that_is_watched(monkeypatch):
    class Meter:
        def begin(self):
            raise AssertionError("a thread of this process was counted already")

        def usage(self):
            return {"seconds": 2.0, "busy": 1.0, "read": 5, "written": 6}

    monkeypatch.setattr(time_accounting, "_meters", [])
    monkeypatch.setattr(time_accounting, "_lanes", [None])
    time_accounting.watch_disk(Meter())
    time_accounting.begin()
    monkeypatch.setattr(time_accounting, "_lanes", [])
    assert time_accounting.account()["disk"]["busy"] == 1.0


def test_a_zpool_that_hangs_or_cannot_run_says_nothing(monkeypatch):
    def hang(argv, seconds):
        raise subprocess.TimeoutExpired(argv, seconds)

    monkeypatch.setattr(disk_usage, "parse_pool", None)
    from ansible_collections.longhaul.fleet.plugins.module_utils._core import subprocesses

    monkeypatch.setattr(subprocesses, "find_program", lambda name: f"/{name}")
    monkeypatch.setattr(subprocesses, "ask", hang)
    assert pool_of(MountedOn("zfs", "tank")) == {}


def test_the_processor_time_of_an_ssh_is_noted_and_of_nothing_else(monkeypatch, tmp_path):
    spin = "while :; do :; done"
    programs = {}
    monkeypatch.setattr(time_accounting, "_encryption", {})
    assert "encryption" not in time_accounting.account()
    for name in ("ssh", "sshx"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{spin}\n")
        program.chmod(0o755)
        programs[name] = subprocess.Popen([str(program)])
    try:
        pids = [one.pid for one in programs.values()]
        deadline = time.monotonic() + 30
        while not time_accounting.account().get("encryption") and time.monotonic() < deadline:
            time_accounting.note_encryption([*pids, 1 << 30])
            time.sleep(0.05)
        noted = dict(time_accounting._encryption)
    finally:
        for one in programs.values():
            one.kill()
            one.wait()
    assert list(noted) == [programs["ssh"].pid] and time_accounting.account()["encryption"] > 0


def test_a_conversation_in_a_process_of_its_own_has_its_own_meter(monkeypatch, tmp_path):
    found = []
    monkeypatch.setattr(serving, "run_session", lambda *_given: found.append(time_accounting._meters[0]))
    monkeypatch.setattr(time_accounting, "_meters", [None])
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        context = SimpleNamespace(root_fd=root, held=(), side="source", settings={"check": False})
        assert serving.SessionWork(context, None, SimpleNamespace(fd=root))(0, 1) == 0
    finally:
        os.close(root)
    assert [type(one) for one in found] == [DiskMeter]
