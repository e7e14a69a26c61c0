# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where this collection was imported from."""

from __future__ import annotations

from pathlib import Path


def collections_folder() -> Path:
    """Return the folder with ``ansible_collections`` through which this collection was imported."""
    return next(parent.parent for parent in Path(__file__).parents if parent.name == "ansible_collections")
