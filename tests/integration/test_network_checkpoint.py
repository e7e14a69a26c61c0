# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The automatic rollback: on a host of its own, with nobody there to help it."""

from __future__ import annotations

import json
import os
import stat
import time
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

MODULE = "longhaul.fleet.network_checkpoint"
IGNORED = {"ignore_errors": True}
FILE, NEW = "/etc/lh-net/eth1.conf", "/etc/lh-net/made/later.conf"


@pytest.fixture
def host(hosts: Testbed) -> Iterator[Testbed]:
    """alpha with a file of a network's manager, and its link as it was afterwards."""
    hosts.exec("alpha", ["rm", "-rf", "/etc/lh-net", "/var/lib/longhaul-network"])
    hosts.exec("alpha", ["mkdir", "/etc/lh-net"])
    hosts.exec("alpha", ["sh", "-c", f"echo mtu 1500 >{FILE}; chmod 640 {FILE}; chown 7:8 {FILE}"])
    hosts.exec("alpha", ["setfacl", "-m", "u:9:r", FILE])
    yield hosts
    hosts.exec("alpha", ["rm", "-rf", "/etc/lh-net", "/var/lib/longhaul-network"])
    hosts.exec("alpha", ["ip", "link", "set", "eth1", "up", "mtu", "1500"])
    for pid in (process.pid for process in hosts.processes("alpha") if "checkpoint.pyz" in " ".join(process.argv)):
        hosts.kill("alpha", pid)


def task(state: str, **options: Any) -> dict[str, Any]:
    return {"name": state, MODULE: {"state": state, **options}}


def arm(timeout: int = 60, **more: Any) -> dict[str, Any]:
    return task("armed", paths=[FILE, NEW], links=["eth1"], made=["lhmade"], timeout=timeout, **more)


def state_of(bed: Testbed) -> dict[str, Any]:
    """Everything that a rollback has to bring back."""
    (link,) = json.loads(bed.exec("alpha", ["ip", "-j", "addr", "show", "dev", "eth1"]).stdout)
    path = bed.root("alpha") / FILE.lstrip("/")
    found = path.stat()
    return {
        "mtu": link["mtu"],
        "addresses": sorted(one["local"] for one in link["addr_info"] if one["scope"] == "global"),
        "routes": sorted(bed.exec("alpha", ["ip", "route", "show", "dev", "eth1"]).stdout.splitlines()),
        "routes6": sorted(bed.exec("alpha", ["ip", "-6", "route", "show", "dev", "eth1"]).stdout.splitlines()),
        "up": "UP" in link["flags"],
        "file": (path.read_text(), stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, found.st_mtime_ns),
        "acl": bed.exec("alpha", ["getfacl", "-p", FILE]).stdout,
        "folder": sorted(os.listdir(path.parent)),
        "links": sorted(one["ifname"] for one in json.loads(bed.exec("alpha", ["ip", "-j", "link"]).stdout)),
    }


def break_it(bed: Testbed) -> None:
    """Change everything that can be changed."""
    bed.exec("alpha", ["sh", "-c", f"echo mtu 576 >{FILE}; chmod 600 {FILE}; mkdir /etc/lh-net/made; echo x >{NEW}"])
    bed.exec("alpha", ["ip", "link", "add", "lhmade", "type", "bridge"])
    bed.exec("alpha", ["ip", "link", "set", "eth1", "mtu", "1400"])
    bed.exec("alpha", ["ip", "address", "flush", "dev", "eth1"])
    bed.exec("alpha", ["ip", "address", "add", "192.0.2.77/24", "dev", "eth1"])
    bed.exec("alpha", ["ip", "link", "set", "eth1", "down"])


def last(bed: Testbed) -> dict[str, Any]:
    path = bed.root("alpha") / "var/lib/longhaul-network/network.last.json"
    return json.loads(path.read_text()) if path.exists() else {}


def run(playbooks: Playbooks, *tasks: dict[str, Any], **more: Any) -> Run:
    return playbooks.run(list(tasks), hosts="alpha", **more)


@pytest.mark.smoke
def test_it_reverts_by_itself_when_nobody_confirms(host: Testbed, playbooks: Playbooks) -> None:
    host.exec("alpha", ["ip", "route", "add", "198.51.100.0/24", "via", host.data_address("beta"), "dev", "eth1"])
    before = state_of(host)
    armed = run(playbooks, arm(timeout=6)).expect_success().result("armed")
    assert armed["changed"] and armed["armed"] and armed["timer"]["alive"]
    begun = time.time()
    break_it(host)
    assert state_of(host) != before
    wait_for(lambda: bool(last(host)), seconds=20)
    assert last(host)["outcome"] == "reverted" and last(host)["by"] == "timer" and last(host)["errors"] == []
    assert time.time() - begun < 12
    assert state_of(host) == before
    wait_for(lambda: host.processes("alpha") == [], seconds=5)
    # what is left is the record of it, and a later confirmation says so
    late = run(playbooks, task("confirmed"))
    assert late.rc and "was reverted by its own timer" in late.failures[0]


@pytest.mark.long
def test_the_death_of_the_controller_changes_nothing(host: Testbed, playbooks: Playbooks) -> None:
    before = state_of(host)
    tasks = [
        arm(timeout=8),
        {"name": "Break", "ansible.builtin.command": "ip link set eth1 mtu 1300"},
        {"name": "Think", "ansible.builtin.pause": {"seconds": 100}},
    ]
    running = playbooks.start(tasks, hosts="alpha")
    wait_for(lambda: state_of(host)["mtu"] == 1300, seconds=30)
    running.kill()
    running.process.wait()
    wait_for(lambda: state_of(host)["mtu"] == 1500, seconds=20)
    wait_for(lambda: bool(last(host)), seconds=20)
    assert state_of(host) == before


def test_confirmed_it_stays(host: Testbed, playbooks: Playbooks) -> None:
    change = {"name": "Change", "ansible.builtin.command": "ip link set eth1 mtu 1400"}
    done = run(playbooks, arm(timeout=12), change, task("confirmed"), task("query")).expect_success()
    assert done.result("confirmed")["changed"] and not done.result("query")["armed"]
    time.sleep(12)  # when it was confirmed the timer had less than that to go
    assert state_of(host)["mtu"] == 1400 and host.processes("alpha") == []
    assert not run(playbooks, task("confirmed")).expect_success().result("confirmed")["changed"]
    assert not (host.root("alpha") / "etc/cron.d/longhaul-revert-network").exists()


def test_it_is_idempotent(host: Testbed, playbooks: Playbooks) -> None:
    change = {"name": "Change", "ansible.builtin.command": "ip link set eth1 mtu 1400"}
    look = {"name": "Look", "ansible.builtin.command": "cat /sys/class/net/eth1/mtu"}
    once = {**task("reverted"), "name": "reverted once"}
    tasks = [arm(), task("query"), change, {**arm(), "name": "again"}, once, look, task("reverted")]
    done = run(playbooks, *tasks).expect_success()
    first, again = done.result("armed"), done.result("again")
    assert first["changed"] and not again["changed"]
    assert again["seconds_left"] < first["seconds_left"]
    # it keeps the first state, not the one that is not proven
    assert done.result("reverted once")["changed"] and done.result("Look")["stdout"] == "1500"
    assert not done.result("reverted")["changed"]


def test_reverting_at_once_brings_everything_back(host: Testbed, playbooks: Playbooks) -> None:
    before = state_of(host)
    run(playbooks, arm()).expect_success()
    break_it(host)
    begun = time.monotonic()
    done = run(playbooks, task("reverted")).expect_success().result("reverted")
    assert done["changed"] and done["last"]["by"] == "request" and time.monotonic() - begun < 15
    assert state_of(host) == before


def test_check_mode_predicts_and_leaves_nothing(host: Testbed, playbooks: Playbooks) -> None:
    checked = playbooks.run([arm()], "--check", "--diff", hosts="alpha").expect_success()
    assert checked.result("armed")["changed"] and "checkpoint: armed" in checked.output
    assert not (host.root("alpha") / "var/lib/longhaul-network").exists()
    assert (
        not playbooks.run([task("reverted")], "--check", hosts="alpha").expect_success().result("reverted")["changed"]
    )


def test_two_of_them(host: Testbed, playbooks: Playbooks) -> None:
    other = task("armed", paths=["/etc/hosts"], links=["lo"])
    shared = task("armed", name="second", paths=[FILE], links=["lo"])
    second = {**task("armed", name="second", paths=["/etc/hosts"], links=["lo"]), "name": "both"}
    refused = ({**other, "name": "other", **IGNORED}, {**shared, "name": "shared", **IGNORED})
    done = run(playbooks, arm(), *refused, second, task("reverted", name="second"), task("reverted")).expect_success()
    assert [one.task for one in done.results if one.status == "ignored"] == ["other", "shared"]
    assert "is armed already, for other paths" in done.result("other")["msg"]
    assert f"keeps {FILE} already" in done.result("shared")["msg"]
    assert done.result("both")["all_armed"] == ["network", "second"]


@pytest.mark.long
def test_a_timer_that_was_killed_is_started_again(host: Testbed, playbooks: Playbooks) -> None:
    run(playbooks, arm(timeout=5)).expect_success()
    (waiting,) = [process for process in host.processes("alpha") if "wait" in process.argv]
    host.kill("alpha", waiting)
    host.exec("alpha", ["ip", "link", "set", "eth1", "mtu", "1400"])
    again = run(playbooks, arm(timeout=5)).expect_success().result("armed")
    assert again["changed"] and again["timer"]["alive"]
    wait_for(lambda: state_of(host)["mtu"] == 1500, seconds=15)


def test_a_boot_before_the_confirmation_reverts(host: Testbed, playbooks: Playbooks) -> None:
    before = state_of(host)
    armed = run(playbooks, arm(timeout=600)).expect_success().result("armed")
    assert armed["survives_reboot"] == "cron"  # the hosts of the testbed run no systemd
    break_it(host)
    host.crash("alpha")
    host.exec("alpha", ["ip", "link", "set", "eth1", "up"])
    line = (host.root("alpha") / "etc/cron.d/longhaul-revert-network").read_text()
    assert line.startswith("@reboot root ")
    host.exec("alpha", line.split()[2:])  # what cron would do
    assert last(host)["by"] == "boot" and state_of(host) == before
    assert not (host.root("alpha") / "etc/cron.d/longhaul-revert-network").exists()


BAD: list[tuple[dict[str, Any], str]] = [
    ({"paths": ["relative"]}, "paths must be absolute"),
    ({"name": "no/name"}, "no name for a checkpoint"),
    ({"timeout": 0}, "at least one second"),
    ({"paths": ["/dev/null"]}, "neither a file, a folder nor a symlink"),
]


def test_bad_input(host: Testbed, playbooks: Playbooks) -> None:
    bad = [{**task("armed", **options), "name": said, **IGNORED} for options, said in BAD]
    done = run(playbooks, *bad, {**task("confirmed"), **IGNORED}).expect_success()
    refused = [one.task for one in done.results if one.status == "ignored"]
    assert refused == [*(said for _options, said in BAD), "confirmed"]
    for _options, said in BAD:
        assert said in done.result(said)["msg"], done.output
    assert host.processes("alpha") == []
    assert "no checkpoint network was ever armed" in done.result("confirmed")["msg"]
