# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is remembered of the line between two hosts, from what the source says of its connections."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.memory import Memory
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer import link_memory
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.account import met_by
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.link_memory import (
    UNKNOWN,
    KnownLine,
    keep_line,
    keep_measured_line,
    recall_line,
)

HOSTS = ("old", "new")
LONG = {"packets": 50_000, "lost": 500, "rtt": 0.1, "min_rtt": 0.1, "found": "bbr"}


@pytest.fixture(name="memory")
def _memory(tmp_path: Path) -> Memory:
    return Memory(str(tmp_path / "longhaul"))


def keep(memory: Memory, line: Any, streams: int, known: KnownLine = UNKNOWN) -> KnownLine:
    """Keep what a source said, and return what the next transfer knows."""
    keep_line(memory, HOSTS, known, met_by({"source": {"wall": 9.0, "line": line}}), streams)
    return recall_line(memory, HOSTS)


def test_the_next_transfer_knows_what_was_found_between_these_hosts_in_this_direction(memory: Memory) -> None:
    assert recall_line(memory, HOSTS) == UNKNOWN
    assert keep(memory, LONG, 12) == KnownLine(12, "bbr")
    assert recall_line(memory, ("new", "old")) == UNKNOWN
    assert keep(memory, {**LONG, "found": ""}, 8, KnownLine(12, "bbr")) == KnownLine(8, "")


def test_a_benchmark_tells_how_many_connections_pay_unless_a_transfer_has_found_that(memory: Memory) -> None:
    keep_measured_line(memory, HOSTS, 8, 0.001)
    keep_measured_line(memory, HOSTS, 1, 0.1)
    assert recall_line(memory, HOSTS) == UNKNOWN
    keep_measured_line(memory, HOSTS, 8, 0.1)
    assert recall_line(memory, HOSTS) == KnownLine(8, "")
    found = keep(memory, LONG, 12)
    keep_measured_line(memory, HOSTS, 4, 0.1)
    assert recall_line(memory, HOSTS) == found


def test_of_a_short_line_nothing_is_kept_and_a_short_transfer_tells_nothing(memory: Memory) -> None:
    short = {**LONG, "rtt": 0.001, "min_rtt": 0.001}
    assert keep(memory, short, 12) == UNKNOWN
    known = keep(memory, LONG, 12)
    assert keep(memory, {**LONG, "packets": 20}, 2, known) == known
    assert keep(memory, None, 2, known) == known
    assert keep(memory, short, 2, known) == UNKNOWN


@pytest.mark.parametrize(
    "line", [[], {"packets": "x"}, {**LONG, "found": "cubic"}, {**LONG, "found": ["bbr"]}, {**LONG, "min_rtt": -1}]
)
def test_what_a_source_should_not_say_names_no_congestion_control(memory: Memory, line: Any) -> None:
    assert keep(memory, line, 10**12).congestion == ""


def test_after_some_days_a_line_is_looked_at_anew(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    known = keep(memory, LONG, 12)
    monkeypatch.setattr(link_memory.time, "time", lambda: now + 5 * 86400)
    assert keep(memory, LONG, 12, known) == known  # what is as it was does not become younger
    monkeypatch.setattr(link_memory.time, "time", lambda: now + 8 * 86400)
    assert recall_line(memory, HOSTS) == UNKNOWN
    assert keep(memory, LONG, 12) == known
    monkeypatch.setattr(link_memory.time, "time", lambda: now)  # a clock that was put back
    assert recall_line(memory, HOSTS) == UNKNOWN


def test_a_record_that_cannot_be_read_is_none(memory: Memory) -> None:
    memory.keep("line", HOSTS, {"at": time.time() - 1, "streams": "many", "congestion": "x\ny"})
    assert recall_line(memory, HOSTS) == KnownLine(0, "")
