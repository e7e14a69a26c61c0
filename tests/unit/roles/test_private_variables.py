# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one file of a role sets for another is read there: Ansible itself says nothing of a name that nobody knows."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
PLACES = ("roles", "playbooks", "extensions")
NAME = r"(__(?:backup|migrate|nic|restore|rsyncd|ssh_client|tune)_\w+)"
SETS = (
    rf"(?m)^\s*(?:- )?{NAME}:",  # vars, set_fact, and the files of variables
    rf"(?:register|loop_var|index_var): {NAME}",
    rf"\bset {NAME} =",  # in a template
)


@pytest.fixture(name="text", scope="module")
def _text() -> str:
    """All tasks, variables and templates of roles and playbooks, without comments."""
    paths = [path for place in PLACES for path in sorted((REPOSITORY / place).rglob("*"))]
    read = [path.read_text(encoding="utf-8") for path in paths if path.suffix in (".yml", ".j2", ".py")]
    return re.sub(r"(?m)(^|\s)# .*$", "", "\n".join(read))


def test_what_is_set_is_read_and_what_is_read_is_set(text: str) -> None:
    said = Counter(re.findall(rf"\b{NAME}", text))
    is_set = Counter(name for pattern in SETS for name in re.findall(pattern, text))
    assert len(is_set) > 100
    assert sorted(name for name, times in is_set.items() if said[name] <= times) == [], "nothing reads these"
    assert sorted(name for name in said if name not in is_set) == [], "nothing sets these"
