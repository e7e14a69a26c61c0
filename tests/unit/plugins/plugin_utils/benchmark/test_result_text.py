# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.abilities import PairRules
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.measurement import PairMeasurement
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.result_text import result_lines

from tests.support.measured_pairs import MB, concluded, end, measured


def lines(pair: PairMeasurement, rules: PairRules | None = None, **ends: Any) -> list[str]:
    return result_lines(concluded(pair, rules or PairRules(), **ends))


def test_a_result_is_a_table_with_a_recommendation():
    text = "\n".join(lines(measured(files=1000, ratio=4.0)))

    assert text.startswith("old -> new: benchmark (")
    assert "111.6 MiB/s on one connection" in text
    row = next(line for line in text.splitlines() if line.startswith("  stream (TLS)"))
    assert "111.6 MiB/s" in row and row.endswith("range  derived")
    assert "  rsyncd " in text and "not allowed: it does not encrypt" in text
    assert "Recommended: stream (TLS), 4 streams, compress: auto, connect: push" in text
    assert "First copy: " in text and " to " in text
    assert "Bottleneck: The slowest part" in text
    assert "Not measured" not in text.replace("not measured", "")


def test_the_columns_stand_below_each_other():
    rows = [line for line in lines(measured()) if line.startswith("  ") and "derived" in line]
    assert len(rows) == 8
    assert len({line.index("MiB/s") for line in rows}) == 1


def test_gaps_are_named_and_bounded():
    text = lines(measured(gaps=tuple(f"Gap {number}." for number in range(30))))
    assert text[-22:][0] == "Not measured:" and text[-1] == "  and 10 more"


def test_without_a_method_the_table_says_why():
    text = lines(measured(connect=""), PairRules(connect=""), source=end("source", ("ssh",)))
    assert "No method is allowed and can run" in text[-1]
    assert any("source has no ssh" in line for line in text)


def test_what_was_not_measured_is_said():
    text = "\n".join(lines(replace(measured(), disks={}, processors={})))
    assert "old not measured" in text and "new not measured" in text


def test_a_text_of_a_host_stays_on_its_line_and_moves_no_cursor():
    pair = measured()
    hostile = "x\n\x1b[2Jstream (TLS) is best\u202e"
    disk = replace(pair.disks["source"], note=hostile)
    pair = replace(
        pair, disks={**pair.disks, "source": disk}, link=replace(pair.link, congestion=hostile), gaps=(hostile,)
    )
    found = lines(pair)
    assert not any(char in line for line in found for char in "\n\x1b\u202e")
    assert len(found) == len(lines(replace(measured(), gaps=("x",))))


def test_rates_are_those_of_the_measurement():
    assert "95.4 MiB/s" in "\n".join(lines(measured(line=100 * MB)))


def test_a_rate_that_no_disk_has_is_marked():
    row = next(line for line in lines(measured(read=20e9)) if "old reads" in line)
    assert "18.6 GiB/s (from memory: no disk is that fast)" in row
    assert "from memory" not in "\n".join(lines(measured(read=7e9)))


def test_the_compression_is_told_in_words():
    assert "compresses by a factor of 4.0" in "\n".join(lines(measured(ratio=4.0)))
    assert "does not compress" in "\n".join(lines(measured(ratio=0.9)))
