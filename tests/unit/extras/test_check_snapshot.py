# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checker that needs neither Ansible nor this collection, on snapshots that the collection made."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ...support.hard_tree import make_hard_tree
from ...support.snapshots import make_snapshot

CHECKER = Path(__file__).resolve().parents[3] / "extras/check_snapshot.py"


def check(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the checker in a Python that finds no other package."""
    command = [sys.executable, "-I", "-S", str(CHECKER), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a snapshot of a tree with everything that a tree can have. No test alters it."""
    folder = tmp_path_factory.mktemp("snapshot")
    source, repository = folder / "source", folder / "repository"
    source.mkdir()
    repository.mkdir(mode=0o700)
    make_hard_tree(source, many=20, without=["longer than PATH_MAX"])
    return make_snapshot(repository, source).parent


@pytest.fixture
def restored(snapshot: Path, tmp_path: Path) -> Path:
    """Return a copy of the snapshot's tree."""
    subprocess.run(["cp", "-a", snapshot / "data", tmp_path / "restored"], check=True)
    return tmp_path / "restored"


def test_an_intact_snapshot_and_a_copy_of_it_have_no_differences(snapshot: Path, restored: Path):
    found = check(snapshot)
    assert (found.returncode, found.stdout) == (0, ""), found.stderr
    assert "alpha/data: " in found.stderr and " 0 differences in " in found.stderr
    found = check(snapshot, "--tree", restored)
    assert (found.returncode, found.stdout) == (0, ""), found.stderr


def a_file(tree: Path) -> Path:
    return next(path for path in sorted(tree.rglob("*")) if path.is_file() and path.stat().st_size > 100)


def flip(tree: Path) -> str:
    path = a_file(tree)
    times = path.stat()
    with path.open("r+b") as file:
        first = file.read(1)[0]
        file.seek(0)
        file.write(bytes([first ^ 1]))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return "differs: contents"


def remove(tree: Path) -> str:
    a_file(tree).unlink()
    return "is missing"


def add(tree: Path) -> str:
    times = tree.stat()
    (tree / "added").touch()
    os.utime(tree, ns=(times.st_atime_ns, times.st_mtime_ns))
    return "added is not in the manifest"


def retype(tree: Path) -> str:
    path = a_file(tree)
    path.unlink()
    path.symlink_to("elsewhere")
    return "is of another type"


def touch(tree: Path) -> str:
    os.utime(a_file(tree), (1, 1))
    return "differs: modification time"


def chmod(tree: Path) -> str:
    a_file(tree).chmod(0o4711)
    return "mode 4711, expected "


def part(tree: Path) -> str:
    """Part two names of one file."""
    path = next(path for path in sorted(tree.rglob("*")) if path.is_file() and path.stat().st_nlink > 1)
    own = path.with_name("own")
    shutil.copy2(path, own)
    own.replace(path)
    return "is not the same file as "


@pytest.mark.parametrize("change", [flip, remove, add, retype, touch, chmod, part])
def test_each_change_is_named(snapshot: Path, restored: Path, change):
    expected = change(restored)
    found = check(snapshot, "--tree", restored)
    assert found.returncode == 1 and expected in found.stdout, found.stdout + found.stderr


def test_what_is_not_asked_for_is_not_compared(snapshot: Path, restored: Path):
    flip(restored)
    touch(restored)
    shutil.chown(a_file(restored), 4321, 4321)
    options = ("--no-contents", "--no-times", "--no-owners")
    assert check(snapshot, "--tree", restored, *options).returncode == 0
    for option in options:
        assert check(snapshot, "--tree", restored, *(one for one in options if one != option)).returncode == 1, option


def test_a_damaged_manifest_is_told_and_nothing_is_concluded_from_it(snapshot: Path, restored: Path, tmp_path: Path):
    whole = (snapshot / "manifest").read_bytes()
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 4
    manifest = tmp_path / "manifest"
    for data, reason in (
        (bytes(damaged), ""),
        (whole[:-3], "cut short"),
        (whole + b"x", "follows"),
        (b"x", "no manifest"),
    ):
        manifest.write_bytes(data)
        found = check(manifest, "--tree", restored)
        assert found.returncode == 2 and reason in found.stderr and "Traceback" not in found.stderr


def test_a_tree_that_is_not_there_is_told(snapshot: Path, tmp_path: Path):
    found = check(snapshot, "--tree", tmp_path / "gone")
    assert found.returncode == 2 and "cannot read " in found.stderr and "gone: No such file" in found.stderr


def test_the_hashes_are_those_of_the_usual_programs(snapshot: Path, restored: Path, tmp_path: Path):
    sums = subprocess.run([sys.executable, str(CHECKER), "--sums", str(snapshot)], capture_output=True, check=True)
    command = sums.stderr.decode().partition(": ")[2].split()[:-1]
    file = tmp_path / "sums"
    file.write_bytes(sums.stdout)
    assert len(sums.stdout.splitlines()) > 5
    subprocess.run([*command, str(file)], cwd=restored, check=True)
    flip(restored)
    assert subprocess.run([*command, str(file)], cwd=restored, check=False, capture_output=True).returncode == 1
