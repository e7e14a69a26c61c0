# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the type checker is told to look away, the line says which error it is and why."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
WITH_A_REASON = re.compile(r"# type: ignore\[[a-z, -]+\]  # \w")


def unreasoned(text: str) -> list[str]:
    """Return the lines that silence the type checker without saying what and why."""
    return [line for line in text.splitlines() if "type: ignore" in line and not WITH_A_REASON.search(line)]


@pytest.mark.parametrize("folder", ["action", "callback", "filter", "module_utils", "modules", "plugin_utils"])
def test_each_ignored_type_error_has_a_reason(folder):
    files = sorted((REPOSITORY / "plugins" / folder).rglob("*.py"))
    assert files
    assert {str(path): found for path in files if (found := unreasoned(path.read_text(encoding="utf-8")))} == {}


def test_no_module_is_exempt():
    config = configparser.ConfigParser()
    config.read(REPOSITORY / "mypy.ini")
    assert config["mypy"]["strict"] == "true"
    own = [name for name in config if "longhaul" in name]
    assert {option for name in own for option in config[name]} == {"disallow_subclassing_any"}  # Ansible has no types


def test_a_line_without_a_reason_is_found():
    silent = "a = b  # type: ignore[assignment]"
    assert unreasoned(f"{silent}\n{silent}  # Ansible's base class has no types\n") == [silent]
