# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files at the destination that a transfer takes away from another user, who may hold them open."""

from __future__ import annotations

import mmap
import os
import shutil
import socket

import pytest
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ALL
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.method_pairs import make_pair

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
needs_sshd = pytest.mark.skipif(SSHD is None, reason="needs sshd")
METHODS = ["stream", "tar_nc", pytest.param("scp", marks=needs_sshd), pytest.param("sftp", marks=needs_sshd)]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to other users")
USER, OTHER = 1234, 1235
SIZES = {"small": 1000, "large": 400_000}
WITHOUT_TIMES = [word for word in ALL if word != "times"]


def plant(trees, content, owner=0, mode=0o644):
    """Make files of the source, and of a user at the destination with the same sizes and times."""
    source, dest, _work = trees
    for name, size in SIZES.items():
        (source / name).write_bytes(b"p" * size)
        os.chown(source / name, owner, owner)
        (dest / name).write_bytes(content * size)
        os.chown(dest / name, USER, USER)
        (dest / name).chmod(mode)
        os.utime(source / name, ns=(10**18, 10**18 + 5))
        os.utime(dest / name, ns=(10**18, 10**18 + 5))
    return {name: (dest / name).stat().st_ino for name in SIZES}


def inodes(dest):
    return {name: (dest / name).stat().st_ino for name in SIZES}


@pytest.mark.often(3)
@pytest.mark.parametrize("changes", [{}, {"checksum": True}, {"preserve": WITHOUT_TIMES}], ids=str)
@pytest.mark.parametrize("hold", ["written", "mapped"])
@pytest.mark.parametrize("method", METHODS)
def test_who_holds_a_file_open_writes_to_his_own(trees, method, hold, changes):
    """Its content is the right one, and would be another one as soon as the transfer has ended."""
    before = plant(trees, b"p")
    source, dest, _work = trees
    opened = [open(dest / name, "r+b") for name in SIZES]  # noqa: SIM115
    maps = [mmap.mmap(file.fileno(), 0) for file in opened] if hold == "mapped" else []
    if hold == "mapped":
        for file in opened:
            file.close()
    predicted = make_pair(trees, method, check=True, **changes).run()
    assert predicted["errors"] == []
    outcome = make_pair(trees, method, **changes).run()
    for file in maps or opened:
        file.write(b"evil")
        file.flush()
        file.close()
    assert outcome["errors"] == [] and outcome["files_updated"] == len(SIZES)
    assert not set(before.values()) & set(inodes(dest).values())
    assert differences(source, dest, ignore=() if "times" in changes.get("preserve", ALL) else ("mtime",)) == []
    again = make_pair(trees, method, **changes).run()
    assert again["errors"] == [] and not again["changed"]


@pytest.mark.often(3)
@pytest.mark.parametrize("owner", [0, OTHER])
@pytest.mark.parametrize("method", METHODS)
def test_a_file_that_only_looks_the_same_is_replaced(trees, method, owner):
    before = plant(trees, b"E", owner)
    source, dest, _work = trees
    predicted = make_pair(trees, method, check=True).run()
    outcome = make_pair(trees, method).run()
    assert outcome["errors"] == [] and outcome["files_updated"] == predicted["files_updated"] == len(SIZES)
    assert differences(source, dest) == [] and not set(before.values()) & set(inodes(dest).values())


@pytest.mark.often(3)
@pytest.mark.parametrize("mode", [0o644, 0o666])
@pytest.mark.parametrize("owner", [0, OTHER])
@pytest.mark.parametrize("method", METHODS)
def test_a_change_of_owner_costs_a_comparison(trees, method, owner, mode):
    before = plant(trees, b"p", owner, mode)
    source, dest, _work = trees
    with open(dest / "small", "rb"):  # who reads is in nobody's way
        predicted = make_pair(trees, method, check=True).run()
        assert inodes(dest) == before and (dest / "small").stat().st_uid == USER
        outcome = make_pair(trees, method).run()
    assert outcome["errors"] == [] and outcome["attributes_changed"] == predicted["attributes_changed"]
    assert outcome["files_updated"] == predicted["files_updated"] == outcome["bytes_sent"] == 0 and outcome[
        "bytes_matched"
    ] == sum(SIZES.values())
    assert inodes(dest) == before and differences(source, dest) == []


def test_a_file_with_other_names_is_replaced(trees):
    plant(trees, b"p")
    source, dest, _work = trees
    for name in SIZES:
        os.link(source / name, source / f"{name} too")
        os.link(dest / name, dest / f"{name} too")
        os.link(dest / name, dest.with_name(f"kept {name}"))
    outcome = make_pair(trees, "stream").run()
    assert outcome["errors"] == [] and differences(source, dest) == []
    for name in SIZES:
        assert dest.with_name(f"kept {name}").stat().st_uid == USER
        assert not os.path.samefile(dest.with_name(f"kept {name}"), dest / name)


def test_in_place_a_file_that_is_held_open_is_an_error(trees):
    before = plant(trees, b"p")
    source, dest, _work = trees
    with open(dest / "large", "r+b") as held:
        outcome = make_pair(trees, "stream", inplace=True).run()
        assert [error["path"] for error in outcome["errors"]] == ["large"]
        assert "user id 1234" in outcome["errors"][0]["reason"] and "inplace" in outcome["errors"][0]["reason"]
        assert os.fstat(held.fileno()).st_uid == USER and inodes(dest)["large"] == before["large"]
    outcome = make_pair(trees, "stream", inplace=True).run()
    assert outcome["errors"] == [] and differences(source, dest) == [] and inodes(dest)["large"] == before["large"]


def test_sockets_and_fifos_of_another_user_are_replaced(trees):
    """Whoever listens there goes on listening."""
    source, dest, work = trees
    for folder in (source, dest):
        os.mkfifo(folder / "fifo")
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(os.path.relpath(folder / "socket"))
        os.symlink("fifo", folder / "link")
    for name in ("fifo", "socket", "link"):
        os.chown(dest / name, USER, USER, follow_symlinks=False)
    before = {name: (dest / name).lstat().st_ino for name in ("fifo", "socket", "link")}
    outcome = make_pair(trees, "stream").run()
    assert outcome["errors"] == [] and differences(source, dest) == []
    assert {name for name, inode in before.items() if (dest / name).lstat().st_ino == inode} == {"link"}
    assert outcome["attributes_changed"] >= len(before) and work.exists()


@pytest.mark.parametrize("content", [b"p", b"E"], ids=["the same", "another"])
def test_an_older_copy_of_another_user_is_compared_before_it_is_taken(trees, content):
    plant(trees, content)
    source, dest, _work = trees
    dest.rename(dest.with_name("older"))
    dest.mkdir()
    outcome = make_pair(trees, "stream", link_dest=[str(dest.with_name("older"))]).run()
    assert outcome["errors"] == [] and differences(source, dest) == []
    assert (outcome["bytes_sent"] == 0) == (content == b"p")
    assert all(path.stat().st_uid == USER for path in dest.with_name("older").iterdir())
