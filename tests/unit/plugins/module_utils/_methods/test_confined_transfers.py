# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers, whose two sides have given up what they do not need: everything arrives all the same."""

from __future__ import annotations

import os
import shutil
import sys

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.confinement import landlock
from ansible_collections.longhaul.fleet.plugins.module_utils._core.confinement.confine import kernel
from ansible_collections.longhaul.fleet.tests.support import hard_tree
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.method_pairs import make_pair

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin") is None,
    reason="cannot run here: needs Linux and OpenSSH's server",
)
IS_ROOT = os.geteuid() == 0
UNKNOWN = 54321  # no user of this host
CAPABILITY = bytes.fromhex("0100000200040000000000000000000000000000")  # CAP_NET_BIND_SERVICE


def make_source(root) -> None:
    """Make one of each thing that needs a right to read or make it."""
    (root / "folder/sub").mkdir(parents=True)
    (root / "folder/file").write_bytes(b"x" * 100_000)
    (root / "large").write_bytes(os.urandom(3 << 20))
    os.link(root / "folder/file", root / "linked")
    (root / "symlink").symlink_to("folder/file")  # rsync as no root serves no other
    os.setxattr(root / "large", "user.kept", b"1")
    if not IS_ROOT:
        return
    os.mknod(root / "folder/null", 0o20640, os.makedev(1, 3))
    os.mkfifo(root / "folder/fifo")
    os.setxattr(root / "folder/file", "trusted.kept", b"1")
    for name, mode in (("setuid", 0o4755), ("setgid", 0o2755), ("closed", 0o000)):
        (root / name).write_text(name)
        os.chown(root / name, UNKNOWN, UNKNOWN)
        os.chmod(root / name, mode)
    (root / "capability").write_text("x")
    os.setxattr(root / "capability", "security.capability", CAPABILITY)
    os.chown(root / "folder/sub", UNKNOWN, UNKNOWN)
    os.chmod(root / "folder/sub", 0o700)


def expected(side: str) -> list[str]:
    """Return what this machine offers."""
    calls = kernel()
    found = ["no_new_privs", *(["capabilities"] if IS_ROOT else [])]
    if calls is not None and calls.landlock_version():
        found += ["landlock_write", *(["landlock_read"] if side == "source" else [])]
        found += ["landlock_scope"] if landlock.scopes_of(calls.landlock_version()) else []
    return found


@pytest.mark.often(7)
@pytest.mark.parametrize("serving", ["dest", "source"])
@pytest.mark.parametrize("method", ["stream", "tar_nc", "rsync", "rsyncd", "sftp", "scp"])
def test_all_arrives_and_both_sides_are_confined(trees, method, serving):
    source, dest, _work = trees
    make_source(source)
    pair = make_pair(trees, method, serving)
    outcome = pair.run()
    assert (outcome.get("failure"), outcome.get("errors")) == ("", []), (outcome, pair.stderr(serving))
    assert differences(source, dest) == []
    assert outcome["confinement"] == expected(pair.driving)
    assert pair.peer["confinement"] == expected(serving)
    assert os.listdir(dest) and not [name for name in os.listdir(dest) if name.startswith(".longhaul")]


@pytest.mark.skipif(not IS_ROOT, reason="cannot run here: needs root")
@pytest.mark.newest
@pytest.mark.parametrize("method", ["stream", "tar_nc"])
def test_a_hard_tree_arrives(trees, method):
    source, dest, _work = trees
    hard_tree.make_hard_tree(source, without=["longer than PATH_MAX"], many=200, big=1 << 20)
    outcome = make_pair(trees, method).run()
    assert (outcome["failure"], outcome["errors"]) == ("", [])
    assert differences(source, dest) == []
    assert outcome["confinement"] == expected("source")
    for root in (source, dest):
        hard_tree.remove_tree(root)


@pytest.mark.parametrize("method", ["stream", "tar_nc"])
def test_an_older_tree_outside_is_linked(trees, method, tmp_path):
    source, dest, _work = trees
    (source / "file").write_text("the same")
    older = tmp_path / "older"
    shutil.copytree(source, older)
    pair = make_pair(trees, method, link_dest=[str(older)])
    outcome = pair.run()
    assert (outcome["failure"], outcome["errors"]) == ("", [])
    assert os.path.samefile(older / "file", dest / "file")
    assert not {"landlock_write"} & set(pair.peer["confinement"])


@pytest.mark.parametrize("method", ["stream", "rsync"])
def test_check_mode_predicts_where_nothing_may_be_written(trees, method):
    source, dest, _work = trees
    make_source(source)
    outcome = make_pair(trees, method, check=True).run()
    assert (outcome["failure"], outcome["errors"]) == ("", [])
    assert outcome["files_created"] and os.listdir(dest) == []
