# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The serving end's rsync cannot leave the root, whatever its options are."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._core.subprocesses import environment
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync import chrooted
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.chrooted import ChrootUnavailable, introduce
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.confinement import (
    CHROOT,
    CONFINE_ROOT,
    NOTHING,
    decide_confinement,
    module_conf,
    module_rules,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.method import own_confinement
from ansible_collections.longhaul.fleet.tests.support.canary import Canary
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import ID, Pair, settings

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: only root can change its root folder")

# Serves one connection with options of our own, which no plan would allow: nothing but the chroot is left to stop them.
_SHELL = """\
import os, sys
sys.path[:0] = {path!r}
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.chrooted import chrooting
context = Context({side!r}, "serve", {root!r}, {settings!r}, {folder!r})
context.root_fd = os.open(context.root, os.O_RDONLY)
os.set_inheritable(context.root_fd, True)
work = chrooting(context)([word.encode() for word in sys.argv[2:]])
{between}
sys.exit(work(0, 1))
"""


@pytest.mark.parametrize(
    ("side", "changes", "version", "may_chroot", "kind", "why"),
    [
        ("dest", {}, (3, 1, 0), True, CHROOT, ""),
        ("source", {}, (3, 1, 0), True, CHROOT, ""),
        ("dest", {}, (3, 4, 1), False, NOTHING, "only root"),
        ("dest", {}, (3, 5, 0), False, CONFINE_ROOT, ""),
        ("dest", {"link_dest": ["/older"]}, (3, 5, 0), True, NOTHING, "older trees"),
        ("source", {"link_dest": ["/older"]}, (3, 4, 0), True, CHROOT, ""),
        ("source", {"streams": 2}, (3, 5, 0), True, NOTHING, "several streams"),
        ("source", {"streams": 2, "only": "a"}, (3, 4, 0), True, CHROOT, ""),
        ("dest", {"streams": 2}, (3, 4, 0), True, CHROOT, ""),
        ("source", {"only": "a\nb"}, (3, 5, 0), True, NOTHING, "one line"),
        ("dest", {"numeric_ids": False}, (3, 4, 0), True, NOTHING, "names of owners"),
        ("dest", {"numeric_ids": False}, (3, 5, 0), True, CONFINE_ROOT, ""),
        ("dest", {"numeric_ids": False, "preserve": ["times"]}, (3, 4, 0), True, CHROOT, ""),
        ("dest", {"numeric_ids": False, "owner_map": {"users": [[1, 2]]}}, (3, 4, 0), True, CHROOT, ""),
        ("dest", {"rsync_opts": ["--chown=www-data"]}, (3, 4, 0), True, NOTHING, "--chown"),
        ("dest", {"rsync_opts": ["--chown=33:33"]}, (3, 4, 0), True, CHROOT, ""),
        ("dest", {"rsync_opts": ["--iconv=utf8"]}, (3, 4, 0), True, NOTHING, "--iconv"),
        ("source", {"rsync_opts": ["--copy-links"]}, (3, 5, 0), True, NOTHING, "symbolic links"),
        ("dest", {"rules": [": /.rsync-filter"]}, (3, 5, 0), True, NOTHING, "above the root"),
        ("dest", {"rules": [": .rsync-filter", "- /a"]}, (3, 4, 0), True, CHROOT, ""),
    ],
    ids=str,
)
def test_what_is_in_force(side, changes, version, may_chroot, kind, why):
    found = decide_confinement(settings(**changes), side, version, may_chroot)
    assert found.kind == kind
    assert why in found.why_not and bool(found.why_not) == (kind == NOTHING)


def test_where_nothing_confines_hosts_that_are_not_trusted_get_nothing(tmp_path):
    pair = Pair(tmp_path)
    plan = settings(trust="none", link_dest=["/older"])
    with pytest.raises(TransferFailed, match="cannot be confined to .*/dest here: with link_dest.*method stream"):
        own_confinement(pair.context("dest", "serve", plan))
    assert own_confinement(pair.context("dest", "serve", dict(plan, trust="full"))).kind == NOTHING


def test_the_rules_for_one_name_are_one_line_each_and_match_it_alone():
    assert module_rules(settings()) == ""
    assert module_rules(settings(only="a [b]*?\\c")).splitlines() == [
        "+ /a \\[b]\\*\\?\\\\c",
        f"+ /.longhaul-{ID}",
        f"+ /.longhaul-{ID}/***",
        "- *",
    ]


@pytest.mark.parametrize("path", ["/a\nuid = 1", "/a%HOME%", "/a\\"])
def test_a_path_cannot_add_parameters(path):
    with pytest.raises(ValueError, match="cannot be written"):
        module_conf(path, "dest", "")


@pytest.fixture(name="pair")
def a_pair(tmp_path: Path) -> Pair:
    pair = Pair(tmp_path)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "shadow").write_text("root:secret")
    return pair


def unchecked(pair: Pair, side: str, options: list[str], between: str = "", **plan: object) -> tuple[int, str]:
    """Run rsync against a serving end that checks no options; gives its exit code and what it said.

    ``between``: what happens there when the root is open and rsync does not run yet.
    """
    root = pair.source if side == "source" else pair.dest
    shell = pair.folder / "shell.py"
    shell.write_text(
        _SHELL.format(
            path=[entry for entry in sys.path if entry],
            side=side,
            root=os.fsencode(root),
            settings=settings(**plan),
            folder=str(pair.folder / f"job-{side}"),
            between=between,
        )
    )
    argv = ["rsync", "--no-protect-args", *options, f"--rsh={sys.executable} {shell}"]
    argv += [f"{pair.source}/", "peer:./"] if side == "dest" else ["peer:./", f"{pair.dest}/"]
    done = subprocess.run(argv, env=environment(), capture_output=True, check=False, timeout=60)
    return done.returncode, done.stderr.decode()


@needs_root
def test_following_symlinks_leads_nowhere(pair):
    """With -L a sender sends what symbolic links lead to: in its root folder nothing outside has a name."""
    (pair.source / "inside").write_text("mine")
    for name, target in (("shadow", pair.folder / "outside" / "shadow"), ("up", "../outside/shadow"), ("in", "inside")):
        os.symlink(target, pair.source / name)
    assert unchecked(pair, "source", ["-rtL"])[0] == 23  # some could not be read
    assert sorted(path.name for path in pair.dest.iterdir()) == ["in", "inside"]
    assert (pair.dest / "in").read_text() == "mine"


@needs_root
@pytest.mark.parametrize(
    "options", [["-rlK"], ["-rl", "--keep-dirlinks", "--insecure-links"], ["-r", "--inplace", "-K"]], ids=" ".join
)
def test_nothing_is_written_outside(pair, options):
    (pair.source / "link").mkdir()
    (pair.source / "link" / "cron-evil").write_text("* * * * * root id")
    os.symlink(pair.folder / "outside", pair.dest / "link")
    canary = Canary(pair.folder / "outside", pair.dest, pair.folder / "older")
    unchecked(pair, "dest", options)
    assert canary.changes() == []


@needs_root
def test_temporary_files_stay_inside(pair):
    (pair.source / "a").write_text("x")
    canary = Canary(pair.folder / "outside", pair.dest, pair.folder / "older")
    assert unchecked(pair, "dest", ["-r", f"--temp-dir={pair.folder / 'outside'}"])[0] != 0
    assert canary.changes() == []


@needs_root
def test_the_root_is_the_one_that_was_opened(pair):
    """A local user who owns the folder above puts another in its place when the transfer has begun."""
    (pair.source / "a").write_text("x")
    moved, outside = pair.folder / "moved", pair.folder / "outside"
    exchange = f"os.rename({str(pair.dest)!r}, {str(moved)!r}); os.symlink({str(outside)!r}, {str(pair.dest)!r})"
    canary = Canary(outside, pair.dest, pair.folder / "older")
    assert unchecked(pair, "dest", ["-r"], exchange)[0] == 0
    assert canary.changes() == []
    assert (moved / "a").read_text() == "x"


@needs_root
@pytest.mark.parametrize("side", ["source", "dest"])
def test_one_name_is_all_that_there_is(pair, side):
    """The peer names what is sent; where the plan is for one file, nothing else is read or written."""
    for folder in (pair.source, pair.dest):
        (folder / "other").mkdir()
    for name in ("one", "other/key"):
        (pair.source / name).write_text("new")
    assert unchecked(pair, side, ["-r"], only="one")[0] in (0, 23)
    assert (pair.dest / "one").read_text() == "new"
    assert not (pair.dest / "other" / "key").exists()


@needs_root
def test_without_a_way_to_change_the_root_nothing_runs(pair):
    """What the daemon says first never reaches the peer, and the peer's bytes never a daemon that declined."""
    (pair.source / "a").write_text("x")
    code, said = unchecked(pair, "dest", ["-r"], "work.keeps = ()")
    assert code != 0 and "longhaul: rsync cannot be confined to the root: @ERROR: " in said
    assert list(pair.dest.iterdir()) == []


def introduction(client: bytes, daemon: bytes) -> tuple[bytes, bytes]:
    """Introduce a client and a daemon that say this; return what they were told."""
    ends = [socket.socketpair() for _each in range(2)]
    try:
        for (far, _near), said in zip(ends, (client, daemon)):
            far.sendall(said)
            far.shutdown(socket.SHUT_WR)
            far.setblocking(False)
        near = [pair[1].fileno() for pair in ends]
        introduce(near[0], near[0], near[1], near[1], [b"--server", b"."])
        return ends[0][0].recv(4096), ends[1][0].recv(4096)
    finally:
        for far, near_end in ends:
            far.close()
            near_end.close()


def test_both_are_told_what_they_expect():
    told_client, told_daemon = introduction((31).to_bytes(4, "little"), b"@RSYNCD: 32.0 sha512 md5\n@RSYNCD: OK\n")
    assert told_client == (32).to_bytes(4, "little")
    assert told_daemon == b"@RSYNCD: 31.0 md5\ntree\n--server\0.\0tree/\0\0"


@pytest.mark.parametrize(
    ("client", "daemon", "why"),
    [
        (b"", b"", "ended before it began"),
        (b"\x1f\0", b"", "ended before it began"),
        (b"SSH-", b"", "does not speak"),
        (b"\x1f\0\0\0", b"", "did not greet"),
        (b"\x1f\0\0\0", b"@RSYNCD: x\n", "did not greet"),
        (b"\x1f\0\0\0", b"@RSYNCD: 31.0\n@ERROR: chroot failed\n", "cannot be confined to the root: @ERROR: chroot"),
        (b"\x1f\0\0\0", b"@RSYNCD: 31.0\n" + b"\n" * 99, "did not come to the point"),
        (b"\x1f\0\0\0", b"x" * 9999, "too long"),
    ],
    ids=str,
)
def test_what_does_not_fit_ends_before_anything_is_moved(client, daemon, why):
    with pytest.raises(ChrootUnavailable, match=why):
        introduction(client, daemon)


@pytest.mark.parametrize("splice", [True, False])
def test_bytes_are_moved_whole_and_ends_are_passed_on(monkeypatch, splice):
    if not splice:
        monkeypatch.setattr(chrooted, "_SPLICE", None)  # as before Python 3.10, and on FreeBSD
    far, near = socket.socketpair()
    read_end, write_end = os.pipe()
    data = os.urandom(3 << 20)
    threads = [
        threading.Thread(target=lambda: (far.sendall(data), far.shutdown(socket.SHUT_WR))),
        threading.Thread(target=chrooted.move, args=(near.fileno(), write_end)),
    ]
    for thread in threads:
        thread.start()
    with contextlib.closing(far), contextlib.closing(near):
        with open(read_end, "rb") as stream:
            assert stream.read() == data
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()
