# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.abilities import PairRules, find_abilities
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.candidates import COSTS, list_candidates
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.measurement import (
    Candidate,
    LinkMeasurement,
    PairMeasurement,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.methods import METHODS
from hypothesis import given
from hypothesis import strategies as some

from tests.support.measured_pairs import GB, MB, end, measured

OPEN = find_abilities(end("source"), end("dest"), PairRules(encryption="none"))
FASTEST, DEFAULT = "aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com"


def candidates(pair: PairMeasurement) -> dict[tuple[str, str], Candidate]:
    return {(one.method, one.variant): one for one in list_candidates(pair, OPEN)}


def test_every_method_has_costs():
    assert set(COSTS) == set(METHODS)


# The speeds of docs/benchmarks.md: "large", from which the costs come, so that they must come out again.
@pytest.mark.parametrize(
    ("method", "variant", "seen"),
    [
        ("stream", "plain", 2236),
        ("stream", "TLS", 923),
        ("rsync", FASTEST, 340),
        ("rsyncd", "", 629),
        ("tar_nc", "", 391),
        ("scp", FASTEST, 463),
        ("sftp", FASTEST, 447),
    ],
)
def test_on_the_reference_machine_the_published_speeds_come_out(method: str, variant: str, seen: float):
    bare = measured(
        line=3800 * MB, several=3800 * MB, encrypted=1000 * MB, trip=0.00003, read=20 * GB, written=5 * GB, cores=2
    )
    found = candidates(bare)[method, variant]
    whole = 2147.5 * MB / (2147.5 * MB / found.plain + found.first_byte)
    assert whole == pytest.approx(seen * MB, rel=0.25)


def test_on_a_slow_line_all_are_as_fast_as_the_line():
    for one in candidates(measured()).values():
        assert (one.plain, one.limited_by) == (pytest.approx(117 * MB), "network")


def test_ssh_waits_for_its_window_on_a_long_line_and_stream_does_not():
    found = candidates(measured(line=20 * MB, several=100 * MB, trip=0.2))
    assert found["stream", "TLS"].plain == pytest.approx(100 * MB)
    assert found["rsync", FASTEST].plain == pytest.approx((2 << 20) / 0.2)
    assert found["rsyncd", ""].plain == pytest.approx(20 * MB)
    assert found["rsync", FASTEST].first_byte > 2 > found["stream", "TLS"].first_byte


@pytest.mark.parametrize(
    ("disks", "name"), [({"read": 50 * MB}, "source_disk"), ({"written": 50 * MB}, "destination_disk")]
)
def test_a_slow_disk_limits_all(disks: dict[str, float], name: str):
    for one in candidates(measured(**disks)).values():
        assert (one.plain, one.limited_by) == (50 * MB, name)


def test_one_core_does_all_the_work_of_its_side():
    fast = {"line": 3 * GB, "several": 3 * GB, "encrypted": 3 * GB, "read": 9 * GB, "written": 9 * GB}
    one, four = candidates(measured(cores=1, **fast)), candidates(measured(cores=4, **fast))
    assert one["stream", "TLS"].plain < four["stream", "TLS"].plain / 1.9
    assert one["stream", "TLS"].limited_by in ("source_cpu", "destination_cpu")
    assert 0.5 < max(one["stream", "TLS"].processor.values()) <= 1.0
    loaded = candidates(measured(cores=4, load=0.9, **fast))
    assert loaded["stream", "TLS"].plain < one["stream", "TLS"].plain


def test_the_slower_cipher_is_slower_and_takes_more_of_the_processor():
    found = candidates(measured(line=3 * GB, several=3 * GB, read=9 * GB, written=9 * GB))
    assert found["rsync", DEFAULT].plain < found["rsync", FASTEST].plain
    by_byte = {
        name: found["rsync", name].processor["source"] / found["rsync", name].plain for name in (DEFAULT, FASTEST)
    }
    assert by_byte[DEFAULT] > by_byte[FASTEST]


def test_a_cipher_that_was_not_measured_is_taken_from_the_others():
    known = measured(line=3 * GB, several=3 * GB, ciphers={"tls": 1.8 * GB})
    unknown = measured(line=3 * GB, several=3 * GB, ciphers={})
    for pair in (known, unknown):
        found = candidates(pair)
        assert 0 < found["rsync", DEFAULT].plain < found["rsync", FASTEST].plain


def test_compression_pays_where_the_line_is_slow_and_the_data_is_text():
    text, noise = candidates(measured(ratio=4.0)), candidates(measured(ratio=1.0))
    assert text["stream", "TLS"].compressed == pytest.approx(4 * 117 * MB, rel=0.2)
    assert noise["stream", "TLS"].compressed <= noise["stream", "TLS"].plain
    assert text["scp", FASTEST].compressed == text["sftp", FASTEST].compressed == 0
    assert text["tar_nc", ""].compressed < text["rsyncd", ""].compressed, "zlib is slower than zstd"


def test_what_cannot_run_or_was_not_measured_has_no_speed():
    abilities = find_abilities(end("source"), end("dest", ("rsync",)), PairRules())
    found = {(one.method, one.variant): one for one in list_candidates(measured(), abilities)}
    assert (found["rsyncd", ""].plain, found["rsyncd", ""].allowed) == (0, False)
    assert found["stream", "plain"].plain > 0 and not found["stream", "plain"].allowed, "it is worth knowing"
    blind = replace(measured(), link=LinkMeasurement(connect="push"))
    assert {one.plain for one in list_candidates(blind, OPEN)} == {0.0}


RATES = some.floats(1e3, 1e11)


@given(
    RATES,
    RATES,
    RATES,
    RATES,
    some.floats(0, 1),
    some.integers(1, 256),
    some.floats(0, 1),
    some.floats(0.1, 10),
    some.floats(0.5, 20),
)
def test_nothing_is_faster_than_the_line_or_the_disks(line, several, read, written, trip, cores, load, machine, ratio):
    pair = measured(line, several, several, trip, read, written, cores=cores, load=load, machine=machine, ratio=ratio)
    for one in list_candidates(pair, OPEN):
        most = max(line, several)
        assert 0 < one.plain <= min(most, read, written)
        assert one.compressed <= min(most * max(1.0, ratio), read, written)
        assert one.first_byte >= 0
        assert all(0 <= used <= cores * 1.01 for used in one.processor.values())
        assert one.limited_by
