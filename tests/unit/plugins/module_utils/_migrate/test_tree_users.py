# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which processes use a tree, by this machine's own /proc and by one that was made up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._migrate import tree_users
from ansible_collections.longhaul.fleet.plugins.module_utils._migrate.tree_users import find_tree_users

WRITES = "stream = open('db/table', 'a')"
MAPS = """
import mmap
stream = open('db/table', 'r+b')
held = mmap.mmap(stream.fileno(), 0)
stream.close()
"""
MAPS_TO_READ = MAPS.replace("stream.fileno(), 0", "stream.fileno(), 0, access=mmap.ACCESS_READ").replace("r+b", "rb")
DELETED = "import os; stream = open('db/table', 'a'); os.unlink('db/table')"
ELSEWHERE = "stream = open('dbx/table', 'a')"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("db", "dbx"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "table").write_text("rows")
    return tmp_path / "db"


def run(tree: Path, code: str, cwd: str = "") -> subprocess.Popen[bytes]:
    wait = "\nimport sys; print('ready', flush=True); sys.stdin.read()"
    prepare = f"import os; os.chdir({str(tree.parent)!r})\n"
    after = f"\nos.chdir({cwd!r})" if cwd else "\nos.chdir('/')"
    argv = [sys.executable, "-c", prepare + code + after + wait]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout and process.stdout.readline() == b"ready\n"
    return process


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc")
@pytest.mark.parametrize(
    ("code", "cwd", "expected"),
    [
        (WRITES, "", ("table", True)),
        ("stream = open('db/table')", "", ("table", False)),
        (MAPS, "", ("table", True)),
        (MAPS_TO_READ, "", ("table", False)),
        ("pass", "db", (".", False)),
        (DELETED, "", None),
        (ELSEWHERE, "dbx", None),
    ],
)
def test_a_process_that_uses_the_tree(tree: Path, code: str, cwd: str, expected: tuple[str, bool] | None) -> None:
    process = run(tree, code, cwd)
    try:
        found = find_tree_users(str(tree))
        own = find_tree_users(str(tree), own=process.pid)  # which is left out
    finally:
        process.communicate()
    assert own == {"users": [], "unseen": ""} and found["unseen"] == ""
    users = [(one["path"], one["writes"]) for one in found["users"] if one["pid"] == process.pid]
    assert users == ([expected] if expected else [])
    assert all(one["name"].startswith("python") and one["user"] for one in found["users"])


HOST = """\
21 1 8:1 / / rw - ext4 /dev/sda1 rw
22 21 8:2 / /var rw - ext4 /dev/sda2 rw
23 22 8:3 /data /var/lib/db/logs\\040x rw - ext4 /dev/sda3 rw
"""
CONTAINER = """\
51 1 0:40 / / rw - overlay overlay rw
52 51 8:2 /lib/db /mysql rw - ext4 /dev/sda2 rw
53 51 8:3 /data /logs rw - ext4 /dev/sda3 rw
54 51 8:2 /lib/other /other rw - ext4 /dev/sda2 rw
"""


def make_process(proc: Path, pid: str, space: str, mounts: str, path: str, flags: str = "0100002") -> None:
    for folder in ("fd", "fdinfo", "ns"):
        (proc / pid / folder).mkdir(parents=True)
    (proc / pid / "fd/3").symlink_to(path)
    (proc / pid / "fdinfo/3").write_text(f"pos:\t0\nflags:\t{flags}\nmnt_id:\t22\n")
    (proc / pid / "ns/mnt").symlink_to(space)
    for name, text in (("maps", ""), ("comm", "mariadbd\n"), ("mountinfo", mounts), ("stat", f"{pid} (x) S 1 1")):
        (proc / pid / name).write_text(text)


@pytest.fixture
def proc(tmp_path: Path) -> Iterator[Path]:
    make_process(tmp_path, "self", "mnt:[1]", HOST, "/dev/null")
    yield tmp_path


@pytest.mark.parametrize(
    ("space", "path", "expected"),
    [
        ("mnt:[1]", "/var/lib/db/ibdata1", "ibdata1"),
        ("mnt:[1]", "/var/lib/db2/ibdata1", ""),
        ("mnt:[1]", "/var/lib/db/ibdata1 (deleted)", ""),
        ("mnt:[1]", "socket:[12]", ""),
        ("mnt:[2]", "/mysql/ibdata1", "ibdata1"),  # the same files, at another path
        ("mnt:[2]", "/mysql", "."),
        ("mnt:[2]", "/logs/bin.1", "logs x/bin.1"),  # a file system that is mounted inside the tree
        ("mnt:[2]", "/other/x", ""),
        ("mnt:[2]", "/var/lib/db/ibdata1", ""),  # of the container's own root
    ],
)
def test_a_process_in_a_container_has_the_tree_at_another_path(
    proc: Path, space: str, path: str, expected: str
) -> None:
    make_process(proc, "812", space, CONTAINER if space == "mnt:[2]" else HOST, path)
    found = find_tree_users("/var/lib/db", str(proc))
    assert [(one["pid"], one["name"], one["path"]) for one in found["users"]] == (
        [(812, "mariadbd", expected)] if expected else []
    )


def test_an_answer_has_limits_and_those_that_write_come_first(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        flags = "0100002" if number == 29 else "0100000"
        make_process(proc, str(100 + number), "mnt:[1]", HOST, "/srv/" + "x" * 1000, flags)
    found = find_tree_users("/srv", str(proc))
    assert len(found["users"]) == tree_users.MOST and len(found["users"][0]["path"]) == 300
    assert [one["writes"] for one in found["users"]] == [True] + [False] * 19
    monkeypatch.setattr(tree_users, "_SECONDS", -1.0)
    assert "longer than" in find_tree_users("/srv", str(proc))["unseen"]


def test_a_descriptor_that_is_closed_meanwhile_hides_no_other(proc: Path) -> None:
    make_process(proc, "812", "mnt:[1]", HOST, "/srv/db/table")
    (proc / "812/fd/4").symlink_to("/srv/db/closed")  # there is no fdinfo any more
    (found,) = find_tree_users("/srv/db", str(proc))["users"]
    assert (found["path"], found["writes"]) == ("table", True)


def test_a_system_without_proc_says_that_nobody_looked(tmp_path: Path) -> None:
    assert find_tree_users("/srv", str(tmp_path)) == {"users": [], "unseen": "this system has no /proc"}
