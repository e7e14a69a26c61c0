# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which path lies inside which. Pure. Private to the collection."""

from __future__ import annotations


def inside(path: str, folder: str) -> bool:
    """Whether a path lies below a folder and is not the folder itself; both are absolute and normalised."""
    return path != folder and path.startswith(folder.rstrip("/") + "/")


def goes_back(path: str) -> bool:
    """Return whether a path has ``..`` in it: only its host knows where that leads, for a symlink may be before it."""
    return ".." in path.split("/")


def within(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies below it."""
    return path == folder or inside(path, folder)
