# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers that leave out on purpose what would lend the rights of somebody else, and say so once."""

from __future__ import annotations

import os
import shutil
import stat
import struct

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.digest import TreeDigest, differing_buckets
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.walk import walk
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report import verified_fields
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair, settings

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
needs_sshd = pytest.mark.skipif(SSHD is None, reason="needs sshd")
METHODS = ["stream", "tar_nc", pytest.param("scp", marks=needs_sshd), pytest.param("sftp", marks=needs_sshd)]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to other users")
CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)  # cap_net_bind_service=ep


def seems_equal(source, dest, preserve):
    """Whether the comparison after a transfer finds no difference."""
    fields = frozenset(verified_fields(preserve, True, True))
    digests = [
        TreeDigest.of(
            walk(os.fsencode(root), xattrs=True, on_error=lambda *what: pytest.fail(str(what))), fields
        ).as_dict()
        for root in (source, dest)
    ]
    return not differing_buckets(*digests)


@pytest.mark.often(4)
@pytest.mark.parametrize("worth", [None, 1], ids=["one process", "several processes"])
@pytest.mark.parametrize("preserve", [["permissions", "times"], ["permissions", "times", "xattrs"]], ids=" ".join)
@pytest.mark.parametrize("method", METHODS)
def test_setuid_and_capabilities_of_other_users_are_a_warning(trees, method, preserve, worth):
    source, dest, work = trees
    (source / "folder").mkdir()
    for number in range(5):
        path = source / f"program {number}"
        path.write_text("program")
        os.chown(path, 1000, 1000)
        path.chmod(0o6755)
        os.setxattr(path, "security.capability", CAPABILITY)
    os.chown(source / "folder", 1000, 1000)
    (source / "folder").chmod(0o2755)
    (source / "own").write_text("root's own")
    (source / "own").chmod(0o4755)
    os.setxattr(source / "own", "security.capability", CAPABILITY)

    def run():
        pair = Pair(work, source, dest, settings(method, encrypt=False, preserve=preserve, streams=2))
        pair.worth = worth
        if method in ("scp", "sftp"):
            pair.use_ssh()
        return pair.run()

    outcome = run()
    assert outcome.get("errors") == [] and not outcome["failure"], outcome
    kinds = {text.partition(" ")[0]: text for text in outcome["warnings"]}
    assert set(kinds) == {"setuid", *(["capabilities"] if "xattrs" in preserve else [])}
    assert "6 entries" in kinds["setuid"]
    if "xattrs" in preserve:
        assert "5 entries" in kinds["capabilities"]
        assert os.getxattr(dest / "own", "security.capability") == CAPABILITY
    for number in range(5):
        arrived = dest / f"program {number}"
        assert (arrived.stat().st_uid, stat.S_IMODE(arrived.stat().st_mode)) == (0, 0o755)
        assert os.listxattr(arrived) == []
    assert stat.S_IMODE((dest / "own").stat().st_mode) == 0o4755
    assert seems_equal(source, dest, preserve)
    again = run()
    assert again["errors"] == [] and again["warnings"] == [] and not again["changed"]
    (dest / "own").chmod(0o755 ^ 0o111)
    assert not seems_equal(source, dest, preserve)


def test_with_owners_nothing_is_left_out(trees):
    source, dest, work = trees
    path = source / "program"
    path.write_text("program")
    os.chown(path, 1000, 1000)
    path.chmod(0o6755)
    os.setxattr(path, "security.capability", CAPABILITY)
    outcome = Pair(work, source, dest, settings("stream", encrypt=False)).run()
    assert outcome["errors"] == [] and outcome["warnings"] == []
    assert differences(source, dest) == []
    (dest / "program").chmod(0o755)
    assert not seems_equal(source, dest, ["owner", "group", "permissions"])


@pytest.mark.often(4)
@pytest.mark.parametrize("changes", [{}, {"checksum": True}], ids=["quick", "checksum"])
@pytest.mark.parametrize("method", METHODS)
def test_a_file_that_another_user_put_there_is_not_made_set_id(trees, method, changes):
    expect_another_file(trees, method, **changes)


def test_a_file_that_another_user_put_there_is_not_written_into(trees):
    expect_another_file(trees, "stream", inplace=True)


def expect_another_file(trees, method, **changes):
    """A user's file with the size and time of a program must be replaced: once set-id, it runs as its new owner."""
    source, dest, work = trees
    for name, mode, size in (("setuid", 0o4755, 1000), ("setgid", 0o2755, 400_000), ("capable", 0o755, 1000)):
        (source / name).write_bytes(b"p" * size)
        (source / name).chmod(mode)
        content = b"p" * size if changes.get("checksum") else b"E" * size
        (dest / name).write_bytes(content)
        os.chown(dest / name, 1000, 1000)
        shutil.copystat(source / name, dest / name)
        (dest / name).chmod(0o755)
    os.setxattr(source / "capable", "security.capability", CAPABILITY)
    held = {path.name: path.stat().st_ino for path in dest.iterdir()}

    def run(**more):
        pair = Pair(work, source, dest, settings(method, encrypt=False, **changes, **more))
        if method in ("scp", "sftp"):
            pair.use_ssh()
        return pair.run()

    predicted = run(check=True)
    outcome = run()
    assert outcome["errors"] == [] and outcome["files_updated"] == predicted["files_updated"] == 3, outcome
    assert differences(source, dest) == []
    assert not {name for name, inode in held.items() if (dest / name).stat().st_ino == inode}
    assert not run()["changed"]
