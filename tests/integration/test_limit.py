# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A --limit that leaves nothing to do is an error of each playbook: Ansible itself skips all plays, and ends with 0."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support import refusal
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

JOB = {"name": "site", "src_host": "alpha", "src": "/data/src/", "dest_host": "beta", "dest": "/data/dest"}
REPOSITORY = {"host": "beta", "path": "/data/backup"}
BACKUP = {"name": "data", "host": "alpha", "src": "/data/src", "repository": REPOSITORY, "keep": {"last": 1}}
ASKED: dict[str, dict[str, Any]] = {
    "migrate": {"migrate_jobs": [JOB]},
    "verify": {"migrate_jobs": [JOB]},
    "backup": {"backup_jobs": [BACKUP]},
    "audit": {"backup_jobs": [BACKUP]},
    "restore": {"backup_jobs": [BACKUP], "restore_dest": "/data/restored"},
    "tune": {"tune_pairs": [{"src_host": "alpha", "dest_host": "beta"}]},
    "benchmark": {"benchmark_pairs": [{"src_host": "alpha", "dest_host": "beta"}]},
}
ADVICE = {"backup": "backup_only", "audit": "Leave --limit out", "restore": "restore_to"}


@pytest.mark.parametrize("playbook", ASKED)
def test_one_that_leaves_out_the_control_node(hosts: Testbed, playbooks: Playbooks, playbook: str) -> None:
    before = refusal.everything(hosts)
    run = playbooks.run(f"longhaul.fleet.{playbook}", "--limit", "beta", **ASKED[playbook])
    (said,) = run.failures
    assert run.rc and "Nothing was done: --limit beta leaves out localhost" in said, run.output
    assert ADVICE.get(playbook, "Type --limit 'localhost,beta'.") in said
    assert refusal.everything(hosts) == before


@pytest.mark.parametrize(
    ("playbook", "words"),
    [
        ("migrate", "leaves out the destinations of all jobs, beta. Add"),
        ("verify", "leaves out the destinations of all jobs, beta. Add"),
        ("backup", "leaves out hosts of repositories, which run the hooks that are files of tasks. Leave --limit out"),
    ],
)
def test_one_that_leaves_out_the_hosts_that_count(
    hosts: Testbed, playbooks: Playbooks, playbook: str, words: str
) -> None:
    before = refusal.everything(hosts)
    run = playbooks.run(f"longhaul.fleet.{playbook}", "--limit", "localhost,alpha", **ASKED[playbook])
    (said,) = run.failures
    assert run.rc and f"Nothing was done: --limit localhost,alpha {words}" in said, run.output
    assert refusal.everything(hosts) == before


def test_a_restore_to_a_host_that_is_left_out(hosts: Testbed, playbooks: Playbooks) -> None:
    run = playbooks.run("longhaul.fleet.restore", "--limit", "localhost,beta", **ASKED["restore"])
    (said,) = run.failures
    assert run.rc and "leaves out localhost or the host that receives the files. Leave --limit out" in said, run.output
