# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tests of whole transfers share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(name="trees")
def _trees(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Return an empty source, an empty destination, and a folder for the jobs that is not there yet."""
    source, dest = tmp_path / "source", tmp_path / "dest"
    source.mkdir()
    dest.mkdir()
    return source, dest, tmp_path / "work"
