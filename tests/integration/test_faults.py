# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The network fails, the disk is full: each method ends clearly or goes on, and a rerun puts everything right.

All methods run side by side, since most of the time here is waiting.
"""

from __future__ import annotations

import os
import time

import pytest
from ansible_collections.longhaul.fleet.tests.support.faults import (
    MIB,
    Transfer,
    expect_nothing_left,
    failed,
    run_all,
    several,
    start_all,
    wait_for,
)
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Running
from ansible_collections.longhaul.fleet.tests.support.rarely import PAIRS
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

TIMEOUT = 16  # seconds, of the transfers here
IN_FLIGHT = 3 * MIB // 2  # bytes of one transfer; a link's queue, and what TCP sends again
SLACK = 60  # seconds that a task takes beside its transfer, on a busy machine


def still(running: list[Running]) -> None:
    """None of them may have ended."""
    for one in running:
        assert one.process.poll() is None, one.output


@pytest.mark.parametrize("methods", PAIRS)
def test_a_link_that_is_cut_for_a_while(hosts: Testbed, playbooks: Playbooks, methods: tuple[str, ...]) -> None:
    transfers = several(hosts, playbooks, methods, timeout=TIMEOUT, verify="none")
    for transfer in transfers:
        transfer.fill(2, 8 * MIB)
    running = start_all(transfers, "80mbit")
    begun = transfers[0].traffic()
    hosts.cut()
    # TCP tries again after 3.0 seconds and then after 6.2 only, when a busy machine may find half of TIMEOUT gone.
    time.sleep(2.5)
    still(running)
    hosts.mend()
    for transfer, one in zip(transfers, running):
        done = one.wait().expect_success().result("Move")
        # Where rsync had to connect again, it has counted what it gave to the connection before: what stood in this
        # host's buffers then never left, and counts once more when it does. On the line nothing goes twice, see below.
        # And what left after its last word about progress, only the next rsync finds, at the destination.
        again = transfer.method in ("rsync", "rsyncd") and done["resumed"]
        assert done["bytes_sent"] <= transfer.size + (4 * MIB if again else 0), transfer.method
        assert transfer.size <= done["bytes_sent"] + (done["bytes_matched"] if again else 0), transfer.method
        transfer.expect_identical()
    # With the headers of the packets, and what each had in flight when the link was cut: no method started over.
    once = sum(transfer.size for transfer in transfers)
    assert transfers[0].traffic() - begun < 1.05 * once + IN_FLIGHT * len(transfers)


@pytest.mark.long
def test_a_link_that_is_cut_for_longer_than_one_connection_lasts(hosts: Testbed, playbooks: Playbooks) -> None:
    transfers = [
        Transfer(hosts, playbooks, method, method, timeout=TIMEOUT, verify="none") for method in ("rsync", "rsyncd")
    ]
    for transfer in transfers:
        transfer.fill(1, 64 * MIB)  # one may be much quicker than the other, and neither may have ended
    running = start_all(transfers, "60mbit")
    begun = transfers[0].traffic()
    wait_for(lambda: all(transfer.held() > 6 * MIB for transfer in transfers), lambda: still(running))
    hosts.cut()
    time.sleep(TIMEOUT / 2 + 2)
    hosts.shape("alpha", "300mbit")
    hosts.mend()
    for transfer, one in zip(transfers, running):
        done = one.wait().expect_success().result("Move")
        transfer.expect_identical()
        assert done["resumed"], done
    # On the line, since rsync counts what stood in its host's buffers with every connection that is lost.
    once = sum(transfer.size for transfer in transfers)
    assert transfers[0].traffic() - begun < 1.05 * once + 2 * IN_FLIGHT * len(transfers)


@pytest.mark.long
@pytest.mark.parametrize("methods", PAIRS)
def test_a_link_that_is_cut_for_good(hosts: Testbed, playbooks: Playbooks, methods: tuple[str, ...]) -> None:
    transfers = several(hosts, playbooks, methods, timeout=TIMEOUT, verify="none")
    for transfer in transfers:
        transfer.fill(2, 12 * MIB)
    running = start_all(transfers, "80mbit")
    hosts.cut()
    begun = time.monotonic()
    for transfer, one in zip(transfers, running):
        message = failed(one.wait())["msg"]
        assert time.monotonic() - begun < TIMEOUT + SLACK, transfer.method
        assert "again" in message, message
    hosts.mend()
    for transfer, done in zip(transfers, run_all(transfers)):
        transfer.expect_identical()
        # So early, stream has no range complete yet, and scp and tar_nc no file.
        assert done["resumed"] or transfer.method in ("stream", "scp", "tar_nc"), transfer.method
    expect_nothing_left(transfers)


@pytest.mark.long
@pytest.mark.parametrize("methods", PAIRS)
def test_a_slow_line_is_not_a_dead_one(hosts: Testbed, playbooks: Playbooks, methods: tuple[str, ...]) -> None:
    transfers = several(hosts, playbooks, methods, timeout=TIMEOUT, verify="none", compress="none")
    for transfer in transfers:
        transfer.fill(1, MIB)
    hosts.shape("alpha", "1mbit")
    begun = time.monotonic()
    running = [transfer.start() for transfer in transfers]
    for transfer, one in zip(transfers, running):
        one.wait().expect_success()
        transfer.expect_identical()
    assert time.monotonic() - begun > TIMEOUT


@pytest.mark.parametrize("methods", PAIRS)
def test_a_disk_that_becomes_full(hosts: Testbed, playbooks: Playbooks, methods: tuple[str, ...]) -> None:
    transfers = several(hosts, playbooks, methods, verify="none")
    for transfer in transfers:
        transfer.fill(2, 16 * MIB)
    running = start_all(transfers, "150mbit")
    hosts.limit_disk("beta", f"{sum(transfer.held() for transfer in transfers) // MIB + 6}m")
    for one in running:
        message = failed(one.wait())["msg"]
        assert "full" in message and "again" in message, message
    hosts.limit_disk("beta", "4g")
    run_all(transfers)
    for transfer in transfers:
        transfer.expect_identical()
    expect_nothing_left(transfers)


@pytest.mark.long
def test_a_disk_without_inodes(hosts: Testbed, playbooks: Playbooks) -> None:
    # These send the large file first; others are through with the small ones before room can be taken away.
    transfers = [Transfer(hosts, playbooks, method, method, verify="none") for method in ("rsync", "rsyncd")]
    for transfer in transfers:
        transfer.fill(1, 20 * MIB)
        for number in range(60):
            folder = transfer.source / f"small{number % 4}"
            folder.mkdir(exist_ok=True)
            (folder / f"file{number}").write_text(f"content {number}")
    running = start_all(transfers, "150mbit")
    space = os.statvfs(hosts.root("beta") / "data")
    hosts.limit_disk("beta", "4g", inodes=space.f_files - space.f_ffree + 40)
    for one in running:
        message = failed(one.wait())["msg"]
        assert "full" in message and "inodes" in message and "again" in message, message
    hosts.limit_disk("beta", "4g")
    run_all(transfers)
    for transfer in transfers:
        transfer.expect_identical()
    expect_nothing_left(transfers)
