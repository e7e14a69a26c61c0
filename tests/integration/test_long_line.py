# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Transfers over long lines that lose packets."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run
from ansible_collections.longhaul.fleet.tests.testbed import Line, Testbed

MIB = 1 << 20
LOSSY = Line(rtt=0.06, rate=40_000_000, loss=0.02)


def tasks(**options: Any) -> list[dict[str, Any]]:
    ends = {"src_host": "alpha", "src": "/data/tree/", "dest_host": "beta", "dest": "/data/out/"}
    return [{"name": "Transfer", "longhaul.fleet.transfer": {**ends, "method": "stream", **options}}]


def transfer(playbooks: Playbooks, **options: Any) -> Run:
    return playbooks.run(tasks(**options), hosts="alpha")


def connections(hosts: Testbed) -> dict[int, int]:
    """Return the TCP connections of alpha that others did not make to its port of ssh: port, bytes that wait."""
    lines = hosts.exec("alpha", ["cat", "/proc/net/tcp", "/proc/net/tcp6"]).stdout.splitlines()
    found = [line.split()[1:5] for line in lines]
    there = [(int(local.rpartition(":")[2], 16), queues) for local, _peer, state, queues in found if state == "01"]
    return {port: int(queues.partition(":")[0], 16) for port, queues in there if port != 22}


def busy(hosts: Testbed) -> list[int]:
    """Return the ports of those that have much to send."""
    return [port for port, waiting in connections(hosts).items() if waiting > MIB // 64]


def make_tree(hosts: Testbed, size: int) -> tuple[Path, Path]:
    source, dest = (hosts.root(host) / "data" / name for host, name in (("alpha", "tree"), ("beta", "out")))
    make_big_files(source, size)
    return source, dest


def remember(playbooks: Playbooks, hosts: Testbed, **found: Any) -> Path:
    """Have the control node remember that a transfer over this line found that; return where."""
    hosts.set_congestion("reno")
    hosts.lengthen(LOSSY)
    transfer(playbooks, congestion="none").expect_success()
    (known,) = playbooks.folder.glob("ansible-home/longhaul/line-*.json")
    known.write_text(json.dumps({**json.loads(known.read_text()), **found}))
    shutil.rmtree(hosts.root("beta") / "data/out")
    return known


@pytest.mark.parametrize("congestion", ["none", pytest.param("auto", marks=pytest.mark.long)])
def test_a_lossy_line_gets_as_many_connections_as_there_may_be(
    playbooks: Playbooks, hosts: Testbed, congestion: str
) -> None:
    source, dest = make_tree(hosts, 24 * MIB)
    hosts.lengthen(LOSSY)
    result = transfer(playbooks, congestion=congestion).expect_success().result("Transfer")
    assert not result["errors_total"]
    assert result["bottleneck"]["name"] == "network", result["bottleneck"]
    offered = hosts.exec("alpha", ["cat", "/proc/sys/net/ipv4/tcp_allowed_congestion_control"]).stdout
    if congestion == "auto" and "bbr" in offered:
        assert 1 < result["streams"] <= 16  # a few that bear losses fill the line
    else:
        assert (result["streams"], result["bottleneck"]["cause"]) == (16, "loss"), result["bottleneck"]
    out, _back = hosts.shorten()
    assert out["lost"]
    assert differences(source, dest) == []


@pytest.mark.long
def test_the_next_transfer_begins_with_what_the_last_one_found(playbooks: Playbooks, hosts: Testbed) -> None:
    source, dest = make_tree(hosts, 24 * MIB)
    hosts.set_congestion("reno")
    hosts.lengthen(LOSSY)
    first = transfer(playbooks).expect_success().result("Transfer")
    assert 1 < first["streams"] <= 16
    shutil.rmtree(dest)
    running = playbooks.start(tasks(), hosts="alpha")
    before = len(connections(hosts))
    wait_for(lambda: len(connections(hosts)) - before >= first["streams"])
    logs = [log.read_text() for log in hosts.root("alpha").glob("var/lib/longhaul/*/source/log")]
    assert logs and "are tried instead of" not in "".join(logs)  # there were as many at once
    running.wait().expect_success()
    assert differences(source, dest) == []


@pytest.mark.long
def test_bbr_that_is_remembered_is_given_up_where_only_a_full_queue_loses_packets(
    playbooks: Playbooks, hosts: Testbed
) -> None:
    """It would leave next to nothing of the line to a download."""
    if "bbr" not in hosts.congestions():
        pytest.skip("cannot run here: the kernel does not let hosts have BBR")
    make_tree(hosts, 64 * MIB)
    known = remember(playbooks, hosts, streams=2, congestion="bbr")
    hosts.lengthen(Line(rtt=0.06, rate=20_000_000))
    running = playbooks.start(tasks(), hosts="alpha")
    wait_for(lambda: len(busy(hosts)) > 0)
    (log,) = hosts.root("alpha").glob("var/lib/longhaul/*/source/log")
    # One of both may have been given up before, as the line is full.
    wait_for(lambda: "carries no more with bbr: it has reno again" in log.read_text())
    assert "tries bbr" not in log.read_text()
    running.wait().expect_success()
    assert json.loads(known.read_text())["congestion"] == ""


@pytest.mark.long
def test_connections_that_are_remembered_are_given_up_where_they_fill_the_line(
    playbooks: Playbooks, hosts: Testbed
) -> None:
    source, dest = make_tree(hosts, 32 * MIB)
    known = remember(playbooks, hosts, streams=16, congestion="")
    hosts.lengthen(Line(rtt=0.06, rate=20_000_000))
    running = playbooks.start(tasks(), hosts="alpha")
    wait_for(lambda: len(busy(hosts)) > 8)
    wait_for(lambda: 0 < len(busy(hosts)) <= 4)
    result = running.wait().expect_success().result("Transfer")
    assert result["streams"] <= 4 and json.loads(known.read_text())["streams"] == result["streams"]
    assert differences(source, dest) == []


@pytest.mark.parametrize(("streams", "expected"), [("auto", 4), (3, 3)])
def test_small_files_go_over_all_connections(
    playbooks: Playbooks, hosts: Testbed, streams: str | int, expected: int
) -> None:
    source, dest = (hosts.root(host) / "data" / name for host, name in (("alpha", "tree"), ("beta", "out")))
    source.mkdir()
    for number in range(300):
        (source / f"{number:03}").write_bytes(os.urandom(40_000 + number))  # which nothing makes smaller
    hosts.lengthen(Line(rtt=0.06, rate=20_000_000))
    running = playbooks.start(tasks(streams=streams), hosts="alpha")
    wait_for(lambda: len(busy(hosts)) == expected)
    result = running.wait(120).expect_success().result("Transfer")
    assert not result["errors_total"]
    # The line is full, and is left to others if nobody said how many there are to be.
    assert result["streams"] == expected or (streams == "auto" and 0 < result["streams"] < expected)
    assert differences(source, dest) == []


@pytest.mark.long
def test_a_connection_that_stalls_at_the_end_holds_nothing_up(playbooks: Playbooks, hosts: Testbed) -> None:
    source, dest = make_tree(hosts, 12 * MIB)
    hosts.lengthen(Line(rtt=0.06, rate=20_000_000))
    running = playbooks.start(tasks(streams=2, congestion="none", timeout=600), hosts="alpha")
    wait_for(lambda: len(busy(hosts)) == 2)
    hosts.block("alpha", busy(hosts)[0], established=True)  # what it sends is never confirmed
    result = running.wait(120).expect_success().result("Transfer")
    assert not result["errors_total"]
    assert differences(source, dest) == []


def test_a_congestion_control_that_the_source_does_not_offer_is_named(playbooks: Playbooks, hosts: Testbed) -> None:
    make_tree(hosts, MIB)
    run = transfer(playbooks, congestion="nosuchthing", timeout=20)
    (said,) = run.failures
    assert "congestion is nosuchthing" in said and "modprobe" in said
    assert not transfer(playbooks, congestion="reno").failures


@pytest.mark.long
def test_a_small_receive_window_is_named_with_what_makes_it_larger(playbooks: Playbooks, hosts: Testbed) -> None:
    make_tree(hosts, 12 * MIB)
    hosts.lengthen(Line(rtt=0.06, rate=200_000_000))
    hosts.exec("beta", ["sh", "-c", "echo 4096 65536 131072 > /proc/sys/net/ipv4/tcp_rmem"])
    result = transfer(playbooks, streams=1).expect_success().result("Transfer")
    found = result["bottleneck"]
    assert (found["name"], found["cause"]) == ("network", "receive_window"), found
    assert "net.ipv4.tcp_rmem at the destination" in found["advice"] and "60 ms" in found["evidence"]
