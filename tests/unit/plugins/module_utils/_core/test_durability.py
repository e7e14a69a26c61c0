# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a loss of power would leave: a copy of the disk, taken while the file system is mounted, is mounted itself."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core import durability
from ansible_collections.longhaul.fleet.plugins.module_utils._core.durability import sync_tree
from ansible_collections.longhaul.fleet.plugins.module_utils._core.mounts import parse_mounts
from ansible_collections.longhaul.fleet.tests.support.disk_image import CannotMount, disk_image

TEXT = "text" * 50_000


def after_a_loss_of_power(mounted: Path, folder: Path) -> dict[str, str]:
    """Return the files, by name, that the disk below a mount point has now."""
    image, copied = mounted.with_suffix(".img"), folder / "copied.img"
    subprocess.run(["cp", "--sparse=always", str(image), str(copied)], check=True)
    (folder / "copied").mkdir()
    subprocess.run(["mount", "-o", "loop", str(copied), str(folder / "copied")], check=True)
    try:
        return {path.name: path.read_text() for path in (folder / "copied").iterdir() if path.is_file()}
    finally:
        subprocess.run(["umount", str(folder / "copied")], check=True)


@pytest.mark.parametrize("inside", [False, True], ids=["the root", "mounted inside"])
def test_a_tree_that_was_synced_survives_a_loss_of_power(tmp_path: Path, inside: bool) -> None:
    (tmp_path / "tree with space").mkdir()
    try:
        with disk_image(tmp_path / "tree with space", "ext4", 64 << 20) as mounted:
            (mounted / "file").write_text(TEXT)
            sync_tree(str(mounted.parent if inside else mounted))
            assert after_a_loss_of_power(mounted, tmp_path) == {"file": TEXT}
    except CannotMount as error:
        pytest.skip(f"cannot run here: {error}")


def test_a_disk_that_did_not_take_what_was_written_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(durability, "sync_file_system", fail)
    with pytest.raises(OSError, match="Input/output error"):
        sync_tree(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        sync_tree(str(tmp_path / "gone"))


def test_each_file_system_is_waited_for_once_and_none_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "mountinfo"
    for name in ("tree/one", "tree/again", "tree/auto", "treeother"):
        (tmp_path / name).mkdir(parents=True)
    points = [("8:1", "tree/one", "ext4"), ("8:1", "tree/again", "ext4"), ("0:9", "tree/auto", "autofs")]
    points += [("8:2", "treeother", "xfs"), ("8:3", "tree/gone", "xfs"), ("8:4", "tree", "xfs")]
    table.write_text("".join(f"1 1 {device} / {tmp_path}/{name} rw - {kind} x rw\n" for device, name, kind in points))
    synced: list[str] = []
    monkeypatch.setattr(durability, "MOUNTINFO", str(table))
    monkeypatch.setattr(durability, "_sync_path", lambda path: synced.append(os.path.relpath(path, tmp_path)))
    sync_tree(str(tmp_path / "tree"))
    assert synced == ["tree", "tree/again", "tree/gone"]


@pytest.mark.skipif(sys.platform != "linux", reason="cannot run here: there is no mountinfo")
def test_what_is_mounted_here_is_understood() -> None:
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        found = {mount.point: mount.kind for mount in parse_mounts(file.read())}
    assert found["/proc"] == "proc"
    assert "/" in found
