# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the control node remembers, and what it does not believe."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common import memory as memory_module
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.memory import Memory

ABOUT = ["old", 22]


@pytest.fixture(name="memory")
def _memory(tmp_path: Path) -> Memory:
    return Memory(str(tmp_path / "longhaul"))


def the_file(tmp_path: Path) -> Path:
    (path,) = (tmp_path / "longhaul").glob("host-*.json")
    return path


def test_what_was_kept_is_recalled_and_can_be_forgotten(tmp_path: Path, memory: Memory) -> None:
    assert memory.recall("host", ABOUT) == {}
    memory.keep("host", ABOUT, {"engine": "x"})
    assert Memory(str(tmp_path / "longhaul")).recall("host", ABOUT) == {"engine": "x"}
    assert memory.recall("host", ["new", 22]) == memory.recall("pair", ABOUT) == {}
    assert stat.S_IMODE(the_file(tmp_path).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "longhaul").stat().st_mode) == 0o700
    memory.keep("host", ABOUT, {})
    memory.keep("host", ABOUT, {})
    assert memory.recall("host", ABOUT) == {}


@pytest.mark.parametrize("harm", ["damaged", "no object", "writable", "folder", "link", "linked folder"])
def test_what_another_could_have_written_is_not_believed(tmp_path: Path, memory: Memory, harm: str) -> None:
    memory.keep("host", ABOUT, {"engine": "x"})
    file = the_file(tmp_path)
    if harm == "damaged":
        file.write_text('{"engine": ')
    elif harm == "no object":
        file.write_text("[1]")
    elif harm == "writable":
        file.chmod(0o620)
    elif harm == "folder":
        file.parent.chmod(0o770)
    elif harm == "link":
        file.rename(tmp_path / "planted.json")
        file.symlink_to(tmp_path / "planted.json")
    else:
        file.parent.rename(tmp_path / "elsewhere")
        (tmp_path / "longhaul").symlink_to(tmp_path / "elsewhere")
    assert memory.recall("host", ABOUT) == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_another_user_is_not_believed(tmp_path: Path, memory: Memory) -> None:
    memory.keep("host", ABOUT, {"engine": "x"})
    os.chown(the_file(tmp_path), 12345, -1)
    assert memory.recall("host", ABOUT) == {}


def test_where_nothing_can_be_written_nothing_is_remembered_and_nothing_fails(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    memory = Memory(str(tmp_path / "file" / "longhaul"))
    memory.keep("host", ABOUT, {"engine": "x"})
    assert memory.recall("host", ABOUT) == {}


def test_what_nobody_needs_goes_once_a_day(tmp_path: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.keep("host", ABOUT, {"engine": "x"})
    old = the_file(tmp_path)
    os.utime(old, (1, 1))
    memory.keep("pair", ABOUT, {"a": 1})
    assert old.exists()  # it was cleaned a moment ago
    os.utime(tmp_path / "longhaul" / memory_module._CLEANED, (1, 1))
    memory.keep("pair", ABOUT, {"a": 2})
    assert not old.exists() and memory.recall("pair", ABOUT) == {"a": 2}


def test_what_is_used_stays(tmp_path: Path, memory: Memory) -> None:
    memory.keep("host", ABOUT, {"engine": "x"})
    os.utime(the_file(tmp_path), (1, 1))
    assert memory.recall("host", ABOUT)
    assert the_file(tmp_path).stat().st_mtime > 1
