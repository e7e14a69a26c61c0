# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A pair of hosts is measured within its budget, beside nothing else, and nothing stays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support import leftovers
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

MIB = 1 << 20
GIGABIT = 125e6  # bytes a second
PLUGINS = "ansible_collections.longhaul.fleet.plugins.plugin_utils"
ACTION = f"""
from {PLUGINS}.actions.pair_action import PairAction
from {PLUGINS}.benchmark.measure import MeasureRequest, measure_pair
from {PLUGINS}.common.typed_json import dump_dataclass

OPTIONS = [("src_host", "str"), ("dest_host", "str"), ("src", "str"), ("dest", "str"), ("seconds", "float")]


class ActionModule(PairAction):
    documentation = "options:\\n" + "".join(f"  {{name}}: {{{{type: {{kind}}}}}}\\n" for name, kind in OPTIONS)

    def run_pair(self, source, dest, options, say):
        request = MeasureRequest(options["src"], options["dest"], options["seconds"], 256 << 20)
        return dump_dataclass(measure_pair(source, dest, request, say).measurement)
"""


def measure(playbooks: Playbooks, **options: Any) -> Run:
    """Measure alpha and beta by an action of the test."""
    folder = playbooks.folder / "measuring"
    for name, text in (("action_plugins", ACTION), ("library", "#!/usr/bin/python\n")):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "measure_pair.py").write_text(text, encoding="utf-8")
    ends = {"src_host": "alpha", "src": "/data/tree/", "dest_host": "beta", "dest": "/data/out/", "seconds": 12.0}
    task = {"name": "Measure", "measure_pair": {**ends, **options}}
    play = [{"hosts": "alpha", "gather_facts": False, "tasks": [task]}]
    (folder / "playbook.yml").write_text(str(play).replace("False", "false"), encoding="utf-8")
    return playbooks.run(str(folder / "playbook.yml"))


def make_tree(hosts: Testbed) -> Path:
    tree = hosts.root("alpha") / "data/tree"
    tree.mkdir()
    (tree / "large").write_bytes(os.urandom(32 * MIB))
    for number in range(300):
        (tree / f"small{number}").write_bytes(b"log line " * 400)
    return tree


def test_a_pair_on_a_shaped_line(playbooks: Playbooks, hosts: Testbed) -> None:
    make_tree(hosts)
    before = {host: leftovers.snapshot(hosts, host) for host in hosts.hosts}
    for host in hosts.hosts:
        hosts.shape(host, "400mbit")
    found = measure(playbooks).expect_success().result("Measure")
    shape = 0.4 * GIGABIT
    link = found["link"]
    for way in ("forth", "back"):
        for name in ("one_stream", "several_streams", "encrypted"):
            assert 0.5 * shape <= link[way][name] <= 1.1 * shape, (way, name, link)
    assert link["connect"] == "push"
    assert 0 < link["round_trip"] < 0.5
    assert 0 <= link["loss"] <= 1
    assert link["path_mtu"] == 1500
    assert link["window"] > 0
    assert link["congestion"]
    assert 0 < found["bytes_sent"] <= 256 * MIB
    assert found["tree"]["entries"] == 302
    assert found["tree"]["is_complete"] is True
    assert found["tree"]["bytes_on_disk"] == 32 * MIB + 300 * 9 * 400
    assert 0.9 < found["tree"]["ratio"] < 1
    for side in ("source", "dest"):
        disk = found["disks"][side]
        assert min(disk["large"], disk["small"], disk["entries"], disk["compared"]) > 0, (side, disk)
        processor = found["processors"][side]
        assert processor["ciphers"]["tls"] > 0
        assert processor["compression"]["zlib-1"] > 0
    assert {host: leftovers.snapshot(hosts, host) for host in hosts.hosts} == before


@pytest.mark.long
def test_a_destination_that_cannot_be_connected_to_connects(playbooks: Playbooks, hosts: Testbed) -> None:
    make_tree(hosts)
    hosts.block("beta")
    found = measure(playbooks, seconds=6.0).expect_success().result("Measure")
    assert found["link"]["connect"] == "pull"
    assert found["link"]["forth"]["one_stream"] > 0
    assert leftovers.snapshot(hosts, "beta") is not None


@pytest.mark.long
def test_a_running_transfer_is_named_and_goes_on(playbooks: Playbooks, hosts: Testbed) -> None:
    make_tree(hosts)
    ends = {"src_host": "alpha", "src": "/data/tree/", "dest_host": "beta", "dest": "/data/out/"}
    slow = {"longhaul.fleet.transfer": {**ends, "method": "stream", "bwlimit": "2M", "compress": "none"}}
    running = playbooks.start([{"name": "Transfer", **slow}], hosts="alpha")
    wait_for(lambda: any((hosts.root("beta") / "data").glob("out/.longhaul-*")))
    refused = measure(playbooks)
    assert refused.rc != 0
    assert "is running on this host" in refused.failures[0]
    assert "transfer_control" in refused.failures[0]
    running.wait().expect_success()


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"seconds": 1.0}, "too little to measure"), ({"src": "/data/none"}, "there is no /data/none")],
)
def test_what_cannot_be_measured_is_refused(
    playbooks: Playbooks, hosts: Testbed, options: dict[str, Any], reason: str
) -> None:
    before = {host: leftovers.snapshot(hosts, host) for host in hosts.hosts}
    refused = measure(playbooks, **options)
    assert reason in refused.failures[0]
    assert {host: leftovers.snapshot(hosts, host) for host in hosts.hosts} == before
