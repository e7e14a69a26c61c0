# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which kept engine is run: one of this user, whole, and that no other user can have written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job import bytecode_cache
from ansible_collections.longhaul.fleet.plugins.modules import endpoint
from ansible_collections.longhaul.fleet.plugins.plugin_utils.engine import pack_engine


@pytest.fixture(name="kept")
def _kept(tmp_path: Path) -> Path:
    archive, kept = tmp_path / "engine.pyz", tmp_path / "longhaul/engine-x.pyz"
    archive.write_bytes(pack_engine())
    bytecode_cache.keep(str(archive), str(kept))
    return kept


def test_what_was_kept_is_used_and_marked_as_in_use(kept: Path) -> None:
    os.utime(kept, (1, 1))
    assert endpoint.is_kept(str(kept))
    assert kept.stat().st_mtime > 1
    assert not endpoint.is_kept(str(kept.with_name("engine-y.pyz")))


@pytest.mark.parametrize("at", [0, 100, -65, -1], ids=["start", "code", "archive", "digest"])
def test_a_damaged_one_is_not_used(kept: Path, at: int) -> None:
    content = bytearray(kept.read_bytes())
    content[at] ^= 1
    kept.write_bytes(content)
    assert not endpoint.is_kept(str(kept))


@pytest.mark.parametrize("left", [0, 10, 64, 1000])
def test_a_piece_of_it_is_not_used(kept: Path, left: int) -> None:
    kept.write_bytes(kept.read_bytes()[:left])
    assert not endpoint.is_kept(str(kept))


@pytest.mark.parametrize(
    "harm",
    ["file for the group", "file for all", "folder for the group", "folder for all", "link", "linked folder", "fifo"],
)
def test_what_another_user_can_have_written_is_not_used(kept: Path, tmp_path: Path, harm: str) -> None:
    folder = kept.parent
    if harm.startswith("file"):
        kept.chmod(0o620 if "group" in harm else 0o602)
    elif harm.startswith("folder"):
        folder.chmod(0o720 if "group" in harm else 0o702)
    elif harm == "link":
        kept.rename(tmp_path / "planted")
        kept.symlink_to(tmp_path / "planted")
    elif harm == "linked folder":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        kept.unlink()
        os.mkfifo(kept)
    assert not endpoint.is_kept(str(kept))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("of", ["file", "folder"])
def test_what_belongs_to_another_user_is_not_used(kept: Path, of: str) -> None:
    os.chown(kept if of == "file" else kept.parent, 12345, -1)
    assert not endpoint.is_kept(str(kept))
