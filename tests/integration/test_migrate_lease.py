# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two control nodes with one list of jobs: they do not collide, and one goes on where the other was killed."""

from __future__ import annotations

import json
import re
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.integration import test_migrate
from ansible_collections.longhaul.fleet.tests.integration.test_migrate import Migration, trees
from ansible_collections.longhaul.fleet.tests.support import compare
from ansible_collections.longhaul.fleet.tests.support.faults import MIB, wait_for
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Running
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

migration = test_migrate.migration  # its fixture

UNTIL_GO = "; for i in $(seq 1500); do test -e /data/go && break; sleep 0.2; done"
SHORT = 25.0  # seconds that a lease lives, instead of a quarter of an hour


@pytest.fixture(autouse=True)
def killed(playbooks: Playbooks) -> None:
    """Have each run be a start of its own: what is left of a control node that is killed is what is tested."""
    playbooks.prepared = None


@pytest.fixture(name="other")
def _other(hosts: Testbed, migration: Migration, tmp_path: Path) -> Migration:
    """The same jobs driven by another control node: with a copy of the inventory, and a state folder of its own."""
    folder = tmp_path / "other"
    folder.mkdir()
    inventory = folder / "inventory.yml"
    shutil.copy(migration.playbooks.inventory, inventory)
    made = Migration(hosts, Playbooks(inventory, folder, migration.playbooks.collections))
    made.jobs = migration.jobs
    for one in (migration, made):
        one.options.update(migrate_preflight_predict=False, __migrate_lease_seconds=SHORT)
    return made


def lease(bed: Testbed) -> dict[str, Any]:
    """Return the only lease at the destination."""
    (path,) = (bed.root("beta") / "var/lib/longhaul/leases").glob("*.json")
    return json.loads(path.read_text())


def kill(running: Running) -> None:
    """Kill a control node, and let go of its connections."""
    assert running.process.poll() is None, running.output
    running.kill(signal.SIGKILL)
    running.process.wait()


def log_of(bed: Testbed, host: str = "alpha") -> list[str]:
    """Return what hooks have written."""
    path = bed.root(host) / "data/hooks"
    return path.read_text().split() if path.exists() else []


def hook(word: str, host: str = "source", more: str = "") -> dict[str, Any]:
    """Return a hook that writes a word down."""
    return {"name": word, "host": host, "command": ["/bin/sh", "-c", f"echo {word} >> /data/hooks{more}"]}


def state_of(migration: Migration) -> dict[str, Any]:
    path = migration.folder / "state/data.json"
    return json.loads(path.read_text()) if path.exists() else {}


@pytest.mark.long
def test_what_a_lease_costs_a_run_that_finds_nothing_to_do(hosts: Testbed, migration: Migration) -> None:
    for _number in range(2):  # from then on it is known what the hosts have
        migration.run(migrate_phase="sync")
    again = migration.run("-vvv", migrate_phase="sync")
    asked = re.findall(r"longhaul on (\w+: .*)", again.output)
    asked = [one for one in asked if "poll" not in one]  # as a machine under load needs
    # What both hosts have, the transfer as always, and one to release it, for all jobs of a destination.
    assert len(asked) == 2 + 3 + 1 and asked[-1] == "beta: lease", asked
    assert all(one.startswith("beta: lease") for one in asked[2:] if one.startswith("beta")), asked
    assert lease(hosts)["released"]


@pytest.mark.long
def test_another_control_node_waits_and_goes_on_where_the_first_was_killed(
    hosts: Testbed, migration: Migration, other: Migration
) -> None:
    source, dest = trees(hosts)
    make_big_files(source / "more", 60 * MIB, count=3)
    size = sum(path.stat().st_size for path in (source / "more").iterdir())
    migration.jobs[0].update(method="stream", bwlimit="256K")  # four minutes, unless it is told otherwise
    first = migration.start(migrate_phase="sync")
    wait_for((dest / "more").exists, seconds=90)

    def expect_refusal() -> None:
        said = other.run_into_failure(migrate_phase="cutover").replace("\n", " ")
        assert f"{holder['who']} has been working on job data for" in said and "as beta says" in said, said
        assert "Nothing was done. Wait, or stop that run" in said and "migrate_takeover=true only if" in said, said
        assert "fleet_status shows it" in said
        assert not other.report()["phases"] and lease(hosts)["holder"] == holder["holder"]

    # As long as it lives, it keeps its lease, however long that takes.
    holder = lease(hosts)
    assert not holder["firm"]
    expect_refusal()
    predicted = other.run("--check", migrate_phase="sync", migrate_preflight_predict=False)
    assert f"{holder['who']} has been working on job data" in predicted.output.replace("\n", " ")
    wait_for(lambda: lease(hosts)["renewed"] > holder["renewed"], seconds=2 * SHORT)
    said = migration.run_into_failure(migrate_phase="sync").replace("\n", " ")
    assert f"another run (process {first.process.pid}) is working on this job at this moment" in said, said

    # Killed, it has it until it has expired by the clock of the destination.
    kill(first)
    killed = time.monotonic()
    expect_refusal()
    assert log_of(hosts) == []
    time.sleep(max(0.0, killed + SHORT - time.monotonic()))
    second = other.start(migrate_phase="sync")
    wait_for(lambda: "attached to the running transfer" in second.output, seconds=90)
    faster = {"longhaul.fleet.transfer_control": {"all": True, "bwlimit": "200M"}}
    other.playbooks.run([faster], hosts="alpha").expect_success()
    taken = second.wait().expect_success()
    assert lease(hosts)["holder"] != holder["holder"] and lease(hosts)["released"]
    said = taken.output.replace("\n", " ")
    assert f"taken over from {holder['who']}" in said and "no sign of life" in said
    seed = other.report()["phases"]["seed"]
    assert seed["attached"] and seed["bytes_sent"] >= size  # the transfer went on all the time: nothing was sent twice
    assert compare.differences(source, dest) == []

    # The first one finds nothing to do, and the lease, which was released, is its own again.
    again = migration.run(migrate_phase="sync")
    assert not any(one["bytes_sent"] for one in migration.report()["phases"]["sync"]["passes"])
    assert not migration.report()["phases"]["seed"]["bytes_sent"], again.output
    assert lease(hosts)["holder"] == holder["holder"] and lease(hosts)["released"]


@pytest.mark.long
def test_after_the_first_hook_only_a_person_decides(hosts: Testbed, migration: Migration, other: Migration) -> None:
    source, dest = trees(hosts)
    hanging = hook("stop", more=UNTIL_GO)
    migration.jobs[0].update(before_cutover=[hanging], after_cutover=[hook("switch")], cutover_failed=[hook("back")])
    first = migration.start()
    wait_for(lambda: log_of(hosts) == ["stop"], seconds=120)
    # Recorded before it ran.
    assert state_of(migration)["hook"]["name"] == "stop" and state_of(migration)["quiesced"]
    assert lease(hosts)["firm"]
    kill(first)
    (source.parent / "go").touch()
    time.sleep(SHORT + 1)

    said = other.run_into_failure().replace("\n", " ")
    assert "has been working on job data" in said and "the source may be stopped" in said, said
    assert (log_of(hosts) == ["stop"] and not dest.exists()) or not other.report()["phases"]
    taken = other.run(migrate_takeover=True)
    assert "as migrate_takeover says. Hooks of its cutover had begun there" in taken.output.replace("\n", " ")
    assert log_of(hosts) == ["stop", "stop", "switch"]
    assert other.report()["switch"]["done"] and compare.differences(source, dest) == []
    assert lease(hosts)["released"] and not lease(hosts)["firm"]

    # What the first one believes is not what is so.
    said = migration.run_into_failure().replace("\n", " ")
    assert "holds a record that job data was switched over" in said, said
    assert log_of(hosts) == ["stop", "stop", "switch"]  # above all, nothing brings the source back


def test_a_control_node_that_was_only_away_notices_that_it_lost_the_job(
    hosts: Testbed, migration: Migration, other: Migration
) -> None:
    waiting = hook("stop", more=UNTIL_GO)
    migration.jobs[0].update(
        before_cutover=[waiting, hook("second")], after_cutover=[hook("switch")], cutover_failed=[hook("back")]
    )
    first = migration.start()
    wait_for(lambda: log_of(hosts) == ["stop"], seconds=120)
    other.run(migrate_phase="sync", migrate_takeover=True)
    assert lease(hosts)["firm"]  # the source is still stopped
    (hosts.root("alpha") / "data/go").touch()
    run = first.wait()
    said = run.failures[-1].replace("\n", " ")
    assert run.rc and "has taken over job data, as beta says, so this run does nothing more for it" in said, said
    assert log_of(hosts) == ["stop"]  # neither the next hook nor those that bring the source back
    assert state_of(migration)["hooks"][-1]["name"] == "stop" and "hook" not in state_of(migration)
    assert lease(hosts)["holder"] != state_of(migration) and not lease(hosts)["released"]


@pytest.mark.long
@pytest.mark.parametrize("phase", ["preflight", "seed", "switch"])
def test_a_rerun_of_a_killed_one_goes_on_without_being_told_anything(
    hosts: Testbed, migration: Migration, phase: str
) -> None:
    source, dest = trees(hosts)
    make_big_files(source / "more", 12 * MIB, count=3)
    hanging = hook("switch", more=UNTIL_GO)
    migration.jobs[0].update(bwlimit="1M", before_cutover=[hook("stop")], after_cutover=[hanging])
    first = migration.start(migrate_preflight_predict=False)
    if phase == "preflight":
        wait_for((migration.folder / "state/.claims").exists, seconds=60)
    elif phase == "seed":
        wait_for((dest / "more").exists, seconds=90)
    else:
        wait_for(lambda: log_of(hosts) == ["stop", "switch"], seconds=240)
        assert state_of(migration)["hook"]["name"] == "switch" and state_of(migration)["switch"]["hooks"] == []
    kill(first)
    (source.parent / "go").touch()
    again = migration.run(migrate_preflight_predict=False)
    if phase == "switch":
        said = again.output.replace("\n", " ") + json.dumps(migration.report()["warnings"])
        assert "the hook switch of after_cutover began on alpha" in said
    assert log_of(hosts) == (["stop", "switch", "switch"] if phase == "switch" else ["stop", "switch"])
    assert migration.report()["switch"]["done"] and compare.differences(source, dest) == []
    assert lease(hosts)["released"]


@pytest.mark.long
def test_a_hook_longer_than_a_lease_keeps_it_with_one_fork(hosts: Testbed, migration: Migration) -> None:
    migration.options.update(migrate_preflight_predict=False, __migrate_lease_seconds=SHORT)
    migration.jobs[0].update(before_cutover=[hook("stop", more=UNTIL_GO)], after_cutover=[hook("switch")])
    running = migration.start("--forks", "1")
    wait_for(lambda: log_of(hosts) == ["stop"], seconds=120)
    begun, renewed = time.monotonic(), [lease(hosts)["renewed"]]
    while time.monotonic() < begun + 2 * SHORT:
        found = lease(hosts)
        assert not found["released"]
        renewed += [found["renewed"]] if found["renewed"] != renewed[-1] else []
        time.sleep(0.2)
    gaps = [later - sooner for sooner, later in zip(renewed, renewed[1:])]
    assert len(gaps) >= 2 and max(gaps) < SHORT, renewed
    (hosts.root("alpha") / "data/go").touch()
    running.wait().expect_success()
    assert log_of(hosts) == ["stop", "switch"] and migration.report()["switch"]["done"]
