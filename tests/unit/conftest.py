# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How hypothesis tries (a slow machine is no failure), and which tests begin first."""

from __future__ import annotations

import gc
from pathlib import PurePath

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

LONGEST = ("test_stream_growth.py",)  # what takes minutes begins first, so that no process works alone in the end


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files with the longest tests in front."""
    items.sort(key=lambda item: PurePath(item.path).name not in LONGEST)


def pytest_collection_finish() -> None:
    """Keep what the collection made out of sight of the garbage collector.

    Tests that play a host fork this process, and each child that then collects would go through, and copy, all of it.
    """
    gc.collect()
    gc.freeze()
