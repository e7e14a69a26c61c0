# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that the inventory lacks: when job slicing may be why, and what is said then."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.selection import (
    MOST_PROBLEMS,
    at_most,
    explain_missing,
    is_automated,
)


@pytest.mark.parametrize(
    "missing, automated, said",
    [([], True, False), (["new01"], False, False), (["new01"], True, True), (["new01", "old02"], False, True)],
)
def test_slicing_is_named_where_it_may_be_why(missing: list[str], automated: bool, said: bool) -> None:
    assert bool(explain_missing(missing, 8, "migrate_only", automated)) == said


def test_it_says_what_to_do() -> None:
    (sentence,) = explain_missing([f"new{number}" for number in range(9)], 20, "migrate_only")
    for word in ("9 of the 20 hosts", "new4 and 4 more", "job slicing", "to 1", "migrate_only", "whole inventory"):
        assert word in sentence, sentence


def test_a_controller_and_ansible_runner_are_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWX_ISOLATED_DATA_DIR", raising=False)
    assert not is_automated({"inventory_hostname": "localhost"})
    assert is_automated({"awx_job_id": 7}) and is_automated({"tower_job_id": 7})
    monkeypatch.setenv("AWX_ISOLATED_DATA_DIR", "/runner/artifacts/7")
    assert is_automated({})


def test_a_refusal_lists_no_more_than_a_person_reads() -> None:
    assert at_most(["one"]) == ["one"]
    shown = at_most([str(number) for number in range(2000)])
    assert len(shown) == MOST_PROBLEMS + 1 and shown[-1] == "and 1950 more problems like these"
