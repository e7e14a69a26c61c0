# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts, users, ports and servers that do not play along: one clear error each, and nothing left; or the other way."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.support import compare
from ansible_collections.longhaul.fleet.tests.support.beside import beside
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.support.refusal import (
    add_hosts,
    everything,
    make_mistakes,
    mistake,
    small_tree,
)
from ansible_collections.longhaul.fleet.tests.testbed import Listener, Testbed

BUSY = 50001
OTHER_SSHD = 2222
DAEMON = 8730

HOSTS = [
    mistake("wrong sudo password", "wrong_password", "sudo", "ansible_become_password", src_host="wrong_password"),
    mistake("no sudo password", "no_password", "sudo", "ansible_become_password", src_host="no_password"),
    mistake("host down", "down", "10.99.", dest_host="down"),
    mistake("host key changed", "new_key", "host key", "new_key", "known_hosts", src_host="new_key"),
    mistake("no such Python", "no_python", "python", src_host="no_python"),
    mistake("unknown connection plugin", "odd_connection", "carrier_pigeon", src_host="odd_connection"),
    mistake("unknown become method", "odd_become", "magic", src_host="odd_become"),
]

SERVERS = [
    mistake("busy port, daemon", str(BUSY), "beta", "port_range", method="rsyncd", port=BUSY),
    mistake("busy port, tar", str(BUSY), "beta", "port_range", method="tar_nc", port=BUSY),
    mistake("busy port, ssh", str(BUSY), "beta", "port", method="rsync", port=BUSY),
    mistake("busy range", str(BUSY), "beta", "port", method="sftp", port_range=f"{BUSY}-{BUSY}"),
    mistake("another sshd in between", "host key", "nothing was sent", method="rsync", port=OTHER_SSHD),
    mistake("another sshd, sftp", "host key", "nothing was sent", method="sftp", port=OTHER_SSHD),
    mistake(
        "login shell that talks",
        ".bashrc",
        "welcome",
        method="rsync",
        before={"beta": "echo '[ -z \"$SSH_ORIGINAL_COMMAND\" ] || echo welcome' >/root/.bashrc"},
        after={"beta": "rm /root/.bashrc"},
    ),
    mistake("unknown module", "'none'", "beta", method="rsyncd", rsyncd_module="none", port=DAEMON),
    mistake("read-only module", "read only = no", method="rsyncd", rsyncd_module="read", port=DAEMON),
    mistake(
        "wrong password of the module",
        "password",
        method="rsyncd",
        rsyncd_module="write",
        port=DAEMON,
        rsyncd_user="mover",
        rsyncd_password="not-this-one",
    ),
    mistake("no password for the module", "password", method="rsyncd", rsyncd_module="write", port=DAEMON),
    mistake(
        "outside of the module",
        "/srv/elsewhere",
        "/data",
        "beta",
        method="rsyncd",
        rsyncd_module="write",
        port=DAEMON,
        rsyncd_user="mover",
        rsyncd_password="right",
        dest="/srv/elsewhere",
    ),
    mistake(
        "no daemon",
        "8731",
        "10.99.",
        method="rsyncd",
        rsyncd_module="write",
        port=8731,
        rsyncd_user="mover",
        rsyncd_password="right",
    ),
]

RSYNCD_CONF = """\
[read]
path = /data
uid = root
gid = root
[write]
path = /data
read only = no
uid = root
gid = root
auth users = mover
secrets file = /etc/rsyncd.secrets
"""
METHODS = ("stream", "rsync", "rsyncd", "tar_nc", "scp", "sftp")


def test_hosts_that_cannot_be_used(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    other_keys = playbooks.folder / "known_hosts"
    key = hosts.known_hosts.read_text().splitlines()[1].split()[1:]
    other_keys.write_text(f"{hosts.address('alpha')} {' '.join(key)}\n")
    plain = {"ansible_user": "mover", "ansible_become": True}
    add_hosts(
        playbooks.inventory,
        {
            "wrong_password": ("alpha", {**plain, "ansible_become_password": "wrong"}),
            "no_password": ("alpha", plain),
            "down": ("beta", {"ansible_host": f"10.99.{hosts.number}.77", "ansible_timeout": 3}),
            "new_key": (
                "alpha",
                {
                    "ansible_ssh_common_args": f"-F none -o IdentitiesOnly=yes -o UserKnownHostsFile={other_keys}",
                    "ansible_control_path_dir": str(playbooks.folder / "cp"),  # no connection that is open already
                },
            ),
            "no_python": ("alpha", {"ansible_python_interpreter": "/usr/bin/python9"}),
            "odd_connection": ("alpha", {"ansible_connection": "carrier_pigeon"}),
            "odd_become": ("alpha", {"ansible_become": True, "ansible_become_method": "magic"}),
        },
    )
    make_mistakes(hosts, playbooks, HOSTS)


@pytest.mark.long
def test_servers_that_do_not_play_along(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    with _servers(hosts):
        make_mistakes(hosts, playbooks, SERVERS)


@contextmanager
def _servers(bed: Testbed) -> Iterator[None]:
    """Have a silent program, another sshd and a configured rsync daemon listen on beta."""
    script = f"import socket,time; s=socket.create_server(('', {BUSY})); time.sleep(999)"
    bed.exec("beta", ["sh", "-c", "ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/other_key && mkdir -p /srv/elsewhere"])
    bed.exec("beta", ["sh", "-c", "cat >/etc/rsyncd.conf"], input=RSYNCD_CONF)
    bed.exec("beta", ["sh", "-c", "umask 077; echo mover:right >/etc/rsyncd.secrets"])
    with ExitStack() as stack:
        for argv in (
            ["/usr/bin/python3", "-c", script],
            ["/usr/sbin/sshd", "-D", "-f", "/dev/null", "-p", str(OTHER_SSHD), "-h", "/etc/ssh/other_key"],
            ["rsync", "--daemon", "--no-detach", f"--port={DAEMON}"],
        ):
            stack.enter_context(beside(bed, "beta", argv))
        _wait_for(bed, {BUSY, OTHER_SSHD, DAEMON})
        try:
            yield
        finally:
            bed.exec("beta", ["sh", "-c", "rm -r /etc/ssh/other_key* /etc/rsyncd.* /srv/elsewhere"])


def _wait_for(bed: Testbed, ports: set[int]) -> None:
    until = time.monotonic() + 20
    while not ports <= {found.port for found in bed.listeners("beta") if isinstance(found, Listener)}:
        assert time.monotonic() < until, bed.listeners("beta")
        time.sleep(0.05)


def _blocked(method: str) -> Any:
    return mistake(method, "port", "pull", "10.99.", method=method, connect="push")


@pytest.mark.long
def test_a_rejected_port(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    hosts.block("beta", reject=True)
    make_mistakes(hosts, playbooks, [_blocked(method) for method in METHODS])


@pytest.mark.long
def test_a_port_that_drops(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    hosts.block("beta")
    make_mistakes(hosts, playbooks, [_blocked(method) for method in ("rsync", "rsyncd", "tar_nc")])


def test_both_directions_closed(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    for host in hosts.hosts:
        hosts.block(host, reject=True)
    both = [mistake(method, "other direction", "port", method=method) for method in ("rsync", "rsyncd")]
    make_mistakes(hosts, playbooks, both)


@pytest.mark.parametrize(
    ("method", "reject"),
    [("stream", True), *rarely(("rsync", True), ("rsync", False), ("rsyncd", True), ("sftp", True))],
)
def test_the_destination_connects_where_only_that_is_open(
    hosts: Testbed, playbooks: Playbooks, method: str, reject: bool
) -> None:
    small_tree(hosts)
    hosts.block("beta", reject=reject)
    options = {"src_host": "alpha", "src": "/data/src/", "dest": "/data/dest", "method": method, "encryption": "none"}
    playbooks.run([{"longhaul.fleet.transfer": options}], hosts="beta").expect_success()
    hosts.unblock("beta")
    assert compare.differences(hosts.root("alpha") / "data/src", hosts.root("beta") / "data/dest") == []


@pytest.mark.long
def test_auto_goes_through_the_port_of_ssh_where_no_other_is_open(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    for host in hosts.hosts:
        hosts.block(host, but=22)
    options = {"src_host": "alpha", "src": "/data/src/", "dest": "/data/dest"}
    tasks = [
        {"name": "Move", "longhaul.fleet.transfer": options},
        {"name": "Leave alone", "longhaul.fleet.transfer": {**options, "wait": False}},
        {"name": "Collect", "longhaul.fleet.transfer": options},
    ]
    run = playbooks.run(tasks, hosts="beta").expect_success()
    moved = run.result("Move")
    assert moved["method"] == "rsync" and "stream does not fit" in moved["method_reason"], moved
    assert "name method rsync" in " ".join(moved["warnings"])
    assert not run.result("Collect")["changed"]
    assert compare.differences(hosts.root("alpha") / "data/src", hosts.root("beta") / "data/dest") == []


def test_login_shells_that_talk(hosts: Testbed, unpiped: Playbooks) -> None:
    """What they say comes before all that Ansible asks; the engine's own connections pass by no shell."""
    small_tree(hosts)
    said = 'echo "welcome to $(hostname)"; echo "be careful" >&2\n'
    for host in hosts.hosts:
        (hosts.root(host) / "root/.bashrc").write_text(said)
    try:
        spoken = hosts.exec("beta", ["bash", "-c", "SSH_CLIENT=x SHLVL=0 bash -c true"])
        options = {"src_host": "alpha", "src": "/data/src/", "dest": "/data/dest", "method": "stream"}
        tasks = [{"name": name, "longhaul.fleet.transfer": options} for name in ("Move", "Again")]
        run = unpiped.run(tasks, hosts="beta").expect_success()
    finally:
        for host in hosts.hosts:
            (hosts.root(host) / "root/.bashrc").unlink()
    assert "welcome to beta" in spoken.stdout
    assert run.result("Move")["changed"] and not run.result("Again")["changed"]
    assert compare.differences(hosts.root("alpha") / "data/src", hosts.root("beta") / "data/dest") == []


def test_an_sshd_that_takes_one_connection_at_a_time(hosts: Testbed, playbooks: Playbooks) -> None:
    """And one session in each: many data connections are none of its business."""
    make_big_files(hosts.root("alpha") / "data/src", 24 << 20, count=6)
    content = json.loads(playbooks.inventory.read_text())
    known = hosts.known_hosts.read_text()
    for line in known.splitlines():
        names, key = line.split(" ", 1)
        known += ",".join(f"[{name}]:{OTHER_SSHD}" for name in names.split(",")) + f" {key}\n"
    (playbooks.folder / "known_hosts").write_text(known)
    for host in hosts.hosts:
        content["all"]["hosts"][host]["ansible_port"] = OTHER_SSHD
    content["all"]["vars"].update(
        ansible_ssh_common_args=f"-F none -o IdentitiesOnly=yes -o UserKnownHostsFile={playbooks.folder}/known_hosts",
        ansible_ssh_args="-o ControlMaster=no",
    )
    playbooks.inventory.write_text(json.dumps(content))
    throttled = ["/usr/sbin/sshd", "-D", "-p", str(OTHER_SSHD), "-o", "MaxStartups=1", "-o", "MaxSessions=1"]
    with ExitStack() as stack:
        for host in hosts.hosts:
            stack.enter_context(beside(hosts, host, throttled))
            hosts.block(host, 22, reject=True)
        _wait_for(hosts, {OTHER_SSHD})
        options = {"src_host": "alpha", "src": "/data/src/", "dest": "/data/dest", "method": "stream", "streams": 8}
        playbooks.run([{"longhaul.fleet.transfer": options}], hosts="beta").expect_success()
    assert compare.differences(hosts.root("alpha") / "data/src", hosts.root("beta") / "data/dest") == []


def test_a_configured_daemon_is_used(hosts: Testbed, playbooks: Playbooks, tmp_path: Path) -> None:
    small_tree(hosts)
    before = everything(hosts)
    options = {"src_host": "alpha", "src": "/data/src/", "dest": "/data/dest", "method": "rsyncd", "port": DAEMON}
    options.update(rsyncd_module="write", rsyncd_user="mover", rsyncd_password="right", encryption="none")
    with _servers(hosts):
        run = playbooks.run([{"name": "Move", "longhaul.fleet.transfer": options}], "-vvv", hosts="beta")
        run.expect_success()
    assert "right" not in str(run.result("Move"))
    assert compare.differences(hosts.root("alpha") / "data/src", hosts.root("beta") / "data/dest") == []
    assert everything(hosts)["alpha"] == before["alpha"]
