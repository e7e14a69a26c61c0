# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A tree that somebody writes to: a transfer succeeds with a warning, and a migration does not switch over."""

from __future__ import annotations

from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.support.beside import beside
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

WRITER = """
import itertools, sys, time
for number in itertools.count():
    with open(f"{sys.argv[1]}/new{number}", "w") as opened:
        opened.write("content")
    time.sleep(0.01)
"""


@pytest.fixture
def written_to(hosts: Testbed) -> Iterator[None]:
    """A tree at alpha that gets a file a hundred times a second: there is one between any two looks at it."""
    source = hosts.root("alpha") / "data/src"
    source.mkdir()
    (source / "still").write_text("content")
    with beside(hosts, "alpha", ["/usr/bin/python3", "-c", WRITER, "/data/src"]):
        wait_for((source / "new1").exists)
        yield


@pytest.mark.usefixtures("written_to")
def test_a_transfer_warns_and_a_cutover_stops(hosts: Testbed, playbooks: Playbooks) -> None:
    options = {"src_host": "alpha", "src": "/data/src/", "dest": "/data/dest"}
    result = playbooks.run([{"name": "Move", "longhaul.fleet.transfer": options}], hosts="beta").expect_success()
    moved = result.result("Move")
    assert moved["unstable"] == moved["differences_total"] >= 1, moved
    assert any("changed at the source after the transfer had begun" in one for one in moved["warnings"])
    assert (hosts.root("beta") / "data/dest/still").exists()

    job = {"name": "data", "src_host": "alpha", "src": "/data/src/", "dest_host": "beta", "dest": "/data/dest"}
    more = {"migrate_phase": "cutover", "migrate_verify_when": "after_switch"}
    run = playbooks.start("longhaul.fleet.migrate", migrate_jobs=[job], **more).wait()
    assert run.rc != 0 and "something still writes there" in run.failures[-1], run.output
    assert "data stopped in phase cutover" in run.failures[-1]
