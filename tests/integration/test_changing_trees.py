# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trees that change on the way, cannot be read, or must not be deleted: what each method does, side by side."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.support.faults import (
    METHODS,
    MIB,
    START_RATE,
    Transfer,
    expect_nothing_left,
    fail_all,
    failed,
    run_all,
    several,
    start_all,
)
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.rarely import PAIRS
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

PLAIN = 5002  # the user who is not root on the hosts


@pytest.mark.parametrize("methods", PAIRS)
def test_a_source_in_use(hosts: Testbed, playbooks: Playbooks, methods: tuple[str, ...]) -> None:
    transfers = several(hosts, playbooks, methods)
    transfers[0].options["streams"] = 1  # two would send what changes beside the large file that comes before it
    for transfer in transfers:
        transfer.fill(1, 8 * MIB)
        (transfer.source / "large").mkdir()
        for name in ("grows", "shrinks", "rewritten", "vanishes", "becomes-a-directory"):
            (transfer.source / "large" / name).write_bytes(b"a" * MIB)
        (transfer.source / "z-folder").mkdir()
        (transfer.source / "z-folder/file").write_text("content")
    running = start_all(transfers, "40mbit")
    for transfer in transfers:
        change(transfer.source)
    hosts.shape("alpha", None)
    for transfer, one in zip(transfers, running):
        run = one.wait()
        result = run.result("Move") if run.rc == 0 else failed(run)
        assert result["vanished"] >= 1, (transfer.method, result)
        if run.rc:
            assert "becomes-a-directory" in result["msg"] and "again" in result["msg"], result["msg"]
        for name in ("grows", "shrinks", "rewritten"):
            found = transfer.dest / "large" / name
            assert not found.exists() or is_a_version(found.read_bytes()), (transfer.method, name)
    for transfer, done in zip(transfers, run_all(transfers, delete=True, verify="checksum")):
        transfer.expect_identical()
        assert done["verified"] == "checksum"
    expect_nothing_left(transfers)


def change(source: Path) -> None:
    """Do to the files of a tree what programs that are at work do."""
    large = source / "large"
    with (large / "grows").open("ab") as stream:
        stream.write(b"b" * MIB)
    os.truncate(large / "shrinks", MIB // 2)
    status = (large / "rewritten").stat()
    (large / "rewritten").write_bytes(b"b" * MIB)
    os.utime(large / "rewritten", ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    (large / "vanishes").unlink()
    (large / "becomes-a-directory").unlink()
    (large / "becomes-a-directory").mkdir()
    (large / "becomes-a-directory/file").write_text("content")
    (source / "z-folder/file").unlink()
    (source / "z-folder").rmdir()


def is_a_version(content: bytes) -> bool:
    """Whether a file is as it was at some moment: of one letter, or grown."""
    return content in (b"a" * MIB, b"b" * MIB, b"a" * MIB + b"b" * MIB, b"a" * (MIB // 2))


@pytest.mark.parametrize("methods", PAIRS)
def test_an_unreadable_folder_deletes_nothing(hosts: Testbed, playbooks: Playbooks, methods: tuple[str, ...]) -> None:
    transfers = several(hosts, playbooks, methods, delete=True)
    playbooks.inventory = hosts.inventory(
        playbooks.folder / "plain.yml", user="plain", extra={"ansible_pipelining": True}
    )
    for transfer in transfers:
        for name in ("open", "closed"):
            (transfer.source / name).mkdir(parents=True)
            (transfer.source / name / "file").write_text(name)
        transfer.dest.mkdir()
        (transfer.dest / "extra").write_text("only here")
        for path in (transfer.source, transfer.dest, *transfer.source.rglob("*"), transfer.dest / "extra"):
            os.chown(path, PLAIN, PLAIN)
    run_all(transfers)
    for transfer in transfers:
        assert not (transfer.dest / "extra").exists()
        (transfer.source / "open/file").unlink()
        (transfer.source / "open/new").write_text("new")
        (transfer.source / "closed").chmod(0)
    for transfer, message in zip(transfers, fail_all(transfers)):
        assert "closed" in message and "denied" in message, (transfer.method, message)
        assert (transfer.dest / "closed/file").exists(), transfer.method
        assert (transfer.dest / "open/file").exists(), transfer.method
        assert (transfer.dest / "open/new").read_text() == "new"
        (transfer.source / "closed").chmod(0o755)
    run_all(transfers)
    for transfer in transfers:
        assert not (transfer.dest / "open/file").exists()


@pytest.mark.long
@pytest.mark.parametrize("methods", PAIRS)
def test_deletions_have_limits(hosts: Testbed, playbooks: Playbooks, methods: tuple[str, ...]) -> None:
    transfers = several(hosts, playbooks, methods, delete=True)
    for transfer in transfers:
        transfer.source.mkdir()
        for number in range(6):
            (transfer.source / f"file{number}").write_text("content")
    run_all(transfers)
    for transfer in transfers:
        for number in range(3):
            (transfer.source / f"file{number}").unlink()
    for transfer, message in zip(transfers, fail_all(transfers, max_delete=2)):
        assert "max_delete" in message and "3" in message, (transfer.method, message)
        assert len(list(transfer.dest.iterdir())) == 6
    for done in run_all(transfers, max_delete=3):
        assert done["files_deleted"] == 3
    for transfer in transfers:
        for path in transfer.source.iterdir():
            path.unlink()
    for transfer, message in zip(transfers, fail_all(transfers)):
        assert "empty" in message and "max_delete" in message, (transfer.method, message)
        assert len(list(transfer.dest.iterdir())) == 3
    run_all(transfers, max_delete=3)
    for transfer in transfers:
        transfer.expect_identical()


@pytest.mark.long
@pytest.mark.parametrize("methods", PAIRS)
def test_other_types_in_the_way(hosts: Testbed, playbooks: Playbooks, methods: tuple[str, ...]) -> None:
    transfers = several(hosts, playbooks, methods)
    for transfer in transfers:
        put(transfer)
    for transfer, message in zip(transfers, fail_all(transfers)):
        assert "file-for-full-folder" in message, (transfer.method, message)
        assert (transfer.dest / "file-for-full-folder/kept").read_text() == "kept", transfer.method
        assert (transfer.dest / "new").read_text() == "new", transfer.method
    for done in run_all(transfers, delete=True):
        assert done["files_deleted"] >= 1
    for transfer in transfers:
        transfer.expect_identical()
    assert not any(done["changed"] for done in run_all(transfers, delete=True))


def put(transfer: Transfer) -> None:
    """Make two trees in which the same names are of different types."""
    for root in (transfer.source, transfer.dest):
        root.mkdir()
    for name in ("file-for-full-folder", "file-for-link", "new"):
        (transfer.source / name).write_text("new")
    (transfer.source / "folder-for-file").mkdir()
    (transfer.source / "folder-for-file/inside").write_text("inside")
    (transfer.source / "folder-for-link").mkdir()
    (transfer.source / "folder-for-link/inside").write_text("inside")
    (transfer.source / "link-for-file").symlink_to("new")
    (transfer.dest / "file-for-full-folder").mkdir()
    (transfer.dest / "file-for-full-folder/kept").write_text("kept")
    (transfer.dest / "file-for-link").symlink_to("/etc/hostname")
    (transfer.dest / "folder-for-file").write_text("file")
    (transfer.dest / "folder-for-link").symlink_to("/etc")
    (transfer.dest / "link-for-file").write_text("file")


@pytest.mark.parametrize("methods", PAIRS)
def test_two_transfers_to_one_destination(hosts: Testbed, playbooks: Playbooks, methods: tuple[str, ...]) -> None:
    firsts = several(hosts, playbooks, methods, verify="none")
    for transfer in firsts:
        transfer.fill(1, 32 * MIB)
    (hosts.root("alpha") / "data/other").mkdir()
    (hosts.root("alpha") / "data/other/file").write_text("other")
    running = start_all(firsts, START_RATE)
    seconds = [
        Transfer(hosts, playbooks, method, name="other", dest=f"/data/dest-{first.method}")
        for method, first in zip(reversed(METHODS), firsts)
    ]
    for message in fail_all(seconds):
        assert "is writing to /data/dest-" in message, message
    for first, message in zip(firsts, fail_all(firsts, delete=True)):
        assert "running already" in message and "options" in message, (first.method, message)
    hosts.shape("alpha", None)
    for first, one in zip(firsts, running):
        one.wait().expect_success()
        first.expect_identical()
    expect_nothing_left(firsts)
