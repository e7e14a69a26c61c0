# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each method moves a tree between two hosts: everything in it arrives, and a second run does nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support import compare, leftovers
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files, make_hard_tree, remove_tree
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

METHODS = ("stream", "rsync", "rsyncd", "tar_nc", "scp", "sftp")
CANNOT = {method: ["longer than PATH_MAX"] for method in ("rsync", "rsyncd")}  # rsync refuses it, by name
COUNTS = ("files_total", "files_created", "files_updated", "files_deleted", "files_unchanged", "attributes_changed")


def transfers(playbooks: Playbooks, *runs: dict[str, Any]) -> list[dict[str, Any]]:
    """Run transfers from alpha to beta one after the other, and give their results; ``check`` only predicts."""
    tasks = []
    for number, options in enumerate(runs):
        given = {"src_host": "alpha", "src": "/data/src/", "dest": "/data/dest", "encryption": "none", **options}
        check = given.pop("check", False)
        tasks.append({"name": f"Run {number}", "longhaul.fleet.transfer": given, "check_mode": check, "diff": check})
        if check:  # at the destination nothing is made, and nothing is changed
            look = "find /data -path /data/src -prune -o -printf '%p %s %m %T@\\n' | sort | sha256sum"
            tasks.insert(-1, {"name": f"Before {number}", "ansible.builtin.shell": look})
            tasks.append({"name": f"After {number}", "ansible.builtin.shell": look})
    run = playbooks.run(tasks, hosts="beta").expect_success()
    results = [run.result(f"Run {number}") for number in range(len(runs))]
    for number, options in enumerate(runs):
        if options.get("check"):
            assert run.result(f"Before {number}")["stdout"] == run.result(f"After {number}")["stdout"]
    return results


def trees(bed: Testbed) -> tuple[Path, Path]:
    """Return the paths of source and destination as this machine sees them."""
    return bed.root("alpha") / "data/src", bed.root("beta") / "data/dest"


@pytest.mark.parametrize(
    ("method", "connect"),
    [
        *((method, "push") for method in ("stream", "rsync")),
        ("stream", "pull"),
        *rarely(*((method, "push") for method in ("tar_nc", "rsyncd", "scp", "sftp")), ("rsync", "pull")),
    ],
)
def test_a_hard_tree_arrives_identical(hosts: Testbed, playbooks: Playbooks, method: str, connect: str) -> None:
    source, dest = trees(hosts)
    before = {host: leftovers.snapshot(hosts, host) for host in hosts.hosts}
    make_hard_tree(source, without=CANNOT.get(method, ()))

    how = {"method": method, "connect": connect}
    predicted, first, second = transfers(playbooks, {**how, "check": True}, how, {**how, "verify": "checksum"})
    assert compare.differences(source, dest) == []
    assert first["changed"]
    assert first["verified"] == "size"
    assert {name: predicted[name] for name in COUNTS} == {name: first[name] for name in COUNTS}

    assert not second["changed"], second["changes"]
    assert second["bytes_sent"] == 0
    assert second["files_unchanged"] == second["files_total"] == first["files_total"]
    for tree in (source, dest, source.with_name("src.outside")):
        remove_tree(tree)
    assert {host: leftovers.snapshot(hosts, host) for host in hosts.hosts} == before


# How each method is told what only it takes, and the words by which its programs are told.
OWN = {
    "rsync": ({"compress": "zlib", "compress_level": 7}, ["--compress-choice=zlib", "--compress-level=7"]),
    "sftp": ({"sftp_buffer_size": 65536, "sftp_requests": 16}, ["-B", "65536", "-R", "16"]),
}


@pytest.mark.parametrize(
    ("method", "streams"),
    [
        ("stream", 3),
        *rarely(("rsync", 1), ("rsyncd", 3), ("tar_nc", 3), ("scp", 1), ("sftp", 1)),
    ],
)
def test_changes_are_followed_and_counted(hosts: Testbed, playbooks: Playbooks, method: str, streams: int) -> None:
    own, words = OWN.get(method, ({}, []))
    source, dest = trees(hosts)
    make_big_files(source / "big", 24 << 20, count=3)
    for number in range(40):
        (source / f"dir{number % 4}").mkdir(exist_ok=True)
        (source / f"dir{number % 4}" / f"file{number}").write_text(f"content {number}")
    transfers(playbooks, {"method": method, "streams": streams})

    (source / "dir0/file0").write_text("replaced, and longer than it was")
    (source / "dir1/file1").chmod(0o600)
    (source / "dir2/file2").unlink()
    (source / "dir3/new").write_text("new")
    (dest / "extra").mkdir()
    (dest / "extra/file").write_text("only here")

    how = {"method": method, "streams": streams, "delete": True, **own}
    predicted, done, again = transfers(playbooks, {**how, "check": True}, how, how)
    assert compare.differences(source, dest) == []
    assert (done["files_created"], done["files_updated"], done["files_deleted"]) == (1, 1, 3)
    assert {name: predicted[name] for name in COUNTS} == {name: done[name] for name in COUNTS}
    assert sorted(predicted["diff"]["prepared"].splitlines()) == sorted(done["changes"])
    ran = " ".join(argv for of_a_host in done["cmd"].values() for argv in of_a_host).split()
    assert [word for word in words if word not in ran] == [], done["cmd"]
    assert not again["changed"], again["changes"]


@pytest.mark.smoke
@pytest.mark.parametrize("method", ["stream", *rarely("rsync")])
def test_sudo_with_a_password_on_both_hosts(hosts: Testbed, playbooks: Playbooks, tmp_path: Path, method: str) -> None:
    source, dest = trees(hosts)
    make_hard_tree(source, many=50, without=CANNOT.get(method, ()))
    playbooks.inventory = hosts.inventory(tmp_path / "mover.yml", user="mover")
    transfers(playbooks, {"method": method})
    assert compare.differences(source, dest) == []


@pytest.mark.parametrize("method", ["stream", *rarely("rsync", "rsyncd", "tar_nc", "scp", "sftp")])
def test_a_single_file_over_ipv6(hosts: Testbed, playbooks: Playbooks, tmp_path: Path, method: str) -> None:
    playbooks.inventory = hosts.inventory(tmp_path / "ipv6.yml", ipv6=True, extra={"ansible_pipelining": True})
    source, dest = trees(hosts)
    make_big_files(source, 3 << 20, count=2)
    name = sorted(path.name for path in source.iterdir())[0]
    how = {"src": f"/data/src/{name}", "method": method}
    _first, again = transfers(playbooks, {**how, "dest": "/data/dest/"}, {**how, "dest": f"/data/dest/{name}"})
    assert [path.name for path in dest.iterdir()] == [name]
    assert (dest / name).read_bytes() == (source / name).read_bytes()
    assert not again["changed"]


@pytest.mark.parametrize("connect", ["push", *rarely("pull")])
@pytest.mark.parametrize("method", ["stream", "tar_nc", *rarely("rsync", "rsyncd", "scp", "sftp")])
def test_addresses_with_a_zone(hosts: Testbed, playbooks: Playbooks, tmp_path: Path, method: str, connect: str) -> None:
    """A link-local address means nothing without the interface behind its ``%``."""
    playbooks.inventory = hosts.inventory(tmp_path / "zone.yml")
    inventory = json.loads(playbooks.inventory.read_text())
    for name, variables in inventory["all"]["hosts"].items():
        shown = hosts.exec(name, ["ip", "-o", "-6", "addr", "show", "dev", "eth1", "scope", "link"]).stdout
        variables["longhaul_address"] = f"{shown.split()[3].partition('/')[0]}%eth1"
    playbooks.inventory.write_text(json.dumps(inventory))
    source, dest = trees(hosts)
    make_big_files(source, 3 << 20, count=2)
    transfers(playbooks, {"method": method, "connect": connect})
    assert compare.differences(source, dest) == []


@pytest.mark.parametrize("method", ["stream", *rarely("rsync")])
def test_verification_repairs_contents_that_went_wrong_in_silence(
    hosts: Testbed, playbooks: Playbooks, method: str
) -> None:
    source, dest = trees(hosts)
    make_big_files(source, 8 << 20, count=1)
    (large,) = [path for path in source.rglob("*") if path.is_file()]
    (source / "small").write_text("right")
    (source / "other name of small").hardlink_to(source / "small")
    transfers(playbooks, {"method": method})
    for name, at, wrong in ((large.name, 5 << 20, b"wrong"), ("small", 0, b"wrong")):
        (path,) = dest.rglob(name)
        before = path.stat()
        with path.open("r+b") as file:
            file.seek(at)
            file.write(wrong)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    blind, repaired = transfers(playbooks, {"method": method}, {"method": method, "verify": "checksum"})
    assert not blind["changed"]
    assert repaired["changed"] and repaired["verified"] == "checksum"
    expected = sorted([str(large.relative_to(source)), "other name of small", "small"])
    assert (sorted(repaired["repaired"]), repaired["repaired_total"]) == (expected, 3)
    assert 0 < repaired["bytes_sent"] <= 256 << 10, repaired["bytes_sent"]  # not the 8 MiB
    assert any("memory" in text for text in repaired["warnings"])
    assert compare.differences(source, dest) == []


@pytest.mark.long
def test_the_bottleneck_is_named(hosts: Testbed, playbooks: Playbooks) -> None:
    source, _dest = trees(hosts)
    make_big_files(source, 12 << 20, count=2)
    hosts.shape("alpha", "30mbit")
    (shaped,) = transfers(playbooks, {"method": "stream"})
    hosts.shape("alpha", None)
    limited, program = transfers(
        playbooks,
        {"method": "stream", "dest": "/data/limited", "bwlimit": "2M"},
        {"method": "rsync", "dest": "/data/program", "bwlimit": "2M"},
    )
    for result in (shaped, limited):
        assert result["bottleneck"]["name"] == "network", result["bottleneck"]
    assert "bwlimit" not in shaped["bottleneck"]["advice"], shaped["bottleneck"]
    assert "bwlimit" in limited["bottleneck"]["advice"], limited["bottleneck"]
    assert program["bottleneck"]["name"] in ("network", "none")  # of a program little shows
    assert program["bottleneck"]["source"]["processor"] > 0
    assert limited["bottleneck"]["source"]["throttled"] > 2
    for side, waits in (("source", "waiting_to_send"), ("dest", "waiting_to_receive")):
        assert shaped["bottleneck"][side][waits] > 1.5, shaped["bottleneck"]


@pytest.mark.long
def test_content_that_moved_is_left_to_rsync(hosts: Testbed, playbooks: Playbooks) -> None:
    source, dest = trees(hosts)
    make_big_files(source / "folder", 8 << 20, count=2)
    transfers(playbooks, {"method": "stream"})
    moved, other = sorted((source / "folder").iterdir())
    moved.write_bytes(b"inserted" + moved.read_bytes())
    with other.open("ab") as file:
        file.write(b"appended")
    (source / "new").write_text("new")
    (result,) = transfers(playbooks, {"delta": "rsync", "delete": True, "verify": "checksum"})
    assert (result["method"], result["by_rsync"], result["repaired_total"]) == ("stream", 1, 0)
    assert (result["files_created"], result["files_updated"]) == (1, 2)
    assert result["bytes_sent"] < 1 << 20, result["bytes_sent"]  # not the 4 MiB of the file whose content moved
    assert compare.differences(source, dest) == []
