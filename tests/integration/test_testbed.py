# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The testbed does what the tests believe of it."""

from __future__ import annotations

import contextlib
import marshal
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.support import compiled
from ansible_collections.longhaul.fleet.tests.support.leftovers import snapshot
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.testbed import Line, Listener, Testbed, TestbedError
from ansible_collections.longhaul.fleet.tests.testbed import bed as bed_module

# Takes connections for ever, reads what comes, and answers with the number of bytes.
SERVER = """
import socket, sys
listening = socket.create_server(("::", int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    peer = listening.accept()[0]
    count = 0
    while True:
        block = peer.recv(1 << 20)
        if not block:
            break
        count += len(block)
    peer.sendall(b"%d" % count)
    peer.close()
"""
# Sends the given number of bytes, waits for the answer, and prints the seconds; the exit code says what went wrong.
CLIENT = """
import socket, sys, time
begun = time.monotonic()
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[4])) as peer:
        peer.sendall(bytes(int(sys.argv[3])))
        peer.shutdown(socket.SHUT_WR)
        assert int(peer.recv(100)) == int(sys.argv[3])
except ConnectionRefusedError:
    sys.exit(2)
except OSError:
    sys.exit(3)
print(time.monotonic() - begun)
"""
PORT = 7000


@pytest.fixture
def listening(hosts: Testbed) -> Iterator[Testbed]:
    """A server on beta."""
    server = hosts.popen("beta", ["/usr/bin/python3", "-c", SERVER, str(PORT)])
    until = time.monotonic() + 10
    while Listener("tcp6", PORT) not in hosts.listeners("beta"):
        assert time.monotonic() < until
        time.sleep(0.01)
    yield hosts
    server.kill()
    server.wait()


def _send(bed: Testbed, count: int = 1, timeout: float = 1, address: str | None = None) -> float | int:
    """Send from alpha to beta; give the seconds, or as an int what went wrong (2 refused, 3 lost)."""
    argv = ["/usr/bin/python3", "-c", CLIENT, address or bed.data_address("beta"), str(PORT), str(count), str(timeout)]
    ended = bed.exec("alpha", argv, check=False)
    return float(ended.stdout) if ended.returncode == 0 else ended.returncode


def test_up_is_quick_and_down_leaves_nothing() -> None:
    begun = time.monotonic()
    with Testbed(["one", "two", "three"]) as bed:
        assert time.monotonic() - begun < 3  # 0.2 s where nothing else runs
        folder, pids = bed.folder, [bed.pid(host) for host in bed.hosts]
        assert {bed.exec(host, ["hostname"]).stdout.strip() for host in bed.hosts} == {"one", "two", "three"}
        assert Path(f"/sys/class/net/lh{bed.number}").exists()
    assert not folder.exists()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not Path(f"/sys/class/net/lh{bed.number}").exists()


def test_two_testbeds_at_once(hosts: Testbed) -> None:
    with Testbed() as other:
        assert other.number != hosts.number
        assert other.address("alpha") != hosts.address("alpha")


# What runs in the background ignores the interrupt, and so do the programs that it starts.
MAKER = """
import signal, time
from testbed import Testbed
signal.signal(signal.SIGINT, signal.default_int_handler)
with Testbed() as bed:
    print(bed.number, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, *rarely(signal.SIGTERM, signal.SIGINT)])
def test_it_goes_with_the_program_that_made_it(number: int) -> None:
    package = Path(bed_module.__file__).parent
    maker = subprocess.Popen([sys.executable, "-c", MAKER], stdout=subprocess.PIPE, cwd=package.parent, text=True)
    assert maker.stdout
    testbed_number = int(maker.stdout.readline())
    pids = [path for path in Path("/proc").glob("[0-9]*/cmdline") if f"/{testbed_number}/alpha".encode() in _read(path)]
    assert pids
    maker.send_signal(number)
    maker.wait(10)
    maker.stdout.close()
    until = time.monotonic() + 10
    while any(f"/{testbed_number}/alpha".encode() in _read(path) for path in pids):
        assert time.monotonic() < until
        time.sleep(0.05)


def _read(path: Path) -> bytes:
    with contextlib.suppress(OSError):
        return path.read_bytes()
    return b""


def test_a_kept_testbed_stays_until_it_is_taken_down() -> None:
    repository = Path(bed_module.__file__).parents[2]
    argv = [sys.executable, "-m", "tests.testbed"]
    said = subprocess.run([*argv, "up"], cwd=repository, check=True, capture_output=True, text=True).stdout
    number = said.split()[1]
    try:
        run = [*argv, "--number", number, "exec", "beta", "hostname"]
        assert subprocess.run(run, cwd=repository, check=True, capture_output=True, text=True).stdout == "beta\n"
    finally:
        subprocess.run([*argv, "--number", number, "down"], cwd=repository, check=True)
    with pytest.raises(TestbedError, match=f"no testbed {number}"):
        Testbed.attach(int(number))


def test_hosts_have_their_own_files(hosts: Testbed) -> None:
    hosts.exec("alpha", ["sh", "-c", "echo mine >/etc/longhaul-test"])
    assert (hosts.root("alpha") / "etc/longhaul-test").read_text() == "mine\n"
    assert not (hosts.root("beta") / "etc/longhaul-test").exists()
    assert not Path("/etc/longhaul-test").exists()
    hosts.exec("alpha", ["rm", "/etc/longhaul-test"])
    assert hosts.exec("alpha", ["/usr/bin/python3", "-c", "import os; print(os.getcwd())"]).stdout == "/\n"
    assert (
        hosts.exec("alpha", ["stat", "-c", "%d:%i", "."]).stdout
        == hosts.exec("alpha", ["stat", "-c", "%d:%i", "/"]).stdout
    )


@pytest.mark.smoke
def test_ansible_reaches_both(playbooks: Playbooks) -> None:
    run = playbooks.run([{"name": "Ping", "ansible.builtin.ping": {}}]).expect_success()
    assert {one.host for one in run.results if one.result["ping"] == "pong"} == {"alpha", "beta"}
    assert "unreachable=0" in run.output


@pytest.mark.smoke
@pytest.mark.parametrize("user, becomes", [("mover", True), ("plain", False)])
def test_users(playbooks: Playbooks, hosts: Testbed, user: str, becomes: bool) -> None:
    hosts.inventory(playbooks.inventory, user=user)
    tasks = [
        {"name": "Me", "ansible.builtin.command": "id -un", "vars": {"ansible_become": False}},
        {"name": "Become", "ansible.builtin.command": "id -un", "become": True},
    ]
    run = playbooks.run(tasks, hosts="beta")
    assert run.result("Me")["stdout"] == user
    assert (run.rc == 0) == becomes
    if becomes:
        assert run.result("Become")["stdout"] == "root"
    else:
        assert run.failures
    # and the password is truly asked for
    refused = hosts.exec("beta", ["sudo", "-n", "-k", "true"], user=user, check=False)
    assert refused.returncode and "password" in refused.stderr


def test_hosts_do_not_trust_each_other(hosts: Testbed) -> None:
    ssh = ["ssh", "-o", "BatchMode=yes", hosts.data_address("beta"), "true"]
    refused = hosts.exec("alpha", ssh, check=False)
    assert refused.returncode == 255 and "Host key verification failed" in refused.stderr


@pytest.mark.parametrize("ipv6", [False, True])
def test_data_network(listening: Testbed, ipv6: bool) -> None:
    assert isinstance(_send(listening, address=listening.data_address("beta", ipv6=ipv6)), float)


def test_shape(listening: Testbed) -> None:
    count = 10_000_000
    assert _send(listening, count, timeout=20) < 0.5
    listening.shape("alpha", "100mbit")
    slow = _send(listening, count, timeout=20)
    assert 0.7 < slow < 1.5  # 10 MB at 100 Mbit/s take 0.8 s
    listening.shape("alpha", None)
    listening.shape("beta", "50mbit")
    assert 1.4 < _send(listening, count, timeout=20) < 3
    listening.shape("beta", None)
    assert _send(listening, count, timeout=20) < 0.5


ROUND_TRIPS = """
import socket, sys, time
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10) as peer:
    begun = time.monotonic()
    peer.shutdown(socket.SHUT_WR)
    assert peer.recv(100) == b"0"
    print(time.monotonic() - begun)
"""


@pytest.mark.parametrize("ipv6", [False, *rarely(True)])
def test_a_long_line(listening: Testbed, ipv6: bool) -> None:
    there = listening.data_address("beta", ipv6=ipv6)
    assert listening.shorten() == []
    listening.lengthen(Line(rtt=0.2, rate=40_000_000))
    argv = ["/usr/bin/python3", "-c", ROUND_TRIPS, there, str(PORT)]
    assert 0.2 <= float(listening.exec("alpha", argv).stdout) < 1
    assert _send(listening, 4_000_000, timeout=20, address=there) > 0.8  # what 40 Mbit/s take
    out, back = listening.shorten()
    assert out["bytes"] > 4_000_000 and 0 < back["bytes"] < out["bytes"] / 10
    assert out["lost"] == back["lost"] == 0
    assert _send(listening, 4_000_000, timeout=20, address=there) < 0.8


def test_a_lossy_line(listening: Testbed) -> None:
    listening.lengthen(Line(rtt=0.02, rate=100_000_000, loss=0.02))
    assert isinstance(_send(listening, 4_000_000, timeout=60), float)
    out, _back = listening.shorten()
    assert out["passed"] * 0.005 < out["lost"] < out["passed"] * 0.05


def test_the_congestion_control_of_hosts(hosts: Testbed) -> None:
    def found() -> set[str]:
        shown = [hosts.exec(host, ["cat", "/proc/sys/net/ipv4/tcp_congestion_control"]).stdout for host in hosts.hosts]
        return {line.strip() for line in shown}

    assert found() == {"reno"}
    with pytest.raises(TestbedError, match="not nosuchthing"):
        hosts.set_congestion("nosuchthing")
    other = [name for name in hosts.congestions() if name != "reno"]
    if not other:
        pytest.skip("cannot run here: the kernel offers reno alone")
    hosts.set_congestion(other[0], "alpha")
    assert found() == {"reno", other[0]}
    hosts.restore()
    assert found() == {"reno"}


def test_cut_and_mend(listening: Testbed) -> None:
    assert isinstance(_send(listening), float)
    listening.cut()
    assert _send(listening) == 3
    assert listening.exec("alpha", ["cat", "/sys/class/net/eth1/carrier"]).stdout == "1\n"
    listening.mend()
    assert isinstance(_send(listening, timeout=5), float)


@pytest.mark.smoke
def test_ansible_works_while_the_wire_is_cut(playbooks: Playbooks, hosts: Testbed) -> None:
    hosts.cut()
    playbooks.run([{"ansible.builtin.ping": {}}]).expect_success()


def test_a_connection_lives_through_a_short_cut(listening: Testbed) -> None:
    listening.shape("alpha", "100mbit")
    argv = ["/usr/bin/python3", "-c", CLIENT, listening.data_address("beta"), str(PORT), "10000000", "30"]
    client = listening.popen("alpha", argv, stdout=subprocess.PIPE, text=True)
    time.sleep(0.3)
    listening.cut()
    time.sleep(1)
    listening.mend()
    seconds = client.communicate(timeout=30)[0]
    assert client.returncode == 0 and float(seconds) > 1.5


def test_block(listening: Testbed) -> None:
    listening.block("beta", PORT)
    assert _send(listening) == 3
    listening.unblock("beta")
    assert isinstance(_send(listening), float)
    listening.block("beta", PORT, reject=True)
    assert _send(listening) == 2
    listening.restore()
    listening.block("beta", PORT + 1)
    assert isinstance(_send(listening), float)
    listening.block("beta")
    assert _send(listening) == 3
    listening.unblock("beta")
    assert isinstance(_send(listening), float)


def test_full_disk(hosts: Testbed) -> None:
    hosts.limit_disk("beta", "1m")
    full = hosts.exec("beta", ["dd", "if=/dev/zero", "of=/data/file", "bs=64k", "count=32"], check=False)
    assert full.returncode and "No space left" in full.stderr
    hosts.limit_disk("beta", "10m")
    hosts.exec("beta", ["dd", "if=/dev/zero", "of=/data/file", "bs=64k", "count=32"])
    hosts.limit_disk("beta", "10m", inodes=5)
    full = hosts.exec("beta", ["touch", *(f"/data/{number}" for number in range(5))], check=False)
    assert full.returncode and "No space left" in full.stderr


def test_processes_and_listeners(hosts: Testbed) -> None:
    assert hosts.processes("alpha") == [] and hosts.listeners("alpha") == []
    sleeper = hosts.popen("alpha", ["sleep", "100"])
    server = hosts.popen("alpha", ["/usr/bin/python3", "-c", SERVER, str(PORT)])
    until = time.monotonic() + 10
    while hosts.listeners("alpha") != [Listener("tcp6", PORT)] and time.monotonic() < until:
        time.sleep(0.01)
    assert hosts.listeners("alpha") == [Listener("tcp6", PORT)]
    assert hosts.listeners("beta") == []
    found = {process.argv[0]: process for process in hosts.processes("alpha")}
    assert set(found) == {"sleep", "/usr/bin/python3"}
    hosts.kill("alpha", found["sleep"])
    assert sleeper.wait(10) == 128 + signal.SIGKILL or sleeper.returncode == -signal.SIGKILL
    hosts.kill("alpha", found["sleep"])  # as where it ends between being found and being killed
    hosts.crash("alpha")
    server.wait(10)
    assert hosts.processes("alpha") == []


def test_another_sshd_is_not_overlooked(hosts: Testbed) -> None:
    before = snapshot(hosts, "alpha")
    other = hosts.popen("alpha", ["/usr/sbin/sshd", "-D", "-p", "2222"], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 10
    while Listener("tcp", 2222) not in hosts.listeners("alpha") and time.monotonic() < until:
        time.sleep(0.01)
    assert any("process: " in line for line in snapshot(hosts, "alpha") - before)
    other.kill()
    other.wait()


def test_ssh_works_after_a_crash(playbooks: Playbooks, hosts: Testbed) -> None:
    playbooks.run([{"ansible.builtin.ping": {}}]).expect_success()
    hosts.crash("alpha")
    playbooks.run([{"ansible.builtin.ping": {}}]).expect_success()


def test_the_machines_own_transfers_are_not_the_hosts(hosts: Testbed) -> None:
    """They come and go while a host has transfers of its own."""
    state = Path("/var/lib/longhaul")
    (hosts.root("alpha") / "var/lib/longhaul/0123").mkdir()
    of_the_machine = state / os.urandom(8).hex()
    of_the_machine.mkdir(parents=True)
    try:
        assert hosts.exec("alpha", ["ls", str(state)]).stdout == "0123\n"
    finally:
        of_the_machine.rmdir()
        with contextlib.suppress(OSError):  # where it has more
            state.rmdir()
    assert hosts.exec("alpha", ["ls", str(state)]).stdout == "0123\n"


def test_what_a_host_compiles_is_kept(playbooks: Playbooks, hosts: Testbed) -> None:
    folder = hosts.root("alpha") / compiled.KEPT.lstrip("/")
    playbooks.run([{"ansible.builtin.ping": {}}], hosts="alpha").expect_success()
    kept = {path: path.read_bytes() for path in folder.iterdir()}
    assert kept
    try:
        for path in kept:
            path.write_bytes(marshal.dumps("no code"))
        assert playbooks.run([{"ansible.builtin.ping": {}}], hosts="alpha").failures
        assert {path.read_bytes() for path in folder.iterdir()} == {marshal.dumps("no code")}
    finally:
        for path, code in kept.items():
            path.write_bytes(code)


def test_leftovers_are_found(hosts: Testbed) -> None:
    before = snapshot(hosts, "alpha")
    root = hosts.root("alpha")
    (root / "var/lib/longhaul/0123/source").mkdir(parents=True)
    (root / "tmp/key").touch()
    (root / "data/tree/.longhaul-0123").mkdir(parents=True)
    with open(root / "root/.ssh/authorized_keys", "a", encoding="ascii") as keys:
        keys.write("ssh-ed25519 stranger\n")
    assert sorted(snapshot(hosts, "alpha") - before) == [
        "partial: data/tree/.longhaul-0123",
        "ssh: root/.ssh/authorized_keys: ssh-ed25519 stranger",
        "state: var/lib/longhaul/0123",
        "state: var/lib/longhaul/0123/source",
        "temporary: tmp/key",
    ]
    keys_text = (root / "root/.ssh/authorized_keys").read_text().replace("ssh-ed25519 stranger\n", "")
    (root / "root/.ssh/authorized_keys").write_text(keys_text)


def test_the_machine_keeps_its_own(hosts: Testbed) -> None:
    assert {path.name for path in (hosts.root("alpha") / "root").iterdir()} <= {
        *(path.name for path in Path("/etc/skel").glob("*")),
        ".ssh",
        ".ansible",
    }
    keys = hosts.root("alpha") / "etc/ssh/ssh_host_ed25519_key"
    assert os.stat(keys).st_dev != os.stat("/etc/ssh").st_dev
    assert not Path("/data/tree").exists() and not Path("/etc/sudoers.d/longhaul-testbed").exists()
