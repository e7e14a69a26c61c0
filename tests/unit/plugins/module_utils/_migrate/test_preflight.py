# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host says before a migration, on this machine's real file systems and sockets."""

from __future__ import annotations

import json
import os
import socket

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._migrate import preflight

MOUNTS = "\n".join(
    [
        "/dev/sda1 / ext4 rw,relatime 0 0",
        "tank/data /srv zfs rw,xattr,posixacl 0 0",
        "/dev/sdb1 /srv/with\\040space vfat ro 0 0",
        "tmpfs /srv/caf\\303\\251 tmpfs rw 0 0",
        "overmounted /srv/with\\040space exfat rw 0 0",
        "broken",
    ]
)


@pytest.mark.parametrize(
    "path, point, fstype",
    [
        ("/", "/", "ext4"),
        ("/home/x", "/", "ext4"),
        ("/srv", "/srv", "zfs"),
        ("/srv/data/deep", "/srv", "zfs"),
        ("/srvx", "/", "ext4"),  # begins alike, lies elsewhere
        ("/srv/with space/a", "/srv/with space", "exfat"),  # the later mount hides the earlier
        ("/srv/café", "/srv/café", "tmpfs"),
    ],
)
def test_mount_of(path, point, fstype):
    found = preflight.mount_of(path, MOUNTS)
    assert (found["point"], found["type"]) == (point, fstype)


def mount(kind, source, point="/srv"):
    return {"point": point, "type": kind, "options": [], "source": source}


@pytest.mark.parametrize(
    "found, disks",
    [
        (mount("zfs", "tank/data/www"), ["pool tank"]),
        (mount("nfs4", "filer:/export/a"), ["server filer"]),
        (mount("cifs", "//filer/share"), ["server filer"]),
        (mount("tmpfs", "tmpfs", "/data"), ["/data"]),
        (mount("", "", ""), []),
    ],
)
def test_what_has_no_disk_is_told_apart_by_what_it_has(tmp_path, found, disks):
    assert preflight.find_disks(str(tmp_path), found, str(tmp_path)) == disks


def test_the_disks_below_partitions_volumes_and_arrays(tmp_path):
    """A volume is on an array of two partitions, and on a whole disk."""
    devices = tmp_path / "devices"
    for name in ("sda/sda1", "sdb/sdb1", "sdc", "md0/slaves", "dm-0/slaves"):
        (devices / name).mkdir(parents=True)
    for part in ("sda/sda1", "sdb/sdb1"):
        (devices / part / "partition").write_text("1")
        (devices / "md0/slaves" / part[-4:]).symlink_to(devices / part)
    (devices / "dm-0/slaves/md0").symlink_to(devices / "md0")
    (devices / "dm-0/slaves/sdc").symlink_to(devices / "sdc")
    number = os.stat(tmp_path).st_dev
    (tmp_path / "dev/block").mkdir(parents=True)
    shown = tmp_path / f"dev/block/{os.major(number)}:{os.minor(number)}"
    for device, expected in (("dm-0", ["sda", "sdb", "sdc"]), ("sda/sda1", ["sda"]), ("sdc", ["sdc"])):
        shown.symlink_to(devices / device)
        assert preflight.find_disks(str(tmp_path), mount("ext4", "/dev/x"), str(tmp_path)) == expected
        shown.unlink()


def test_devices_that_are_slaves_of_each_other_end(tmp_path):
    number = os.stat(tmp_path).st_dev
    (tmp_path / "dev/block").mkdir(parents=True)
    (tmp_path / "a/slaves").mkdir(parents=True)
    (tmp_path / "a/slaves/a").symlink_to(tmp_path / "a")
    (tmp_path / f"dev/block/{os.major(number)}:{os.minor(number)}").symlink_to(tmp_path / "a")
    assert preflight.find_disks(str(tmp_path), mount("ext4", ""), str(tmp_path)) == ["a"]


def test_no_table_of_mounts_means_nothing_is_known():
    assert preflight.mount_of("/srv", "")["type"] == ""


GOOD = {"readonly": "off", "sync": "standard", "acltype": "posix", "compression": "lz4", "atime": "off", "xattr": "sa"}


@pytest.mark.parametrize(
    "side, properties, pool, problems, warnings",
    [
        ("dest", {}, {"health": "ONLINE", "capacity": "10"}, 0, 0),
        ("dest", {}, {"health": "DEGRADED", "capacity": "10"}, 1, 0),
        ("source", {}, {"health": "DEGRADED", "capacity": "99"}, 1, 0),
        ("dest", {"readonly": "on"}, {"health": "ONLINE"}, 1, 0),
        ("source", {"readonly": "on"}, {"health": "ONLINE"}, 0, 0),
        ("dest", {}, {"health": "ONLINE", "capacity": "81"}, 0, 1),
        ("dest", {}, {"health": "ONLINE", "capacity": "81%"}, 0, 1),
        ("dest", {}, {"health": "ONLINE", "capacity": "80"}, 0, 0),
        ("dest", {"sync": "disabled", "acltype": "off", "compression": "off", "atime": "on", "xattr": "dir"}, {}, 0, 5),
        ("dest", {}, {}, 0, 0),
    ],
)
def test_judge_zfs(side, properties, pool, problems, warnings):
    verdict = preflight.evaluate_zfs(side, dict(GOOD, **properties), pool)
    assert (len(verdict["problems"]), len(verdict["warnings"])) == (problems, warnings)


def test_reach_tells_open_from_closed():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        listener.listen()
        assert preflight.reach("127.0.0.1", port) == "open"
    assert preflight.reach("127.0.0.1", port) == "refused"


def test_a_destination_that_does_not_exist_yet(tmp_path):
    said = preflight.discover("dest", str(tmp_path / "new" / "tree"), "", 22)
    room = os.statvfs(tmp_path)
    assert (said["base"], said["exists"], said["problems"]) == (str(tmp_path), False, [])
    assert abs(said["bytes_free"] - room.f_bavail * room.f_frsize) < 2**30
    assert said["tools"]["tar"] and os.access(said["tools"]["tar"], os.X_OK)


@pytest.mark.parametrize(
    "side, make, words",
    [
        ("source", None, "does not exist"),
        ("dest", "file", "is a file where a directory is needed"),
    ],
)
def test_what_stands_in_the_way(tmp_path, side, make, words):
    path = tmp_path / "x"
    if make:
        path.write_text("")
    (problem,) = preflight.discover(side, str(path / "tree" if make else path), "", 22)["problems"]
    assert words in problem


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to another user")
@pytest.mark.parametrize("side", ["source", "dest"])
def test_a_link_of_another_user_is_a_problem_and_leads_nowhere(tmp_path, side):
    (tmp_path / "victim").mkdir()
    (tmp_path / "www").symlink_to("victim")
    os.chown(tmp_path / "www", 1234, 1234, follow_symlinks=False)
    found = preflight.discover(side, f"{tmp_path}/www/", "", 22)
    (problem,) = found["problems"]
    assert f"{tmp_path}/www is a symbolic link of user id 1234 to victim" in problem
    assert (found["exists"], found["base"]) == (False, "/")


@pytest.mark.parametrize("fstype, words", [("nfs4", "no_root_squash"), ("cifs", "POSIX extensions"), ("ext4", None)])
def test_a_network_file_system_says_what_it_may_not_keep(tmp_path, monkeypatch, fstype, words):
    monkeypatch.setattr(preflight, "read_mounts", lambda: f"server:/export {tmp_path} {fstype} rw 0 0\n")
    warnings = preflight.discover("dest", str(tmp_path / "new"), "", 22)["warnings"]
    assert [words in warning for warning in warnings] == ([True] if words else [])
    assert preflight.discover("source", str(tmp_path), "", 22)["warnings"] == []


def test_what_it_says_of_any_path_can_be_json(tmp_path):
    path = str(tmp_path / "a 'b' $HOME \n")
    assert json.loads(json.dumps(preflight.discover("source", path, "", 22)))["path"] == path
