# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tree of hard cases holds what it says."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import zlib
from pathlib import Path
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.support import hard_tree
from ansible_collections.longhaul.fleet.tests.support.compare import differences

AS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not AS_ROOT, reason="cannot run here: needs root")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[bytes, dict[str, bytes]]]:
    root = os.fsencode(tmp_path_factory.mktemp("hard") / "tree")
    yield root, hard_tree.make_hard_tree(root, as_root=AS_ROOT, many=100)
    hard_tree.remove_tree(root)


def _status(tree: tuple[bytes, dict[str, bytes]], case: str) -> os.stat_result:
    return os.lstat(os.path.join(tree[0], tree[1][case]))


def test_every_case_is_there(tree: tuple[bytes, dict[str, bytes]]) -> None:
    root, made = tree
    missing = set(hard_tree.case_names()) - set(made)
    assert missing == (set() if AS_ROOT else hard_tree.NEEDS_ROOT)
    for case, path in made.items():
        if len(path) < 4096:
            assert os.path.lexists(os.path.join(root, path)), case


def test_needs_root_names_cases() -> None:
    assert set(hard_tree.case_names()) > hard_tree.NEEDS_ROOT


@pytest.mark.parametrize(
    "case, kind",
    [
        ("FIFO", stat.S_ISFIFO),
        ("socket", stat.S_ISSOCK),
        ("dangling symlink", stat.S_ISLNK),
        ("hard-linked symlinks", stat.S_ISLNK),
        ("empty directory", stat.S_ISDIR),
        ("empty file", stat.S_ISREG),
        pytest.param("block device", stat.S_ISBLK, marks=needs_root),
        pytest.param("character device", stat.S_ISCHR, marks=needs_root),
    ],
)
def test_types(tree: tuple[bytes, dict[str, bytes]], case: str, kind: object) -> None:
    assert kind(_status(tree, case).st_mode)


@pytest.mark.parametrize(
    "case, count",
    [
        ("hard links across directories", 3),
        ("hard-linked symlinks", 2),
        ("hard-linked FIFOs", 2),
        ("links partly outside the root", 3),
        pytest.param("hard-linked devices", 2, marks=needs_root),
    ],
)
def test_link_counts(tree: tuple[bytes, dict[str, bytes]], case: str, count: int) -> None:
    assert _status(tree, case).st_nlink == count


@pytest.mark.parametrize(
    "case", ["leading hole", "trailing hole", "holes in the middle", "all hole", "one byte at the end"]
)
def test_holes(tree: tuple[bytes, dict[str, bytes]], case: str) -> None:
    found = _status(tree, case)
    assert found.st_blocks * 512 <= found.st_size // 2


def test_preallocated(tree: tuple[bytes, dict[str, bytes]]) -> None:
    found = _status(tree, "preallocated")
    assert found.st_size == 1 << 20 and found.st_blocks * 512 >= found.st_size


@pytest.mark.parametrize(
    "case, mtime_ns",
    [
        ("mtime in nanoseconds", 1_000_000_000_000_000_001),
        ("mtime before 1970", -86_399_876_543_211),
        ("directory's mtime before 1970", -1_000_000_001),
        ("mtime after 2038", 2_208_988_800_987_654_321),
        ("symlink's mtime", hard_tree.START_NS - 7),
    ],
)
def test_mtimes(tree: tuple[bytes, dict[str, bytes]], case: str, mtime_ns: int) -> None:
    assert _status(tree, case).st_mtime_ns == mtime_ns


def test_all_times_are_long_ago_and_odd(tree: tuple[bytes, dict[str, bytes]]) -> None:
    root = os.stat(tree[0])
    assert root.st_mtime_ns > hard_tree.START_NS and root.st_mtime_ns % 1000
    assert root.st_mtime < 1_100_000_000 or root.st_mtime < os.stat(os.path.dirname(tree[0])).st_mtime - 86400


@pytest.mark.parametrize(
    "case, mode",
    [("setuid", 0o4755), ("setgid", 0o2755), ("sticky directory", 0o1777), ("setgid directory", 0o2775)]
    + [("mode 000", 0), ("read-only directory with children", 0o555)],
)
def test_modes(tree: tuple[bytes, dict[str, bytes]], case: str, mode: int) -> None:
    assert stat.S_IMODE(_status(tree, case).st_mode) == mode


@needs_root
def test_metadata_as_the_systems_own_tools_see_it(tree: tuple[bytes, dict[str, bytes]]) -> None:
    root, made = tree

    def tool(*argv: str, case: str) -> str:
        path = os.path.join(root, made[case])
        return subprocess.run([*argv, path], check=True, capture_output=True, text=True).stdout

    assert "user:54321:r--" in tool("getfacl", "-p", case="ACL")
    assert "default:user:54321:r-x" in tool("getfacl", "-p", case="default ACL")
    assert 'trusted.note="kept"' in tool("getfattr", "-d", "-m-", case="trusted xattr")
    assert 'trusted.note="kept"' in tool("getfattr", "-h", "-d", "-m-", case="trusted xattr of a symlink")
    getcap = shutil.which("getcap", path="/usr/sbin:/sbin:/usr/bin")
    assert getcap and "cap_net_raw=ep" in tool(getcap, case="capability")
    assert _status(tree, "owner and setuid")[stat.ST_UID : stat.ST_GID + 1] == (1, 2)
    assert stat.S_IMODE(_status(tree, "owner and setuid").st_mode) == 0o6711


def test_two_trees_are_equal(tmp_path: Path) -> None:
    for name in ("a", "b"):
        hard_tree.make_hard_tree(tmp_path / name, as_root=AS_ROOT, many=10)
    # as somebody else than root, nobody can read the file with mode 000
    assert [line for line in differences(tmp_path / "a", tmp_path / "b") if AS_ROOT or "unreadable" not in line] == []
    for name in ("a", "b"):
        hard_tree.remove_tree(tmp_path / name)
        assert not (tmp_path / name).exists()


def test_cases_can_be_left_out(tmp_path: Path) -> None:
    made = hard_tree.make_hard_tree(tmp_path / "a", as_root=False, many=1, without=["longer than PATH_MAX", "newline"])
    assert "newline" not in made and not (tmp_path / "a/names/two\nlines").exists()
    assert len(list((tmp_path / "a/names").glob("long-*"))) == 0
    with pytest.raises(ValueError, match="no such case"):
        hard_tree.make_hard_tree(tmp_path / "b", without=["misspelt"])


def test_refuses_a_folder_with_something_in_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="not empty"):
        hard_tree.make_hard_tree(tmp_path)


def test_big_files(tmp_path: Path) -> None:
    paths = hard_tree.make_big_files(tmp_path, 1_000_001, 3)
    assert [path.stat().st_size for path in paths] == [333_335, 333_333, 333_333]
    texts = [path.read_bytes() for path in paths]
    assert len(set(texts)) == 3
    assert len(zlib.compress(b"".join(texts), 9)) > 999_000
    again = hard_tree.make_big_files(tmp_path / "again", 1_000_001, 3)
    assert [path.read_bytes() for path in again] == texts


@needs_root
def test_immutable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with hard_tree.immutable(tmp_path / "file"), pytest.raises(PermissionError):
        (tmp_path / "file").unlink()
    (tmp_path / "file").unlink()
