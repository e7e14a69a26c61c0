# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The judge of trees must find every single change, and nothing if there is none."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from ansible_collections.longhaul.fleet.tests.support import compare
from ansible_collections.longhaul.fleet.tests.support.compare import differences

NS = 1_000_000_000_123_456_789
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: needs root")


def _tree(root: Path) -> Path:
    (root / "folder" / "empty").mkdir(parents=True)
    (root / "file").write_bytes(b"contents")
    (root / "folder" / "file").write_bytes(b"more contents")
    (root / "link-1").write_bytes(b"linked")
    os.link(root / "link-1", root / "link-2")
    os.link(root / "link-1", root / "folder" / "link-3")
    (root / "same-as-linked").write_bytes(b"linked")
    (root / "symlink").symlink_to("nowhere")
    os.mkfifo(root / "fifo")
    os.mknod(root / "socket", stat.S_IFSOCK | 0o600)
    with open(root / "sparse", "wb") as file:
        file.seek(4 << 20)
        file.write(b"end")
    os.setxattr(root / "file", "user.note", b"kept")
    if os.geteuid() == 0:
        os.mknod(root / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    for path in [root, *root.rglob("*")]:
        os.utime(path, ns=(NS, NS), follow_symlinks=False)
    return root


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return _tree(tmp_path / "a"), _tree(tmp_path / "b")


def _keeping_times(change: Callable[[Path], None]) -> Callable[[Path], None]:
    """Make a change that leaves the times of all files and directories as they were."""

    def changed(root: Path) -> None:
        change(root)
        for path in [root, *root.rglob("*")]:
            os.utime(path, ns=(NS, NS), follow_symlinks=False)

    return changed


def _replace(root: Path, name: str, make: Callable[[Path], None]) -> None:
    (root / name).unlink()
    make(root / name)


def _device(path: Path) -> None:
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))


MUTATIONS = {
    "missing file": (lambda root: (root / "file").unlink(), "'file': missing"),
    "missing directory": (lambda root: (root / "folder/empty").rmdir(), "'folder/empty': missing"),
    "extra file": (lambda root: (root / "new").touch(), "'new': only in the second"),
    "renamed": (lambda root: (root / "file").rename(root / "File"), "'File': only in the second"),
    "type": (lambda root: _replace(root, "fifo", Path.touch), "'fifo': type: FIFO != file"),
    "symlink for a file": (lambda root: _replace(root, "file", lambda p: p.symlink_to("x")), "'file': type"),
    "size": (lambda root: (root / "file").write_bytes(b"content"), "'file': size: 8 != 7"),
    "content": (lambda root: (root / "file").write_bytes(b"Contents"), "'file': content"),
    "content far below": (lambda root: (root / "folder/file").write_bytes(b"mOre contents"), "'folder/file': content"),
    "mode": (lambda root: (root / "file").chmod(0o600), "'file': mode"),
    "setuid": (lambda root: (root / "file").chmod(0o4644), "'file': mode"),
    "directory's mode": (lambda root: (root / "folder").chmod(0o700), "'folder': mode"),
    "root's mode": (lambda root: root.chmod(0o700), "the root: mode"),
    "xattr's value": (lambda root: os.setxattr(root / "file", "user.note", b"lost"), "'file': xattr user.note"),
    "xattr missing": (lambda root: os.removexattr(root / "file", "user.note"), "'file': xattr user.note"),
    "xattr extra": (lambda root: os.setxattr(root / "folder", "user.new", b""), "'folder': xattr user.new"),
    "root's xattr": (lambda root: os.setxattr(root, "user.new", b""), "the root: xattr user.new"),
    "ACL": (
        lambda root: subprocess.run(["setfacl", "-m", "u:54321:r", str(root / "file")], check=True),
        "'file': xattr system.posix_acl_access",
    ),
    "default ACL": (
        lambda root: subprocess.run(["setfacl", "-d", "-m", "u:54321:r", str(root / "folder")], check=True),
        "'folder': xattr system.posix_acl_default",
    ),
    "symlink's target": (lambda root: _replace(root, "symlink", lambda p: p.symlink_to("noWhere")), "target"),
    "link broken": (
        lambda root: _replace(root, "link-2", lambda p: p.write_bytes(b"linked")),
        "'link-2': links: (b'folder/link-3', b'link-1', b'link-2') != ()",
    ),
    "link too many": (
        lambda root: _replace(root, "same-as-linked", lambda p: os.link(root / "link-1", p)),
        "'same-as-linked': links: () != ",
    ),
    "holes filled": (lambda root: (root / "sparse").write_bytes(bytes(4 << 20) + b"end"), "'sparse': sparse"),
}

MUTATIONS_OF_TIMES = {
    "file": ("file", "'file': mtime"),
    "directory": ("folder", "'folder': mtime"),
    "symlink": ("symlink", "'symlink': mtime"),
    "root": ("", "the root: mtime"),
    "FIFO": ("fifo", "'fifo': mtime"),
    "socket": ("socket", "'socket': mtime"),
}

MUTATIONS_BY_ROOT = {
    "owner": (lambda root: os.chown(root / "file", 1, -1), "'file': owner: '0:0' != '1:0'"),
    "group": (lambda root: os.chown(root / "folder", -1, 1), "'folder': owner"),
    "symlink's owner": (lambda root: os.lchown(root / "symlink", 1, 1), "'symlink': owner"),
    "root's owner": (lambda root: os.chown(root, 1, 1), "the root: owner"),
    "device number": (lambda root: _replace(root, "device", _device), "'device': rdev"),
    "trusted xattr": (lambda root: os.setxattr(root / "file", "trusted.x", b"1"), "'file': xattr trusted.x"),
    "symlink's xattr": (
        lambda root: os.setxattr(root / "symlink", "trusted.x", b"1", follow_symlinks=False),
        "'symlink': xattr trusted.x",
    ),
}


def test_equal_trees_have_no_differences(pair: tuple[Path, Path]) -> None:
    assert differences(*pair) == []


def _only_expected(pair: tuple[Path, Path], change: Callable[[Path], None], expected: str) -> None:
    _keeping_times(change)(pair[1])
    found = differences(*pair)
    assert any(expected in line for line in found), found
    assert differences(pair[1], pair[0]) or "sparse" in expected


@pytest.mark.parametrize("change, expected", MUTATIONS.values(), ids=MUTATIONS.keys())
def test_finds(pair: tuple[Path, Path], change: Callable[[Path], None], expected: str) -> None:
    _only_expected(pair, change, expected)


@needs_root
@pytest.mark.parametrize("change, expected", MUTATIONS_BY_ROOT.values(), ids=MUTATIONS_BY_ROOT.keys())
def test_finds_as_root(pair: tuple[Path, Path], change: Callable[[Path], None], expected: str) -> None:
    _only_expected(pair, change, expected)


@pytest.mark.parametrize("name, expected", MUTATIONS_OF_TIMES.values(), ids=MUTATIONS_OF_TIMES.keys())
def test_finds_one_nanosecond(pair: tuple[Path, Path], name: str, expected: str) -> None:
    os.utime(pair[1] / name, ns=(NS, NS + 1), follow_symlinks=False)
    found = differences(*pair)
    assert len(found) == 1 and expected in found[0]


@pytest.mark.parametrize(
    "aspect, change",
    [
        ("content", lambda root: (root / "file").write_bytes(b"Contents")),
        ("mode", lambda root: (root / "file").chmod(0o600)),
        ("xattrs", lambda root: os.removexattr(root / "file", "user.note")),
        ("links", lambda root: _replace(root, "link-2", lambda p: p.write_bytes(b"linked"))),
        ("sparse", lambda root: (root / "sparse").write_bytes(bytes(4 << 20) + b"end")),
    ],
)
def test_ignores_what_it_is_told_to(pair: tuple[Path, Path], aspect: str, change: Callable[[Path], None]) -> None:
    _keeping_times(change)(pair[1])
    assert differences(*pair)
    assert differences(*pair, ignore=[aspect]) == []


def test_an_unknown_aspect_is_an_error(pair: tuple[Path, Path]) -> None:
    with pytest.raises(ValueError, match="colour"):
        differences(*pair, ignore=["colour"])


def test_skips_paths(pair: tuple[Path, Path]) -> None:
    _keeping_times(lambda root: (root / "folder/file").unlink())(pair[1])
    assert differences(*pair, skip=[b"folder/file"]) == []
    assert differences(*pair, skip=[b"folder"]) == []
    assert differences(*pair, skip=[b"file"])


def test_a_missing_root_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        differences(tmp_path, tmp_path / "missing")


def test_the_program_ends_with_1_on_a_difference(pair: tuple[Path, Path]) -> None:
    argv = [sys.executable, str(compare.__file__), str(pair[0]), str(pair[1])]
    assert subprocess.run(argv, capture_output=True, check=False).returncode == 0
    (pair[1] / "file").chmod(0o600)
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "'file': mode: '0o644' != '0o600'\n")
    assert subprocess.run([*argv, "--ignore", "mode"], capture_output=True, check=False).returncode == 0
