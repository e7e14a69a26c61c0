# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters are cheap to load: the process of each task loads all of them for the first filter in a template."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGE = "ansible_collections.longhaul.fleet"
FILTERS = {
    f"plugins.filter.{path.stem}" for path in (Path(__file__).resolve().parents[4] / "plugins/filter").glob("*.py")
}


def test_a_filter_imports_nothing_of_this_collection_until_it_is_asked():
    imports = "; ".join(f"import {PACKAGE}.{name}" for name in sorted(FILTERS))
    count = f"{imports}; import sys; print(*(name for name in sys.modules if {PACKAGE!r} in name))"
    said = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True)
    loaded = {name.removeprefix(f"{PACKAGE}.") for name in said.stdout.split()}
    assert {name for name in loaded if name.startswith("plugins.") and name.count(".") > 1} == FILTERS
