# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checker that needs neither Ansible nor this collection, on snapshots that the collection made."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import stat
import struct
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path
from types import ModuleType

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


def files(tree: Path) -> list[Path]:
    """Return the regular files. ``rglob`` of Python 3.8 ends at a symbolic link whose target is too long a name."""
    found = [Path(folder, name) for folder, _folders, names in os.walk(tree) for name in names]
    return sorted(path for path in found if stat.S_ISREG(path.lstat().st_mode))


def a_file(tree: Path) -> Path:
    return next(path for path in files(tree) if path.stat().st_size > 100)


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
    path = next(path for path in files(tree) if path.stat().st_nlink > 1)
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


HEAD = (b"H", json.dumps({"algorithm": "sha256", "host": "h", "job": "j"}).encode())


def end(entries: int) -> tuple[bytes, bytes]:
    return b"E", json.dumps({"entries": entries}).encode()


def write_manifest(path: Path, *frames: tuple[bytes, bytes], said: int | None = None) -> Path:
    """Write a manifest whose frames are whole, whatever they hold; ``said``: the length that each head says."""
    check, data = bytes(16), b"LHSNAP1\n"
    for kind, payload in frames:
        stored, length = zlib.compress(payload), len(payload) if said is None else said
        check = hashlib.blake2b(check + kind + struct.pack("<I", length) + stored, digest_size=16).digest()
        data += struct.pack("<cII16s", kind, length, len(stored), check) + stored
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        ([HEAD, end(0)], "no records"),
        ([end(0)], "does not begin with a head"),
        ([(b"R", HEAD[1]), end(0)], "does not begin with a head"),
        ([(b"H", b"[]"), end(0)], "no JSON object"),
        ([(b"H", b"[" * 100000), end(0)], "no JSON"),
        ([HEAD, (b"E", b"[]")], "no JSON object"),
        ([(b"H", b"{}"), end(0)], "no algorithm"),
    ],
)
def test_a_whole_manifest_of_nothing_is_damaged(tmp_path: Path, frames: list[tuple[bytes, bytes]], reason: str):
    found = check(write_manifest(tmp_path / "manifest", *frames), "--tree", tmp_path)
    assert found.returncode == 2 and reason in found.stderr and "Traceback" not in found.stderr


@pytest.fixture(name="checker")
def _checker() -> ModuleType:
    """Return the checker as a module."""
    spec = importlib.util.spec_from_file_location("check_snapshot", CHECKER)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return module


def test_a_frame_is_unpacked_no_further_than_its_head_says(tmp_path: Path, checker: ModuleType):
    path = write_manifest(tmp_path / "manifest", (b"H", bytes(40 << 20)), said=10)
    tracemalloc.start()
    with path.open("rb") as file, pytest.raises(checker.Damaged, match="another length"):
        list(checker.frames(file))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 10 << 20


def test_attributes_that_no_manifest_has_are_not_compared(
    tmp_path: Path, checker: ModuleType, monkeypatch: pytest.MonkeyPatch
):
    names = ["user.x", "system.nfs4_acl", "system.posix_acl_access", "btrfs.compression", "security.y", "trusted.z"]
    monkeypatch.setattr(os, "listxattr", lambda *_path, **_more: names)
    monkeypatch.setattr(os, "getxattr", lambda *_path, **_more: b"value")
    found = [name for name, _value in checker.attributes_of(b"x")]
    assert found == [b"security.y", b"system.posix_acl_access", b"trusted.z", b"user.x"]


def test_names_that_the_terminal_cannot_show_are_shown(snapshot: Path, restored: Path):
    (restored / "\xe4").touch()
    command = [sys.executable, str(CHECKER), str(snapshot), "--tree", str(restored)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"}
    found = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert found.returncode == 1 and b"\\xe4 is not in the manifest" in found.stdout, found.stderr


@pytest.fixture(name="pair")
def _pair(tmp_path: Path) -> Path:
    """Return a snapshot of two files of which nobody but ``stat`` sees that they are two."""
    source, repository = tmp_path / "source", tmp_path / "repository"
    source.mkdir()
    repository.mkdir(mode=0o700)
    for name in ("one", "two"):
        (source / name).write_text("same")
        os.utime(source / name, (5, 5))
    os.utime(source, (5, 5))
    return make_snapshot(repository, source).parent


def test_two_files_that_are_one_in_a_copy_are_named(pair: Path, tmp_path: Path):
    tree = tmp_path / "restored"
    subprocess.run(["cp", "-a", pair / "data", tree], check=True)
    (tree / "two").unlink()
    os.link(tree / "one", tree / "two")
    times = (pair / "data").stat()
    os.utime(tree, ns=(times.st_atime_ns, times.st_mtime_ns))
    found = check(pair, "--tree", tree)
    assert found.stdout == "two differs: is the same file as one, which is another one in the manifest\n"
    assert "no hash" not in found.stderr


def test_files_without_a_hash_are_counted(tmp_path: Path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "secret").write_bytes(b"12345")
    payload = struct.pack("<I", 2) + bytes(2)
    for path, name, kind in ((tree, b"", 1), (tree / "secret", b"secret", 0)):
        status = path.stat()
        numbers = (status.st_uid, status.st_gid, status.st_mtime_ns, 0, 0 if kind else 5, 1, 1 + kind, 1, 0, 0)
        body = struct.pack("<IIqqQQQQQQ", *numbers) + name
        payload += struct.pack("<BHIIHH", kind | 0x80, status.st_mode & 0o7777, len(body), len(name), 0, 0) + body
    manifest = write_manifest(tmp_path / "manifest", HEAD, (b"R", payload), end(2))
    found = check(manifest, "--tree", tree)
    assert (found.returncode, found.stdout) == (0, ""), found.stderr
    assert "of 1 files the manifest has no hash, so their contents were not compared" in found.stderr
    assert "no hash" not in check(manifest, "--tree", tree, "--no-contents").stderr
