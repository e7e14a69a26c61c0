# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How hypothesis tries (a slow machine is no failure), which tests run, which begin first; what is tidied before."""

from __future__ import annotations

import gc
from pathlib import PurePath

import pytest
from ansible_collections.longhaul.fleet.tests.support import login_shells
from ansible_collections.longhaul.fleet.tests.support.variants import spread
from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# What takes minutes begins first, so that no process works alone in the end.
LONGEST = (
    "test_control_client.py",
    "test_foreign_links.py",
    "test_prometheus_rules.py",
    "test_soak_differential.py",
    "test_stream_growth.py",
    "test_watch.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let few variants of each test be enough."""
    parser.addoption("--variants", type=int, default=0, help="run at most so many variants of each test (0: all)")


@pytest.hookimpl(tryfirst=True)  # before pytest's own looks at the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the files with the longest tests in front, mark the variants that are long, and leave some out if asked."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for variants in tests.values():
        often = variants[0].get_closest_marker("often")
        _mark_long(variants, often.args[0] if often else len(variants))
    most = config.getoption("--variants")
    if most:
        kept = {id(item) for variants in tests.values() for item in spread(variants, most)}
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
        items[:] = [item for item in items if id(item) in kept]
    items.sort(key=lambda item: PurePath(item.path).name not in LONGEST)


def _mark_long(variants: list[pytest.Item], often: int) -> None:
    kept = {id(item) for item in spread(variants, often)}
    for item in variants:
        if id(item) not in kept:
            item.add_marker(pytest.mark.long)


def pytest_runtest_setup() -> None:
    """Have a session of ssh that an earlier test killed delay no later one."""
    login_shells.free_lock()


def pytest_collection_finish() -> None:
    """Keep what the collection made out of sight of the garbage collector.

    Tests that play a host fork this process, and each child that then collects would go through, and copy, all of it.
    """
    gc.collect()
    gc.freeze()
