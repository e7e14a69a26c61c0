# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tools of the tests, imported as they import each other."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(scope="module")
def import_tool() -> Iterator[Callable[[str], Any]]:
    """Return a function that imports a tool by its bare name; the tools are forgotten after the module's tests."""
    before = set(sys.modules)
    sys.path.insert(0, str(TOOLS))
    yield importlib.import_module
    sys.path.remove(str(TOOLS))
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(TOOLS)):
            del sys.modules[name]
