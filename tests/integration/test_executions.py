# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How often a transfer runs something on a host, what it sends there, and that a memory out of date decides nothing."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.bench.counters import parse_net_dev
from ansible_collections.longhaul.fleet.tests.bench.fleet import executions
from ansible_collections.longhaul.fleet.tests.support.backups import Backups
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.support.refusal import small_tree
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

OPTIONS = {"src_host": "alpha", "src": "/data/src/", "dest_host": "beta", "dest": "/data/out/"}
LARGE = 6 << 20  # three seconds at the limit of 2M
REQUIRETTY = "Defaults:mover requiretty\n"


def task(name: str = "Transfer", **options: Any) -> dict[str, Any]:
    return {"name": name, "longhaul.fleet.transfer": {**OPTIONS, **options}}


def shell(name: str, host: str, command: str) -> dict[str, Any]:
    return {"name": name, "ansible.builtin.raw": command, "delegate_to": host}


def transfer(playbooks: Playbooks, *flags: str, on: str = "localhost", **options: Any) -> Run:
    return several(playbooks, task(**options), flags=flags, on=on)


def several(playbooks: Playbooks, *tasks: dict[str, Any], flags: tuple[str, ...] = (), on: str = "localhost") -> Run:
    """Run tasks in one playbook. Each is a process of its own, which knows of the others what the memory tells it."""
    return playbooks.run(list(tasks), "-vvv", *flags, hosts=on)


def changed(ran: Run) -> bool:
    return bool(ran.expect_success().result("Transfer")["changed"])


def assert_same(bed: Testbed) -> None:
    assert differences(bed.root("alpha") / "data/src", bed.root("beta") / "data/out") == []
    for host in bed.hosts:
        assert not list((bed.root(host) / "var/lib/longhaul").glob("*")), f"something is left on {host}"


@pytest.mark.parametrize(
    "options",
    [{"sync": "data"}, *rarely({"encryption": "none", "method": "stream"}, {"connect": "pull", "sync": "data"})],
    ids=str,
)
def test_a_transfer_with_nothing_to_do_needs_three_executions(
    hosts: Testbed, playbooks: Playbooks, options: dict[str, Any]
) -> None:
    small_tree(hosts)
    assert changed(transfer(playbooks, **options))
    add = shell("Add", "alpha", "echo more >/data/src/more")
    run = several(playbooks, task("Again", **options), add, task("More", **options)).expect_success()
    assert not run.result("Again")["changed"] and run.result("Again")["verified"] == "size"
    assert executions(run.said_of("Again")) == 3, run.output
    # A change of what is in the trees needs no more of them.
    assert run.result("More")["changed"] and executions(run.said_of("More")) == 3, run.output
    for name in ("Again", "More"):
        assert ("sync" in run.result(name)["phases"]) == (options.get("sync") == "data")
    assert_same(hosts)


def test_a_transfer_without_a_comparison_waits_for_the_disk_where_it_is_told_to(
    hosts: Testbed, playbooks: Playbooks
) -> None:
    small_tree(hosts)
    waits = task("Waits", verify="none", sync="data", connect="pull")  # the destination's last execution is another
    run = several(playbooks, task(verify="none", sync="data"), waits, task("Not", verify="none")).expect_success()
    assert [name for name in ("Transfer", "Waits", "Not") if "sync" in run.result(name)["phases"]] == [
        "Transfer",
        "Waits",
    ]
    assert min(run.result("Waits")["phases"].values()) >= 0
    assert_same(hosts)


def test_the_check_mode_needs_three_executions(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    transfer(playbooks)
    (hosts.root("alpha") / "data/src/more").write_text("more")
    predicted = transfer(playbooks, "--check")
    assert changed(predicted) and executions(predicted.output) == 3
    assert not (hosts.root("beta") / "data/out/more").exists()


CHANGES = {  # on which host, and by which command
    "destination replaced": ("beta", "mv /data/out /data/aside; mkdir /data/out; printf other >/data/out/other"),
    "destination gone": ("beta", "rm -rf /data/out"),
    "source replaced": ("alpha", "mv /data/src /data/aside; mkdir /data/src; printf other >/data/src/other"),
    "source empty": ("alpha", "rm -rf /data/src/*"),
}


@pytest.mark.long
@pytest.mark.parametrize(
    "change", ["destination replaced", "source empty", *rarely("destination gone", "source replaced")]
)
def test_what_is_no_longer_as_remembered_is_planned_anew(hosts: Testbed, playbooks: Playbooks, change: str) -> None:
    small_tree(hosts)
    deletes = {"delete": True} if "source" in change else {}
    tasks = [task("First", **deletes), shell("Change", *CHANGES[change]), task("Then", **deletes)]
    if change == "destination replaced":
        tasks += [shell("Look", "beta", "cat /data/out/other && rm /data/out/other"), task("Last")]
    run = several(playbooks, *tasks)
    if change == "source empty":
        (refused,) = run.failures
        assert "is empty, and delete would remove" in refused, run.output
        return
    run.expect_success()
    assert run.result("Then")["changed"] and executions(run.said_of("Then")) > 3, run.output
    if change == "destination replaced":
        assert run.result("Look")["stdout_lines"][-1] == "other"  # behind what a login says
    assert_same(hosts)


@pytest.mark.long
def test_a_running_transfer_is_attached_to_although_the_pair_is_remembered(
    hosts: Testbed, playbooks: Playbooks
) -> None:
    small_tree(hosts)
    limited = {"bwlimit": "256K"}
    transfer(playbooks, **limited)
    (hosts.root("alpha") / "data/src/large").write_bytes(os.urandom(5 << 20))
    started = transfer(playbooks, wait=False, **limited)
    assert started.expect_success().result("Transfer")["state"] == "running"
    attached = transfer(playbooks, **limited).expect_success()
    assert attached.result("Transfer")["attached"]
    assert_same(hosts)


def test_the_engine_is_sent_once(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    transfer(playbooks)

    def received() -> int:
        """Run a transfer, and return the bytes that the destination received from Ansible meanwhile."""
        counted = Path(f"/proc/{hosts.pid('beta')}/net/dev")
        before = parse_net_dev(counted.read_text(), "eth0").count
        transfer(playbooks).expect_success()
        return parse_net_dev(counted.read_text(), "eth0").count - before

    by_digest = received()
    for path in _memory(playbooks).glob("host-*.json"):
        path.unlink()
    sent = received()
    assert sent > by_digest + 200_000 and received() < by_digest + 50_000, (by_digest, sent)


def test_where_the_control_node_can_remember_nothing_all_goes_on(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    home = playbooks.folder / "ansible-home"
    home.mkdir()
    (home / "longhaul").touch()
    ran = several(playbooks, task("First"), task("Again")).expect_success()
    assert not ran.result("Again")["changed"] and executions(ran.said_of("Again")) == 5, ran.output
    assert_same(hosts)


@pytest.mark.long
def test_a_loop_over_transfers_names_the_connection_otherwise(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    loop = {**task(dest="/data/{{ item }}/"), "loop": [1, 2, 3]}
    playbooks.run([loop], hosts="beta").expect_success()
    assert differences(hosts.root("alpha") / "data/src", hosts.root("beta") / "data/3") == []


def unset(hosts: Testbed, playbooks: Playbooks, user: str = "root") -> None:
    """Have an inventory that says nothing about pipelining."""
    playbooks.inventory = hosts.inventory(playbooks.folder / "unset.yml", user=user)


def staged(ran: Run) -> Counter[str]:
    """Return how often a module was put into a file on a host."""
    return Counter(re.findall(r"^<([^>]*)> PUT ", ran.output, re.MULTILINE))


@pytest.mark.long
def test_pipelining_is_used_where_nobody_says_anything(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    unset(hosts, playbooks)
    plays = [{"hosts": on, "gather_facts": False, "tasks": [task()]} for on in ("localhost", "beta")]
    assert not staged(playbooks.run(plays, "-vvv").expect_success())
    off = hosts.inventory(playbooks.folder / "off.yml", extra={"ansible_pipelining": False})
    playbooks.inventory = off
    assert len(staged(transfer(playbooks).expect_success())) == 2
    playbooks.inventory = playbooks.folder / "unset.yml"
    (playbooks.folder / "ansible.cfg").write_text("[connection]\npipelining = false\n")
    assert len(staged(transfer(playbooks).expect_success())) == 2
    (playbooks.folder / "ansible.cfg").write_text("")
    told = {**task(), "vars": {"ansible_pipelining": False}}
    assert staged(playbooks.run([told], "-vvv", hosts="beta").expect_success())


@pytest.mark.long
def test_a_sudo_that_wants_a_terminal_is_tried_once(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    unset(hosts, playbooks, user="mover")
    sudoers = hosts.root("beta") / "etc/sudoers.d/requiretty"
    sudoers.write_text(REQUIRETTY)
    sudoers.chmod(0o440)
    try:
        first = transfer(playbooks)
        assert changed(first) and set(staged(first)) == {hosts.address("beta")}
        records = [json.loads(path.read_text()) for path in _memory(playbooks).glob("host-*.json")]
        assert sum("pipelining_fails" in record for record in records) == 1
        again = transfer(playbooks)
        assert not changed(again) and set(staged(again)) == {hosts.address("beta")}
        assert executions(again.output) == 3
    finally:
        sudoers.unlink()
    assert_same(hosts)


def _memory(playbooks: Playbooks) -> Path:
    return playbooks.folder / "ansible-home/longhaul"


def start_and_let_end(bed: Testbed, playbooks: Playbooks, driver: str, **options: Any) -> None:
    """Start a transfer that takes some seconds without waiting for it, and wait until it has ended on its own."""
    small_tree(bed)
    (bed.root("alpha") / "data/src/large").write_bytes(os.urandom(LARGE))
    started = transfer(playbooks, wait=False, **options).expect_success().result("Transfer")
    assert started["state"] == "running"
    (status,) = (bed.root(driver) / "var/lib/longhaul" / started["transfer_id"]).glob("*/status.json")
    until = time.monotonic() + 120
    while json.loads(status.read_text())["state"] == "running" and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(1)  # it has spoken its last word, and ends


@pytest.mark.long
@pytest.mark.parametrize(("connect", "driver"), [("push", "alpha"), *rarely(("pull", "beta"))])
def test_to_collect_a_transfer_that_has_ended_is_a_look(
    hosts: Testbed, playbooks: Playbooks, connect: str, driver: str
) -> None:
    options = {"connect": connect, "verify": "none", "bwlimit": "2M"}
    start_and_let_end(hosts, playbooks, driver, **options)
    (hosts.root("alpha") / "data/src/later").write_text("later")
    collected = transfer(playbooks, collect=True, **options)
    assert changed(collected)
    result = collected.result("Transfer")
    assert result["attached"] and result["state"] == "finished" and result["bytes_sent"] >= LARGE
    assert executions(collected.output) == 4  # what is there, and its end, on each host
    assert not (hosts.root("beta") / "data/out/later").exists()
    # With nothing to collect it is a transfer as any other.
    assert changed(transfer(playbooks, collect=True, **options))
    assert_same(hosts)


@pytest.mark.long
def test_what_changed_since_does_not_fail_the_comparison_of_what_is_collected(
    hosts: Testbed, playbooks: Playbooks
) -> None:
    start_and_let_end(hosts, playbooks, "alpha", bwlimit="2M")
    (hosts.root("alpha") / "data/src/file").write_bytes(b"changed since")
    result = transfer(playbooks, collect=True, bwlimit="2M").expect_success().result("Transfer")
    assert result["attached"] and result["unstable"] == 1


@pytest.mark.long
def test_without_collect_what_changed_since_is_sent(hosts: Testbed, playbooks: Playbooks) -> None:
    start_and_let_end(hosts, playbooks, "alpha", bwlimit="2M")
    (hosts.root("alpha") / "data/src/later").write_text("later")
    result = transfer(playbooks, bwlimit="2M").expect_success().result("Transfer")
    assert not result["attached"] and result["bytes_sent"] >= LARGE  # with what the first run did
    assert_same(hosts)


def test_a_backup_in_which_nothing_changed_needs_few_executions_and_tasks(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    backups = Backups(hosts, playbooks)
    backups.run()
    again = backups.run("-vvv")
    assert executions(again.output) == 5, again.output
    # However many there are, one task makes them all, one reports, one publishes figures, and one fails if it must. The
    # others include roles and files, read variables and keep results.
    done = [one.task.rpartition(" : ")[2] for one in again.results if one.status == "ok"]
    assert {"Make the backups", "Report how the backups are"} < set(done) and len(done) == 10, done
    assert len(backups.snapshots()) == 2
    (lease,) = (hosts.root("beta") / "var/lib/longhaul/leases").glob("*.json")
    assert json.loads(lease.read_text())["released"], "another control node may have it at once, at no execution"


def test_a_restore_of_one_file_needs_few_executions_and_tasks(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    backups = Backups(hosts, playbooks)
    backups.run()
    variables: dict[str, Any] = {"backup_jobs": backups.jobs, "restore_path": "file"}
    restored = playbooks.run("longhaul.fleet.restore", "-vvv", **variables).expect_success()
    # The list with the check, and the source; its own place, which is taken, and the one beside it; the start of both
    # ends, with the comparison of the source; that of the destination; the entry in the history.
    assert executions(restored.output) == 6, restored.output
    done = [one.task for one in restored.results if one.status == "ok"]
    assert len(done) == 4 and done.count("longhaul.fleet.restore : Restore") == 2, done
