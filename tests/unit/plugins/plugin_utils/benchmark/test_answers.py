# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What hosts say they measured is read by type and with bounds."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.answers import (
    parse_disk_answer,
    parse_link_answer,
    parse_processor,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.measurement import (
    DiskMeasurement,
    LinkMeasurement,
    LinkRates,
    ProcessorMeasurement,
    TreeMeasurement,
)

DISK = {
    "large": 1e8,
    "small": 50,
    "entries": 1e4,
    "compared": 9e7,
    "kernel": False,
    "busy": 0.5,
    "note": "NFS\x1b[2J\n!",
}
TREE = {"entries": 9, "files": 8, "bytes_apparent": 7, "bytes_on_disk": 6, "large_bytes": 5, "is_complete": True}
CORE = {"cores": 4, "load": 0.1, "ciphers": {"tls": 1e9, "aes128-gcm@openssh.com": 1}, "hashes": {}, "compression": {}}
SOURCE = {"disk": DISK, "tree": TREE, "processor": CORE, "ratio": 0.25, "gaps": ["No \x1b[31mred."]}


def test_a_source_is_read() -> None:
    found = parse_disk_answer(SOURCE, has_tree=True)
    assert found.tree == TreeMeasurement(9, 8, 7, 6, 5, True, 0.25)
    assert found.disk == DiskMeasurement(1e8, 50.0, 1e4, 9e7, False, 0.5, found.disk.note)
    assert "\x1b" not in found.disk.note + found.gaps[0]
    assert "\n" not in found.disk.note
    assert parse_disk_answer({"disk": DISK, "gaps": []}, has_tree=False).tree is None


@pytest.mark.parametrize("value", [None, -1, float("nan"), float("inf"), True, "5", 1e30, []])
@pytest.mark.parametrize("name", ["large", "small", "entries", "compared", "busy"])
def test_an_odd_rate_is_refused(name: str, value: Any) -> None:
    with pytest.raises(WrongShape):
        parse_disk_answer({"disk": {**DISK, name: value}, "gaps": []}, has_tree=False)


@pytest.mark.parametrize("value", [None, -1, 1.5, True, "5", 1 << 80])
@pytest.mark.parametrize("name", ["entries", "files", "bytes_apparent", "bytes_on_disk", "large_bytes"])
def test_an_odd_count_is_refused(name: str, value: Any) -> None:
    with pytest.raises(WrongShape):
        parse_disk_answer({**SOURCE, "tree": {**TREE, name: value}}, has_tree=True)


@pytest.mark.parametrize(
    "answer", [None, [], {}, {"disk": DISK}, {**SOURCE, "gaps": [1]}, {**SOURCE, "ratio": 2}, {**SOURCE, "tree": None}]
)
def test_an_odd_answer_is_refused(answer: Any) -> None:
    with pytest.raises(WrongShape):
        parse_disk_answer(answer, has_tree=True)


def test_gaps_are_few_and_short() -> None:
    found = parse_disk_answer({"disk": DISK, "gaps": ["x" * 10000] * 1000}, has_tree=False)
    assert len(found.gaps) == 20
    assert max(map(len, found.gaps)) <= 400


def test_a_processor_is_read() -> None:
    wanted = ProcessorMeasurement(4, 0.1, {"tls": 1e9, "aes128-gcm@openssh.com": 1.0}, {}, {})
    assert parse_processor({"processor": CORE}) == wanted


@pytest.mark.parametrize(
    "wrong",
    [
        {"cores": "4"},
        {"cores": 1 << 40},
        {"load": 1.5},
        {"ciphers": None},
        {"hashes": {"sha256": -1}},
        {"hashes": {"sha256": "x"}},
        {"compression": {"../etc": 1}},
        {"compression": {f"a{number}": 1 for number in range(1000)}},
    ],
)
def test_an_odd_processor_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(WrongShape):
        parse_processor({"processor": {**CORE, **wrong}})


WAY = {"one_stream": 1e8, "several_streams": 2e8, "streams": 4, "encrypted": 1.5e8}
SIDE = {"interface": 1.25e9, "bond": "", "send_buffer": 4, "receive_buffer": 6}
LINE = {
    "forth": WAY,
    "back": {**WAY, "encrypted": 0},
    "round_trip": 0.02,
    "loss": 0.01,
    "path_mtu": 1500,
    "window": 3,
    "congestion": "cubic",
    "source": SIDE,
    "dest": {**SIDE, "bond": "802.3ad"},
    "bytes": 9,
    "gaps": ["No TLS."],
}


def test_a_line_is_read() -> None:
    found = parse_link_answer(LINE, "pull")
    assert found.link == LinkMeasurement(
        forth=LinkRates(1e8, 2e8, 4, 1.5e8),
        back=LinkRates(1e8, 2e8, 4, 0.0),
        connect="pull",
        round_trip=0.02,
        loss=0.01,
        path_mtu=1500,
        window=3,
        congestion="cubic",
        interfaces={"source": 1.25e9, "dest": 1.25e9},
        bonds={"dest": "802.3ad"},
    )
    assert (found.bytes_sent, found.gaps) == (9, ("No TLS.",))
    assert parse_link_answer({**LINE, "congestion": "x; reboot"}, "push").link.congestion == ""


@pytest.mark.parametrize(
    "wrong",
    [
        *({name: value} for name in ("forth", "source", "gaps") for value in (None, 5, "x")),
        *({name: value} for name in ("round_trip", "loss", "path_mtu", "window", "bytes") for value in (-1, 1e40, "x")),
        {"congestion": 5},
        {"loss": float("nan")},
        {"forth": {**WAY, "streams": 10**6}},
        {"forth": {**WAY, "encrypted": float("inf")}},
        {"source": {**SIDE, "interface": -5}},
        {"dest": {**SIDE, "bond": None}},
    ],
)
def test_an_odd_line_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(WrongShape):
        parse_link_answer({**LINE, **wrong}, "push")
