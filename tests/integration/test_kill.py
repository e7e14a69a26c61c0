# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each method is killed on its way: the source's side, the destination's, the controller.

The rerun ends identical, sends again no more than the method promises, and leaves nothing behind.
"""

from __future__ import annotations

from typing import Callable

import pytest
from ansible_collections.longhaul.fleet.tests.support.faults import (
    METHODS,
    MIB,
    START_RATE,
    Transfer,
    expect_nothing_left,
    failed,
    jobs,
    kill,
    run_all,
    several,
    start_all,
    wait_for,
)
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.rarely import PAIRS, rarely
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

Record = Callable[[str, object], None]
FILE, COUNT = 48 * MIB, 3
RATE = "300mbit"
THREE_MOMENTS = ("rsync", "sftp")
BY_SHARD = ("scp", "tar_nc")
# What one kill may cost at most: rsync, rsyncd and sftp go on inside a file; scp and tar_nc lose the shard that was
# under way (64 MiB, full with the file that reaches it), stream the range that each of its streams was at. The wire's
# headers and what is in flight come on top.
IN_FLIGHT = 6 * MIB
COSTS = {"stream": 16 * MIB, "rsync": 0, "rsyncd": 0, "sftp": 0, "scp": FILE, "tar_nc": FILE}


def moments(method: str, others: tuple[float, ...]) -> tuple[float, ...]:
    """Return the shares of the whole at which a method is killed, one after the other."""
    return (0.1, 0.5, 0.75) if method in THREE_MOMENTS else others


@pytest.mark.parametrize("method", ["stream", *rarely("rsync", "rsyncd", "tar_nc", "scp", "sftp")])
def test_killed_sides(hosts: Testbed, playbooks: Playbooks, record_property: Record, method: str) -> None:
    transfer = Transfer(hosts, playbooks, method, verify="none")
    transfer.fill(COUNT, FILE)
    # By shard, both in the last one: what the first kill cost is on the wire when the second comes.
    begun, shares = transfer.traffic(), moments(method, (0.8, 1.0) if method in BY_SHARD else (0.4, 0.8))
    hosts.shape("alpha", RATE)
    for number, share in enumerate(shares):
        running = transfer.start()
        transfer.until(share, running, begun + number * (IN_FLIGHT // 2))
        killed = transfer.kill_side(("alpha", "beta")[number % 2])
        assert killed > (method != "stream")  # which runs no program beside the job
        lost = failed(running.wait())
        assert "run the task again" in lost["msg"] or "run the transfer again" in lost["msg"].lower(), lost["msg"]
    done = transfer.run()
    again = transfer.traffic() - begun - transfer.size
    record_property("sent_again", again)
    assert done["resumed"] or method in BY_SHARD
    assert again < (COSTS[method] + IN_FLIGHT) * len(shares)
    transfer.expect_identical()
    transfer.expect_nothing_left()


@pytest.mark.parametrize("method", ["stream", *rarely("rsync", "rsyncd", "tar_nc", "scp", "sftp")])
def test_a_killed_controller(hosts: Testbed, playbooks: Playbooks, record_property: Record, method: str) -> None:
    transfer = Transfer(hosts, playbooks, method, verify="none")
    transfer.fill(COUNT, FILE)
    begun = transfer.traffic()
    hosts.shape("alpha", RATE)
    running = transfer.start()
    for share in moments(method, (0.8,)):
        transfer.until(share, running, begun)
        running.kill()
        hosts.shape("alpha", START_RATE)
        running = transfer.start()
        wait_for(lambda running=running: "attached to the running transfer" in running.output)
        hosts.shape("alpha", RATE)
    done = running.wait().expect_success().result("Move")
    again = transfer.traffic() - begun - transfer.size
    record_property("sent_again", again)
    assert done["changed"] and done["bytes_sent"] == transfer.size
    assert done["attached"]
    assert again < IN_FLIGHT
    transfer.expect_identical()
    transfer.expect_nothing_left()


@pytest.mark.long
@pytest.mark.parametrize("methods", PAIRS)
def test_what_ended_without_a_controller_is_collected(
    hosts: Testbed, playbooks: Playbooks, methods: tuple[str, ...]
) -> None:
    transfers = several(hosts, playbooks, methods)
    for transfer in transfers:
        transfer.fill(2, 8 * MIB)
    for running in start_all(transfers, "200mbit"):
        running.kill()
    wait_for(lambda: not jobs(hosts, "alpha"))
    begun = transfers[0].traffic()
    for transfer, done in zip(transfers, run_all(transfers)):
        transfer.expect_identical()
        assert done["changed"] and done["bytes_sent"] == transfer.size and done["files_created"] == 2, transfer.method
    assert transfers[0].traffic() - begun < MIB
    assert not any(done["changed"] for done in run_all(transfers))
    expect_nothing_left(transfers)


@pytest.mark.long
@pytest.mark.parametrize("host", ["beta", *rarely("alpha")])
def test_killed_jobs_take_their_programs_along(hosts: Testbed, playbooks: Playbooks, host: str) -> None:
    ports = {method: f"{50000 + 10 * number}-{50009 + 10 * number}" for number, method in enumerate(METHODS)}
    transfers = [Transfer(hosts, playbooks, name, name, verify="none", port_range=ports[name]) for name in METHODS]
    for transfer in transfers:
        transfer.fill(1, 8 * MIB)
    running = start_all(transfers, START_RATE)
    kill(hosts, host, jobs(hosts, host))
    hosts.shape("alpha", None)
    for one in running:
        failed(one.wait())
    wait_for(lambda: not [process for host in hosts.hosts for process in hosts.processes(host)], seconds=20)
    assert hosts.listeners("alpha") == hosts.listeners("beta") == []
    assert not list((hosts.root("beta") / "dev/shm").iterdir())
    for transfer, _done in zip(transfers, run_all(transfers)):
        transfer.expect_identical()
    expect_nothing_left(transfers)


@pytest.mark.parametrize("methods", PAIRS)
def test_a_host_that_restarts(hosts: Testbed, playbooks: Playbooks, methods: tuple[str, ...]) -> None:
    transfers = several(hosts, playbooks, methods, verify="none")
    for transfer in transfers:
        transfer.fill(1, 12 * MIB)
    running = start_all(transfers, START_RATE)
    hosts.crash("beta")
    hosts.shape("alpha", None)
    for one in running:
        failed(one.wait())
    keys = (hosts.root("beta") / "root/.ssh/authorized_keys").read_text()
    assert "longhaul-" not in keys
    for transfer, _done in zip(transfers, run_all(transfers)):
        transfer.expect_identical()
    expect_nothing_left(transfers)
