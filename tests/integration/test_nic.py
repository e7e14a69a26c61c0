# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role nic on real links: a change of the MTU, a black hole, and the way back with nobody there to help."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

ARCHIVES = Path(__file__).resolve().parents[2] / ".cache/archives"
PACKAGES = {"ifup": "ifupdown", "ping": "iputils-ping"}
INTERFACES = "auto lo\niface lo inet loopback\n\niface eth1 inet manual\n\nsource /etc/network/interfaces.d/*\n"
OWN = "/etc/network/interfaces.d/longhaul-nic-eth1"
TIMEOUT = 60  # the shortest that the role takes with the time to reconnect below


@pytest.fixture(scope="module")
def archives() -> list[Path]:
    """What the hosts need and this machine may not have: a network's manager is not to be installed on it.

    They are kept, as every process of pytest would fetch them again.
    """
    missing = [package for program, package in PACKAGES.items() if not shutil.which(program)]
    ARCHIVES.mkdir(parents=True, exist_ok=True)
    for package in missing:
        if not list(ARCHIVES.glob(f"{package}_*.deb")):
            with tempfile.TemporaryDirectory(dir=ARCHIVES) as folder:
                subprocess.run(["apt-get", "download", package], cwd=folder, check=True, capture_output=True)
                for archive in Path(folder).glob("*.deb"):
                    archive.replace(ARCHIVES / archive.name)
    return sorted(path for package in missing for path in ARCHIVES.glob(f"{package}_*.deb"))


@pytest.fixture
def pair(hosts: Testbed, archives: list[Path]) -> Iterator[Testbed]:
    """alpha and beta, whose links are managed by ifupdown; the wire between them takes 1500 bytes."""
    for name in hosts.hosts:
        for archive in archives:
            _unpack(archive, hosts.root(name))
        hosts.exec(name, ["mkdir", "-p", "/etc/network/interfaces.d", "/run/network"])
        hosts.exec(name, ["tee", "/etc/network/interfaces"], input=INTERFACES)
    yield hosts
    for name in hosts.hosts:
        hosts.exec(name, ["sh", "-c", "rm -rf /etc/network /var/lib/longhaul-network"])
        hosts.exec(name, ["ip", "link", "set", "eth1", "mtu", "1500"])
    hosts.set_wire_mtu(1500)


def _unpack(archive: Path, root: Path) -> None:
    """Put a package's files into a host. /bin is a symlink there, and a folder in the package."""
    opened = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(archive)], check=True, capture_output=True).stdout
    tar = ["tar", "-x", "--keep-directory-symlink", "-C", str(root)]
    subprocess.run(tar, input=opened, check=True)


def mtu_of(bed: Testbed, host: str = "alpha", link: str = "eth1") -> int:
    found: int = json.loads(bed.exec(host, ["ip", "-j", "link", "show", "dev", link]).stdout)[0]["mtu"]
    return found


def play(bed: Testbed, hosts: str = "all", links: Any = None, **variables: Any) -> list[dict[str, Any]]:
    """Return a play that runs the role on a pair whose hosts are each other's peers."""
    names = "['alpha', 'beta'] | difference([inventory_hostname]) | first"
    peers = [
        {"host": f"{{{{ {names} }}}}", "address": f"{{{{ hostvars[{names}].{variable} }}}}"}
        for variable in ("four", "six")
    ]
    own = {
        "nic_links": links if links is not None else [{"name": "eth1", "mtu": 9000}],
        "nic_path_peers": peers,
        "nic_mode": "apply",  # the machine may be in a cloud
        "nic_rollback_timeout": TIMEOUT,
        "nic_reconnect_timeout": 30,
        **variables,
    }
    facts = {name: {"four": bed.data_address(name), "six": bed.data_address(name, ipv6=True)} for name in bed.hosts}
    know = {
        "name": "Know",
        "ansible.builtin.set_fact": {k: f"{{{{ table[inventory_hostname].{k} }}}}" for k in ("four", "six")},
    }
    first = {"hosts": "all", "gather_facts": False, "vars": {"table": facts}, "tasks": [know]}
    return [first, {"hosts": hosts, "gather_facts": False, "vars": own, "roles": ["longhaul.fleet.nic"]}]


def run(playbooks: Playbooks, bed: Testbed, *options: str, **more: Any) -> Run:
    return playbooks.run(play(bed, **more), *options)


def changed(one: Run) -> int:
    return sum(result.result.get("changed", False) for result in one.results if result.task != "Know")


def _expect_idle(bed: Testbed) -> None:
    """What waited for the confirmation ends soon after it."""
    wait_for(lambda: not any(bed.processes(host) for host in bed.hosts), seconds=5)


@pytest.mark.long
@pytest.mark.smoke
def test_jumbo_frames_on_a_pair(pair: Testbed, playbooks: Playbooks) -> None:
    pair.set_wire_mtu(9000)
    predicted = run(playbooks, pair, "--check", "--diff").expect_success()
    assert changed(predicted) and "mtu 9000" in predicted.output
    assert mtu_of(pair) == 1500 and not (pair.root("alpha") / OWN.lstrip("/")).exists()
    made = run(playbooks, pair).expect_success()
    for host in pair.hosts:
        assert mtu_of(pair, host) == 9000
        text = (pair.root(host) / OWN.lstrip("/")).read_text()
        assert "iface eth1 inet manual\n    mtu 9000\n" in text
        # in both directions, for both families
        tests = made.result("longhaul.fleet.nic : Test the path from each peer", host)["results"]
        assert [(one["passed"], one["mtu"]) for one in tests] == [(True, 9000)] * 2
        assert (pair.root(host) / "etc/network/interfaces").read_text() == INTERFACES
    _expect_idle(pair)
    assert changed(run(playbooks, pair).expect_success()) == 0
    # and off again
    run(playbooks, pair, links=[{"name": "eth1", "state": "absent"}]).expect_success()
    assert not (pair.root("alpha") / OWN.lstrip("/")).exists()


@pytest.mark.long
def test_a_black_hole_is_named_and_everything_is_as_before(pair: Testbed, playbooks: Playbooks) -> None:
    failed = run(playbooks, pair)
    assert failed.rc
    for message in failed.failures[-2:]:
        assert "the old network is restored (at once)" in message and "a layer-2 black hole" in message, message
        assert "The largest that passes has 1500 bytes" in message
    for host in pair.hosts:
        assert mtu_of(pair, host) == 1500
        assert not (pair.root(host) / OWN.lstrip("/")).exists()
    _expect_idle(pair)


@pytest.mark.long
def test_one_end_is_too_small(pair: Testbed, playbooks: Playbooks) -> None:
    pair.set_wire_mtu(9000)
    failed = run(playbooks, pair, hosts="alpha")
    assert failed.rc and "the MTU of eth1 is 1500" in failed.failures[-1] and "beta to alpha" in failed.failures[-1]
    assert mtu_of(pair) == 1500


def test_a_router_that_says_so(pair: Testbed, playbooks: Playbooks) -> None:
    """A second link of beta, behind a router (the hub) whose way on is smaller."""
    pair.set_wire_mtu(9000)
    pair.exec("alpha", ["ip", "link", "set", "eth1", "mtu", "9000"])
    four = pair.data_address("beta")
    pair.exec("beta", ["ip", "link", "set", "eth1", "mtu", "9000"])
    pair.exec("beta", ["sh", "-c", "ip netns add far 2>/dev/null; ip link add near type veth peer name far0 netns far"])
    for line in (
        "ip address add 203.0.113.1/24 dev near",
        "ip link set near up mtu 1400",
        "ip netns exec far ip address add 203.0.113.2/24 dev far0",
        "ip netns exec far ip link set far0 up",
        "ip netns exec far ip route add default via 203.0.113.1",
        "sysctl -w net.ipv4.ip_forward=1",
    ):
        pair.exec("beta", line.split())
    pair.exec("alpha", ["ip", "route", "add", "203.0.113.0/24", "via", four])
    try:
        test = {"name": "Path", "longhaul.fleet.nic_path_info": {"address": "203.0.113.2", "required": False}}
        found = playbooks.run([test], hosts="alpha").expect_success().result("Path")
        assert found["verdict"] == "router" and f"router {four}" in found["message"] and "1400" in found["message"]
        assert found["largest"] == 1400
    finally:
        pair.exec("alpha", ["ip", "route", "del", "203.0.113.0/24"])
        pair.exec("beta", ["ip", "netns", "del", "far"])
        pair.exec("beta", ["sysctl", "-w", "net.ipv4.ip_forward=0"])


@pytest.mark.long
def test_the_controller_is_killed_before_it_can_confirm(pair: Testbed, playbooks: Playbooks) -> None:
    pair.set_wire_mtu(9000)
    # so many packets that the proof is not over before the kill
    running = playbooks.start(play(pair, hosts="alpha", nic_path_count=100))
    begun = _wait_for_mtu(pair, 9000, 120)
    running.kill()
    running.process.wait()
    back = _wait_for_mtu(pair, 1500, TIMEOUT + 15) - begun
    print(f"back after {back:.1f} s, of {TIMEOUT}")
    assert back < TIMEOUT + 5
    assert not (pair.root("alpha") / OWN.lstrip("/")).exists()
    # and a new run goes through
    run(playbooks, pair).expect_success()
    assert mtu_of(pair) == 9000


def _wait_for_mtu(bed: Testbed, mtu: int, seconds: float) -> float:
    wait_for(lambda: mtu_of(bed) == mtu, seconds=seconds)
    return time.monotonic()


@pytest.mark.long
def test_a_change_that_cuts_the_host_off(pair: Testbed, playbooks: Playbooks) -> None:
    """A switch that shuts the port down as long as the MTU is wrong: only the host itself can help."""
    pair.set_wire_mtu(9000)
    stop = threading.Event()
    cut: list[float] = []

    def switch() -> None:
        while not stop.is_set():
            wrong = mtu_of(pair) != 1500
            if wrong:
                pair.unplug("alpha")
            else:
                pair.plug("alpha")
            if wrong and not cut:
                cut.append(time.monotonic())
            if cut and not wrong and len(cut) == 1:
                cut.append(time.monotonic())
            time.sleep(0.1)

    watching = threading.Thread(target=switch)
    watching.start()
    try:
        failed = playbooks.run(play(pair, hosts="alpha"), timeout=240)
    finally:
        stop.set()
        watching.join()
        pair.plug("alpha")
    assert failed.rc and "the host did it by itself, when the time was over" in failed.failures[-1]
    assert "Wait for a fresh connection" in failed.failures[-1]
    print(f"cut off for {cut[1] - cut[0]:.1f} s, of {TIMEOUT}")
    assert cut[1] - cut[0] < TIMEOUT + 5
    assert mtu_of(pair) == 1500


BAD: list[tuple[list[dict[str, Any]], str]] = [
    ([{"name": "eth1", "mtu": 65536}], "must be from 68 to 65535"),
    ([{"name": "eth7", "mtu": 9000}], "eth7 is not there; this host has eth0, eth1"),
    ([{"name": "eth1", "mtu": 9000}, {"name": "eth1", "mtu": 1500}], "eth1 is listed 2 times"),
    ([{"name": "bond0", "bond": {"mode": "failover", "ports": ["eth1"]}}], "active-backup"),
    ([{"name": "bond0", "bond": {"mode": "802.3ad", "ports": ["eth0"]}}], "eth0 carries the address in use"),
    ([{"name": "bond0", "bond": {"mode": "802.3ad", "ports": ["eth1"]}}], "which it would lose as a port of bond0"),
    ([{"name": "eth1", "mut": 9000}], "mut"),
    ([{"name": "eth1", "addresses": ["10.1.2.3"]}], "it has no prefix length"),
]


def test_bad_input_changes_nothing(pair: Testbed, playbooks: Playbooks) -> None:
    """Each in a block of its own, whose failure is let pass."""
    know, roles = play(pair, hosts="alpha")
    role = {"name": "Role", "ansible.builtin.include_role": {"name": "longhaul.fleet.nic"}}
    passed = [{"name": "Pass", "ansible.builtin.meta": "noop"}]
    tasks = [{"block": [{**role, "vars": {"nic_links": links}}], "rescue": passed} for links, _said in BAD]
    done = playbooks.run([know, {"hosts": "alpha", "gather_facts": False, "vars": roles["vars"], "tasks": tasks}])
    for (_links, said), failed in zip(BAD, done.expect_success().failures, strict=True):
        assert said in failed, done.output
    assert changed(done) == 0 and mtu_of(pair) == 1500
    assert not (pair.root("alpha") / "var/lib/longhaul-network").exists()


def test_a_child_is_not_cut_down(pair: Testbed, playbooks: Playbooks) -> None:
    pair.exec("alpha", ["ip", "link", "add", "mac0", "link", "eth1", "type", "macvlan", "mode", "bridge"])
    try:
        failed = run(playbooks, pair, hosts="alpha", links=[{"name": "eth1", "mtu": 1400}])
        assert failed.rc and "below the 1500 of mac0" in failed.failures[0]
    finally:
        pair.exec("alpha", ["ip", "link", "del", "mac0"])


def test_report_only(pair: Testbed, playbooks: Playbooks) -> None:
    only = run(playbooks, pair, nic_mode="report", nic_path_peers=[]).expect_success()
    assert changed(only) == 0 and f"to be changed: {OWN}" in only.output and mtu_of(pair) == 1500
