# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A file system with little room, which can be given more. Mounting needs root."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import Callable, Iterator


@contextlib.contextmanager
def small_disk(folder: Path, options: str) -> Iterator[Callable[[str], None]]:
    """Mount a tmpfs at a folder for the time of a block, and give what mounts it with other options: ``size=20m``."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "longhaul-test", str(folder)], check=True)
    try:
        yield lambda other: _remount(folder, other)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)
