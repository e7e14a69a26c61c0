# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table, in narrow and wide windows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.columns import cells, cut, fit
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.rows import Row, State, sum_up
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.table import (
    render_table,
    short_age,
    wrap,
)

GIB = 2**30
RUNNING = Row(
    *("n01", "old01", "/srv/", "new01", "/srv", "seed", State.RUNNING, "stream", 35 * GIB, 100 * GIB, 1, 2),
    rate=110 * 2.0**20,
    age=2.0,
)
FAILED = replace(RUNNING, name="n02", state=State.FAILED, rate=None, error="new02: no space left", next="Make room")


def table(rows, width=79, most=50):
    return render_table(rows, sum_up(rows), width, most)


def test_a_narrow_table():
    assert table([RUNNING, FAILED]) == [
        "job            phase     state       done       size         rate    eta  age",
        "n02            seed      failed       35%  100.0 GiB                       2s",
        "n01            seed      running      35%  100.0 GiB  110.0 MiB/s 10m05s   2s",
        "",
        "2 in all: 1 failed, 1 running; 70.0 GiB of 200.0 GiB, 110.0 MiB/s, 10 min 5 s",
        "  left",
        "",
        "n02: new02: no space left",
        "  Make room",
    ]


def test_what_held_back_the_jobs_that_are_not_done():
    slow = "The source's disk was busy for 94 % of 312 s (18.0 MiB/s read): a faster disk there would help."
    done, failed = (replace(one, bottleneck=slow) for one in (replace(RUNNING, state=State.DONE), FAILED))
    rows = [replace(RUNNING, name=f"n{number}", bottleneck=slow) for number in range(7)]
    lines = table([done, failed, *rows])
    found = lines[lines.index("  Make room") + 1 :]
    assert found[:3] == [
        "",
        "n0 was slow: The source's disk was busy for 94 % of 312 s (18.0 MiB/s read): a",
        "  faster disk there would help.",
    ]
    assert len(found) == 5 * 3 + 2
    assert found[-1] == "... and 2 more that were slow, as fleet_status returns"


@pytest.mark.parametrize("width", [40, 60, 79, 80, 100, 132, 200])
def test_no_line_is_longer_than_the_window(width):
    rows = [
        replace(FAILED, name=f"a long name of a job, number {number}", error="no space left on device " * 20)
        for number in range(70)
    ]
    rows += [replace(RUNNING, state=state, bottleneck="slow " * 70) for state in State for _each in range(111)]
    rows += [replace(RUNNING, name="\x1b[31mred\n\u202e", src_host="h" * 90), replace(RUNNING, name="日本語" * 20)]
    lines = table(rows, width)
    assert max(cells(line) for line in lines) <= max(width, 60)
    assert "\x1b" not in "".join(lines) and "\u202e" not in "".join(lines)


def test_a_transfer_that_is_of_no_job_is_called_by_its_hosts():
    other = replace(RUNNING, name="5f3c0d2a9b17e846", phase="transfer", is_job=False)
    assert table([other])[1].startswith("old01 -> new01 transfer")
    assert table([other], 132)[1].startswith("5f3c0d2a9b17e846 old01:/srv/ -> new01:/srv ")
    deep = replace(other, src="/srv/" + "deep/" * 30)
    assert table([deep], 132)[1].startswith("5f3c0d2a9b17e846 old01 -> new01 ")


def test_a_transfer_that_nobody_collected_is_named_with_advice():
    ended = replace(RUNNING, name="5f3c0d2a9b17e846", state=State.ENDED, rate=None, is_job=False)
    assert table([ended])[2:] == [
        "",
        "1 in all: 1 ended",
        "",
        "ended, result not collected: 5f3c0d2a9b17e846 (old01:/srv/ -> new01:/srv)",
        "  Run the task of such a transfer again to collect it. To forget it, remove",
        "  /var/lib/longhaul/ID on both hosts (~/.local/state/longhaul/ID of other users",
        "  than root).",
    ]
    assert not any("not collected" in line for line in table([replace(ended, is_job=True)]))


def test_a_total_that_nobody_knows_is_not_told():
    unknown = replace(RUNNING, bytes_done=87 * 2**20, bytes_total=0, rate=None)
    assert table([unknown])[-1] == "1 in all: 1 running; 87.0 MiB so far, 1 of unknown size"
    waiting = replace(unknown, bytes_done=0, state=State.SWITCHED)
    assert table([waiting])[-1] == "1 in all: 1 switched"


def test_a_wide_table_has_the_hosts_and_the_bytes():
    lines = table([RUNNING], 132)
    assert "hosts" in lines[0] and "bytes" in lines[0]
    assert "old01 -> new01" in lines[1] and "35.0 GiB  100.0 GiB" in lines[1]


def test_a_table_of_a_thousand_shows_what_needs_attention_and_counts_the_rest():
    rows = [replace(RUNNING, name=f"n{number}", state=State.DONE, rate=None) for number in range(999)]
    lines = table([*rows, FAILED], most=10)
    assert lines[1].startswith("n02") and lines[11] == "... and 990 more: 990 done"
    assert len(lines) < 20


def test_a_cause_that_many_jobs_have_stands_once():
    rows = [replace(FAILED, name=f"n{number}", error="the line is down") for number in range(5)]
    text = "\n".join(table(rows))
    assert text.count("the line is down") == 1 and "n0, n1, n2 and 2 more: the line is down" in text


def test_a_cause_stands_once_where_each_job_has_it_with_hosts_of_its_own():
    rows = [
        replace(FAILED, name=f"n{number}", dest_host=f"new{number}", error=f"new{number}: no answer at new{number}")
        for number in range(1, 13)
    ]
    text = "\n".join(table([*rows, replace(rows[0], name="again")], 100))
    assert text.count("no answer") == 1 and "n1, again: new1: no answer at new1\n" in text
    assert "\n  The same with the hosts of n2, n3, n4 and 8 more.\n  Make room" in text


def test_an_empty_fleet():
    lines = table([])
    assert lines[0].startswith("job") and "0 in all: none" in lines[2]


@pytest.mark.parametrize(
    "seconds, said", [(0, "0s"), (99, "99s"), (100, "1m"), (3600, "60m"), (6000, "1h"), (172800, "2d"), (1e9, "old")]
)
def test_ages(seconds, said):
    assert short_age(seconds) == said


def test_columns_of_other_scripts():
    assert cells("日本") == 4 and cells("e\u0301") == 1
    assert fit("日本", 5) == "日本 " and fit("7", 3, right=True) == "  7"
    assert cut("日本語", 5) == "日本~" and cut("日本語", 4) == "日~" and cut("abc", 3) == "abc"


def test_long_words_are_cut():
    assert wrap("ab cdefgh", 4) == ["ab", "cdef", "gh"]
