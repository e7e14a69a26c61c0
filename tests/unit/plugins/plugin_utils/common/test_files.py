# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files on the control node are written whole, and for their owner and group alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.files import write_whole


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_nobody_else_reads_them(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_whole(str(tmp_path / "new/state.json"), "{}")
    finally:
        os.umask(before)
    assert (mode(tmp_path / "new/state.json"), mode(tmp_path / "new")) == (0o640, 0o750)


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_whole(str(path), "before")
    with pytest.raises(UnicodeEncodeError):
        write_whole(str(path), "after \udcff")
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["state.json"]
