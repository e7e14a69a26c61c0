# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a hostile end gives up: nothing. And what holds it must not be that it confined itself."""

from __future__ import annotations

import importlib

COLLECTION = "ansible_collections.longhaul.fleet"


def unconfine() -> None:
    """Let this process, and what it starts, keep all its rights."""
    confine = importlib.import_module(f"{COLLECTION}.plugins.module_utils._core.confinement.confine")
    confine.Confinement.apply = lambda _self: []
