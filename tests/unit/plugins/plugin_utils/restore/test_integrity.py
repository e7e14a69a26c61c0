# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every pair of a finding and a wish has its row, and damage is restored only where that was asked for."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.restore.integrity import (
    TABLE,
    Integrity,
    Verdict,
    integrity_of,
    judge,
)

EVERY = list(itertools.product((False, True), Integrity))
NAME = "2026-11-21T173009Z"
GONE = {"path": "etc/passwd", "detail": "it is gone", "intact_in": []}
TORN = {"path": "etc/group", "detail": "its contents differ", "intact_in": ["2026-11-20T173009Z", "2026-11-19T173009Z"]}
ITSELF = {"path": None, "detail": "its manifest is gone", "intact_in": []}
LOOKED = {
    Integrity.INTACT: {"checked": "contents", "problems": [], "problems_total": 0},
    Integrity.DAMAGED: {"checked": "contents", "problems": [GONE, TORN], "problems_total": 2},
    Integrity.UNKNOWN: {"checked": "", "problems": [], "problems_total": 0},
    Integrity.HOLLOW: {"checked": "", "problems": [ITSELF], "problems_total": 1},
}


def test_the_table_has_each_finding_and_wish():
    assert {(accepts, found) for accepts, row in TABLE.items() for found in row} == set(EVERY)
    assert {found: integrity_of(looked) for found, looked in LOOKED.items()} == {found: found for found in Integrity}


@pytest.mark.parametrize("accepts, found", EVERY)
def test_what_holds_for_every_row(accepts, found):
    verdict = TABLE[accepts][found]
    assert (verdict is Verdict.REFUSE) == (not accepts and found in (Integrity.DAMAGED, Integrity.HOLLOW))
    if verdict is not Verdict.REFUSE:
        assert (verdict is Verdict.WARN) == (found in (Integrity.UNKNOWN, Integrity.HOLLOW))
    judged = judge(LOOKED[found], NAME, accepts)
    assert bool(judged.refused) == (verdict is Verdict.REFUSE)
    assert bool(judged.said) == (verdict is Verdict.WARN)
    assert all(NAME in text for text in judged if text)


def test_a_refusal_names_what_is_damaged_and_where_it_is_intact():
    lines = judge(LOOKED[Integrity.DAMAGED], NAME, False).refused.splitlines()
    assert lines[:3] == [
        f"Nothing was restored. In {NAME} not all is as it was (2 problems):",
        "- etc/passwd: it is gone; intact in no other snapshot",
        "- etc/group: its contents differ; intact in 2026-11-20T173009Z, 2026-11-19T173009Z",
    ]
    assert "restore_when=NAME" in lines[3] and "restore_damaged=true" in lines[3] and len(lines) == 4
    assert "- the snapshot itself: its manifest is gone\n" in judge(LOOKED[Integrity.HOLLOW], NAME, False).refused
    many = {"checked": "files", "problems": [GONE] * 50, "problems_total": 300}
    assert len(judge(many, NAME, False).refused.splitlines()) == 12
