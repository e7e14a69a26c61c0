# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers that leave out on purpose what would lend the rights of somebody else, and say so once."""

from __future__ import annotations

import os
import shutil
import stat
import struct
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.digest import TreeDigest, differing_buckets
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.walk import walk
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import verified_fields
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ALL, Pair, settings
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.method_pairs import make_pair

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
needs_sshd = pytest.mark.skipif(SSHD is None, reason="needs sshd")
METHODS = ["stream", "tar_nc", pytest.param("scp", marks=needs_sshd), pytest.param("sftp", marks=needs_sshd)]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to other users")
CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)  # cap_net_bind_service=ep


def seems_equal(source, dest, preserve, trust="full"):
    """Whether the comparison after a transfer finds no difference."""
    fields = frozenset(verified_fields(preserve, True, True, trust))
    digests = [
        TreeDigest.of(
            walk(os.fsencode(root), xattrs=True, on_error=lambda *what: pytest.fail(str(what))), fields
        ).as_dict()
        for root in (source, dest)
    ]
    return not differing_buckets(*digests)


@pytest.mark.often(3)
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
@pytest.mark.parametrize("worth", [None, 1], ids=["one process", "several processes"])
@pytest.mark.parametrize("trust", ["none", "full"])
@pytest.mark.parametrize("method", METHODS)
def test_what_a_host_believes_of_its_files_comes_from_no_host_that_is_not_trusted(trees, method, trust, worth):
    source, dest, work = trees
    told = {"trusted.overlay.redirect": b"/etc", "security.longhaul": b"label", "user.note": b"1"}
    (source / "folder").mkdir()
    for name in ("small", "folder/large"):
        (source / name).write_bytes(b"c" * (10 if name == "small" else 400_000))
    for name in ("small", "folder", "folder/large"):
        for key, value in told.items():
            os.setxattr(source / name, key, value)
    os.setxattr(source / "small", "security.capability", CAPABILITY)
    shutil.copytree(source / "folder", dest / "folder", copy_function=lambda _from, to: Path(to).write_text("old"))
    for key in told:
        os.removexattr(dest / "folder", key)
    os.setxattr(dest / "folder", "trusted.own", b"1")

    def run(**changes):
        plan = settings(method, encrypt=False, streams=2, trust=trust, **changes)
        pair = Pair(work, source, dest, plan)
        pair.worth = worth
        if method in ("scp", "sftp"):
            pair.use_ssh()
        return pair.run()

    outcome = run()
    assert outcome.get("errors") == [] and not outcome["failure"], outcome
    told = told if trust == "full" else {"user.note": b"1"}
    own = {} if trust == "full" else {"trusted.own": b"1"}
    found = {name: attributes(dest / name) for name in ("small", "folder", "folder/large")}
    capable = {**told, "security.capability": CAPABILITY}
    assert found == {"small": capable, "folder": {**told, **own}, "folder/large": told}
    warned = ["extended attributes of the namespaces trusted and security (other than capabilities) are not set"]
    assert [text.partition(",")[0] for text in outcome["warnings"]] == (warned if trust == "none" else [])
    assert trust == "full" or "3 entries" in outcome["warnings"][0]
    assert seems_equal(source, dest, ALL, trust)
    assert trust == "full" or not seems_equal(source, dest, ALL)
    again = run(checksum=True)
    assert again["errors"] == [] and again["warnings"] == [] and not again["changed"]


@needs_sshd
@pytest.mark.often(2)
@pytest.mark.parametrize("names", [False, True], ids=["chroot", "confine-root"])
@pytest.mark.parametrize("serving", ["dest", "source"])
def test_nor_does_rsync_take_it(trees, serving, names):
    """Also where a name is one that a rule for attributes, taken for one for files, would leave out."""
    source, dest, _work = trees
    told = {"trusted.overlay.redirect": b"/etc", "security.longhaul": b"label", "user.note": b"1"}
    (source / "security.folder").mkdir()
    for name in ("trusted.file", "security.folder", "security.folder/file"):
        if not (source / name).exists():
            (source / name).write_text(name)
        for key, value in told.items():
            os.setxattr(source / name, key, value)
    os.setxattr(source / "trusted.file", "security.capability", CAPABILITY)
    os.setxattr(dest, "trusted.own", b"1")
    changes = {"trust": "none", "streams": 1, "numeric_ids": not names}
    outcome = make_pair(trees, "rsync", serving, **changes).run()
    assert outcome.get("errors") == [] and not outcome["failure"], outcome
    kept = {"user.note": b"1"}
    assert attributes(dest) == {"trusted.own": b"1"}
    assert attributes(dest / "trusted.file") == {**kept, "security.capability": CAPABILITY}
    assert attributes(dest / "security.folder") == attributes(dest / "security.folder/file") == kept
    again = make_pair(trees, "rsync", serving, **changes).run()
    assert again["errors"] == [] and not again["changed"]
    assert seems_equal(source, dest, ALL, "none")
    trusting = make_pair(trees, "rsync", serving, **{**changes, "trust": "full"}).run()
    assert trusting["errors"] == [] and attributes(dest / "security.folder") == told


def attributes(path):
    """Return all extended attributes of a file but for its ACLs."""
    return {key: os.getxattr(path, key) for key in os.listxattr(path) if not key.startswith("system.")}


def test_a_copy_of_what_has_other_names_keeps_what_this_host_believes_of_it(trees):
    source, dest, work = trees
    for folder in (source, dest):
        (folder / "file").write_text("same")
        os.utime(folder / "file", ns=(10**18, 10**18))
    os.setxattr(dest / "file", "trusted.own", b"1")
    os.link(dest / "file", dest.with_name("outside"))
    (source / "file").chmod(0o600)
    outcome = Pair(work, source, dest, settings("stream", encrypt=False, trust="none")).run()
    assert outcome["errors"] == [] and (dest / "file").stat().st_ino != dest.with_name("outside").stat().st_ino
    assert os.getxattr(dest / "file", "trusted.own") == b"1"


@pytest.mark.often(3)
@pytest.mark.parametrize("changes", [{}, {"checksum": True}], ids=["quick", "checksum"])
@pytest.mark.parametrize("method", METHODS)
def test_a_file_that_another_user_put_there_is_not_made_set_id(trees, method, changes):
    expect_another_file(trees, method, **changes)


def test_a_file_that_another_user_put_there_is_not_written_into(trees):
    expect_another_file(trees, "stream", inplace=True)


@pytest.mark.parametrize("preserve", [ALL, ["permissions", "times"]], ids=["owners", "no owners"])
def test_what_is_to_be_another_users_is_not_written_into_his_file(trees, preserve):
    """He may have it open, and would read what only its new owner may read."""
    source, dest, work = trees
    (source / "large").write_bytes(b"secret" * 100_000)
    (source / "large").chmod(0o600)
    (dest / "large").write_bytes(b"public" * 100_000)
    os.chown(dest / "large", 1000, 1000)
    with open(dest / "large", "rb") as opened:
        plan = settings("stream", encrypt=False, inplace=True, preserve=preserve)
        outcome = Pair(work, source, dest, plan).run()
        read = opened.read(6)
    assert outcome["errors"] == [] and (dest / "large").read_bytes() == (source / "large").read_bytes()
    assert read == (b"public" if preserve is ALL else b"secret")  # else it goes on being his


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
