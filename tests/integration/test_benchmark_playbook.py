# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook benchmark between two real hosts: what it says, what it keeps, and that it leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.support import refusal
from ansible_collections.longhaul.fleet.tests.support.faults import MIB
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

PAIR = {"src_host": "alpha", "src": "/data/src/", "dest_host": "beta", "dest": "/data/dest"}
ASKED = {"benchmark_seconds": 8, "benchmark_bytes": "64M"}


def fill(hosts: Testbed) -> None:
    (hosts.root("alpha") / "data/src").mkdir(parents=True)
    make_big_files(hosts.root("alpha") / "data/src/big", 16 * MIB, count=2)


def test_a_pair_with_a_tree_and_one_without(hosts: Testbed, playbooks: Playbooks) -> None:
    fill(hosts)
    before = refusal.everything(hosts)
    alone = {"src_host": "beta", "dest_host": "alpha"}

    run = playbooks.run("longhaul.fleet.benchmark", benchmark_pairs=[PAIR, alone], **ASKED).expect_success()

    assert refusal.everything(hosts) == before
    found, other = run.result("Measure each pair")["results"]
    assert found["recommendation"]["method"] == "stream", run.output
    assert found["measurement"]["tree"]["files"] == 2 and found["measurement"]["link"]["forth"]["one_stream"] > 0
    assert found["recommendation"]["first_copy"]["low"] <= found["recommendation"]["first_copy"]["high"]
    assert {one["method"] for one in found["candidates"]} == {"stream", "rsync", "rsyncd", "tar_nc", "scp", "sftp"}
    assert other["measurement"]["disks"]["source"]["large"] == 0 and other["recommendation"]["method"] == "stream"
    assert json.loads(Path(found["kept"]).read_text())["results"][0]["src"] == "/data/src/"


@pytest.mark.long
def test_every_method_runs(hosts: Testbed, playbooks: Playbooks) -> None:
    fill(hosts)
    before = refusal.everything(hosts)

    asked = {**ASKED, "benchmark_methods": "measured", "benchmark_encryption": "none"}
    run = playbooks.run("longhaul.fleet.benchmark", benchmark_pairs=[PAIR], **asked).expect_success()

    assert refusal.everything(hosts) == before
    (found,) = run.result("Measure each pair")["results"]
    assert [one["method"] for one in found["candidates"] if one["derived"] or not one["plain"]] == [], run.output
