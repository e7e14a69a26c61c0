# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small tree for whole transfers by any method."""

from __future__ import annotations

import os
from pathlib import Path


def make_tree(root: Path) -> None:
    """Make a small tree with one of most things."""
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").write_bytes(b"x" * 5000)
    (root / "a" / "-rf").write_bytes(b"dash")
    os.link(root / "a" / "b" / "file", root / "hard")
    (root / "link").symlink_to("/nowhere")
    (root / "empty").mkdir()
    (root / "none").write_bytes(b"")
    (root / "nl\nname").write_bytes(b"newline")
    os.utime(root / "a" / "b" / "file", ns=(0, 1_000_000_000_123_456_789))
    os.utime(root / "a" / "b", ns=(0, 1_000_000_001_123_456_789))
