# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ends of different kinds: other connections, users, ports and plays, and root paths with every odd character."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
import time
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.support import compare, leftovers
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_hard_tree, remove_tree
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.support.refusal import add_hosts, small_tree
from ansible_collections.longhaul.fleet.tests.testbed import Testbed
from ansible_collections.longhaul.fleet.tests.tools.pythons import find_pythons

CANNOT = {method: ["longer than PATH_MAX"] for method in ("rsync", "rsyncd")}
OLDEST_PYTHON = (3, 9)  # that the newest ansible-core can use on a host
NOT_NEEDED = ("test", "site-packages", "config-*", "*.a", "share", "include")  # of a Python that is copied
SPECIAL = (stat.S_IFIFO, stat.S_IFSOCK)  # which need root as device nodes do, by the name "devices"
ODD = 'it\'s a "$HOME" `id` *;\\ \n-end '  # as the name of a folder


def task(name: str = "Move", **options: Any) -> dict[str, Any]:
    given = {"src_host": "alpha", "src": "/data/src/", "dest_host": "beta", "dest": "/data/dest", **options}
    return {"name": name, "longhaul.fleet.transfer": {"encryption": "none", **given}}


def expect_same(bed: Testbed, source: str = "data/src", dest: str = "data/dest", **how: Any) -> None:
    assert compare.differences(bed.root("alpha") / source, bed.root("beta") / dest, **how) == []


@pytest.mark.parametrize("method", ["stream", "scp", *rarely("rsync", "rsyncd", "tar_nc", "sftp")])
def test_root_paths_with_odd_names(hosts: Testbed, playbooks: Playbooks, method: str) -> None:
    before = {host: leftovers.snapshot(hosts, host) for host in hosts.hosts}
    small_tree(hosts)
    (hosts.root("alpha") / "data/src").rename(hosts.root("alpha") / "data" / ODD)
    options = {"method": method, "connect": "push", "src": f"/data/{ODD}/", "dest": f"/data/{ODD}/deeper {ODD}"}
    run = playbooks.run([task(**options), task("Again", **options)], hosts="localhost")
    if method == "rsyncd" and run.rc:
        (said,) = run.failures
        assert "a daemon cannot serve this path" in said and "method rsync" in said, said
        assert list((hosts.root("beta") / "data").iterdir()) == []
        assert {host: leftovers.snapshot(hosts, host) for host in hosts.hosts} == before
        return
    run.expect_success()
    expect_same(hosts, f"data/{ODD}", f"data/{ODD}/deeper {ODD}")
    assert not run.result("Again")["changed"]


@pytest.mark.parametrize("method", ["stream", *rarely("rsync", "rsyncd", "tar_nc", "scp", "sftp")])
def test_ordinary_users_on_both_hosts(hosts: Testbed, playbooks: Playbooks, tmp_path: Path, method: str) -> None:
    before = {host: leftovers.snapshot(hosts, host) for host in hosts.hosts}
    source = hosts.root("alpha") / "data/src"
    make_hard_tree(source, as_root=False, many=50, without=[*CANNOT.get(method, ()), "mode 000"])
    for host in hosts.hosts:
        hosts.exec(host, ["chown", "-R", "--no-dereference", "plain:plain", "/data"])
    playbooks.inventory = hosts.inventory(tmp_path / "plain.yml", user="plain")
    # A daemon without root would rewrite symlinks that lead out of the tree, and says so; the other way it is a reader
    connect = "pull" if method == "rsyncd" else "push"
    run = playbooks.run(
        [task(method=method, connect=connect), task("Again", method=method, connect=connect)], hosts="localhost"
    ).expect_success()
    special = {path for path in (source / "types").rglob("*") if stat.S_IFMT(path.lstat().st_mode) in SPECIAL}
    assert special
    skip = [os.fsencode(path.relative_to(source)) for path in special]
    expect_same(hosts, ignore=["owner"], skip=skip)
    assert not run.result("Again")["changed"], run.result("Again")["changes"]
    assert "not root" in " ".join(run.result("Move")["warnings"])
    for tree in (source, source.with_name("src.outside"), hosts.root("beta") / "data/dest"):
        remove_tree(tree)
    assert {host: leftovers.snapshot(hosts, host) for host in hosts.hosts} == before


@pytest.mark.parametrize("method", ["stream", *rarely("rsync", "tar_nc")])
def test_from_an_ordinary_user_to_root(hosts: Testbed, playbooks: Playbooks, method: str) -> None:
    small_tree(hosts)
    hosts.exec("alpha", ["chown", "-R", "plain:plain", "/data/src"])
    add_hosts(playbooks.inventory, {"reader": ("alpha", {"ansible_user": "plain"})})
    run = playbooks.run([task(src_host="reader", method=method)], hosts="localhost").expect_success()
    expect_same(hosts)
    assert run.result("Move")["files_total"] == 28


def test_the_plays_host_delegation_and_run_once_change_nothing(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    tasks = [
        {**task("On the source", dest="/data/one"), "delegate_to": "alpha"},
        {**task("On the control node", dest="/data/two"), "delegate_to": "localhost"},
        {**task("Once", dest="/data/three"), "run_once": True},
    ]
    playbooks.run(tasks[:2], hosts="beta").expect_success()
    playbooks.run(tasks[2:], hosts="alpha:beta").expect_success()
    for name in ("one", "two", "three"):
        expect_same(hosts, dest=f"data/{name}")
        assert not (hosts.root("alpha") / "data" / name).exists()


@pytest.mark.parametrize(
    ("method", "connect"), [("rsyncd", "pull"), *rarely(("rsync", "push"), ("rsync", "pull"), ("tar_nc", "push"))]
)
def test_one_end_is_the_control_node(
    hosts: Testbed, playbooks: Playbooks, tmp_path: Path, method: str, connect: str
) -> None:
    """Connection local at one end; what connects goes over the network that Ansible uses."""
    small_tree(hosts)
    machine = f"10.99.{hosts.number}.126"
    local = {"ansible_connection": "local", "ansible_host": machine, "ansible_python_interpreter": "/usr/bin/python3"}
    add_hosts(
        playbooks.inventory,
        {
            "here": ("alpha", {**local, "longhaul_address": machine}),
            "there": ("alpha", {"longhaul_address": hosts.address("alpha")}),
        },
    )
    target = tmp_path / "arrived"
    options = {"src_host": "there", "dest_host": "here", "dest": str(target), "method": method, "connect": connect}
    if connect == "push":
        options["port_range"] = "52000-52100"  # for ssh: the machine may have no server of its own
    playbooks.run([task(**options)], hosts="localhost").expect_success()
    assert compare.differences(hosts.root("alpha") / "data/src", target) == []


@pytest.fixture
def two_pythons(hosts: Testbed) -> Iterator[dict[str, str]]:
    """Use the oldest Python that Ansible supports on alpha and the newest on beta; yield host to path."""
    found = {version: path for version, path in find_pythons().items() if version >= OLDEST_PYTHON}
    if len(found) < 2:
        pytest.skip(f"cannot run here: there is no other Python than {sorted(found)}")
    # Themselves, and not where they were found: the environment of the tests may be in /tmp, which is each host's own.
    chosen = {"alpha": os.path.realpath(found[min(found)]), "beta": os.path.realpath(found[max(found)])}
    with contextlib.ExitStack() as after:
        for host, python in chosen.items():
            argv = [python, "-c", "import sys; print(sys.base_prefix)"]
            prefix = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
            place = hosts.root(host) / prefix.lstrip("/")
            if not place.exists():  # in root's home on this machine, which the hosts do not have
                shutil.copytree(prefix, place, symlinks=True, ignore=shutil.ignore_patterns(*NOT_NEEDED))
                top = hosts.root(host) / "root" / Path(prefix).relative_to("/root").parts[0]
                after.callback(shutil.rmtree, top)
        yield chosen


def test_hosts_with_different_pythons(hosts: Testbed, playbooks: Playbooks, two_pythons: dict[str, str]) -> None:
    """Pythons that Ansible cannot use are in test_engine.py."""
    small_tree(hosts)
    for host, python in two_pythons.items():
        add_hosts(playbooks.inventory, {host: (host, {"ansible_python_interpreter": python})})
    back = {"src_host": "beta", "src": "/data/dest/", "dest_host": "alpha"}
    tasks = [task("There", method="stream"), task("And back", method="stream", **back)]
    run = playbooks.run(tasks, hosts="localhost").expect_success()
    expect_same(hosts)
    assert compare.differences(hosts.root("alpha") / "data/src", hosts.root("alpha") / "data/dest") == []
    assert run.result("There")["files_total"] == run.result("And back")["files_total"] == 28


def test_a_host_behind_a_bastion_that_its_variables_name(hosts: Testbed, playbooks: Playbooks) -> None:
    """The control node reaches alpha through beta, and knows the addresses of both by a variable of a third host."""
    small_tree(hosts)
    addresses = {name: hosts.address(name) for name in ("alpha", "beta")}
    content = json.loads(playbooks.inventory.read_text())
    common = content["all"]["vars"]["ansible_ssh_common_args"]
    gate = "{{ hostvars['gate'].addresses.beta }}"
    content["all"]["hosts"]["gate"] = {"addresses": addresses, "ansible_host": "192.0.2.1"}
    content["all"]["hosts"]["beta"]["ansible_host"] = gate
    content["all"]["hosts"]["alpha"].update(
        ansible_host="{{ hostvars['gate'].addresses[inventory_hostname] }}",
        ansible_ssh_common_args=f'{common} -o ProxyCommand="ssh {common} -i {hosts.key} -W %h:%p root@{gate}"',
    )
    playbooks.inventory.write_text(json.dumps(content))
    ping = {"name": "Ping", "ansible.builtin.ping": None}
    tasks = [ping, task("Move"), task("Again", method="rsync"), task("Pull", dest="/data/pulled", connect="pull")]
    run = playbooks.run(tasks, hosts="beta").expect_success()
    for dest in ("data/dest", "data/pulled"):
        expect_same(hosts, dest=dest)
    assert not run.result("Again")["changed"]
    back = task("Back", src_host="beta", src="/data/dest/", dest_host="alpha", dest="/data/back")
    playbooks.run([back], hosts="alpha").expect_success()


def test_one_hosts_port_is_not_the_others(hosts: Testbed, playbooks: Playbooks) -> None:
    """beta's sshd listens at 2200 and alpha's at 22; only beta has ansible_port."""
    small_tree(hosts)
    server = hosts.popen("beta", ["/usr/sbin/sshd", "-D", "-p", "2200"])
    try:
        content = json.loads(playbooks.inventory.read_text())
        content["all"]["hosts"]["beta"]["ansible_port"] = 2200
        known = hosts.known_hosts.read_text()
        mine = playbooks.folder / "known_hosts"
        extra = known.splitlines()[1].split()
        mine.write_text(known + f"[{hosts.address('beta')}]:2200 {' '.join(extra[1:])}\n")
        content["all"]["vars"]["ansible_ssh_common_args"] = (
            f"-F none -o IdentitiesOnly=yes -o UserKnownHostsFile={mine}"
        )
        playbooks.inventory.write_text(json.dumps(content))
        time.sleep(0.5)
        hosts.block("beta", 22, reject=True)
        ways = {"dest0": ("rsync", "push"), "dest1": ("sftp", "push"), "dest2": ("rsync", "pull")}
        tasks = [task(method=how[0], connect=how[1], dest=f"/data/{name}") for name, how in ways.items()]
        playbooks.run(tasks, hosts="beta").expect_success()
        for name in ways:
            expect_same(hosts, dest=f"data/{name}")
    finally:
        server.kill()
        server.wait()
