# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The passwords of sudo and ssh, wherever Ansible takes them from: typed, from a file, from a variable."""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.support import compare
from ansible_collections.longhaul.fleet.tests.support.beside import beside
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.refusal import add_hosts, everything, small_tree
from ansible_collections.longhaul.fleet.tests.support.terminal import Terminal
from ansible_collections.longhaul.fleet.tests.testbed import Testbed
from ansible_collections.longhaul.fleet.tests.testbed.bed import SUDO_PASSWORD

PASSWORD_SSHD = 2222
OPTIONS = {"src_host": "alpha", "src": "/data/src/", "dest": "/data/dest"}
PLAY = [
    {
        "hosts": "beta",
        "gather_facts": False,
        "become": True,
        "tasks": [
            {"name": "Move", "longhaul.fleet.transfer": OPTIONS},
            {"name": "Compare", "longhaul.fleet.verify": OPTIONS},
        ],
    }
]
WRONG = "not the password"


@pytest.fixture
def asking(playbooks: Playbooks, hosts: Testbed) -> Playbooks:
    """Playbooks whose hosts are reached as a user who may use sudo with a password that no variable has."""
    playbooks.inventory = hosts.inventory(playbooks.folder / "asking.yml", user="mover")
    content = json.loads(playbooks.inventory.read_text())
    for name in ("ansible_become", "ansible_become_password"):
        del content["all"]["vars"][name]
    playbooks.inventory.write_text(json.dumps(content))
    small_tree(hosts)
    (hosts.root("alpha") / "data/src").chmod(0o700)  # mover alone may not look
    return playbooks


def password_file(playbooks: Playbooks, text: str) -> str:
    file = playbooks.folder / "password"
    file.write_text(text + "\n")
    return str(file)


def ad_hoc(playbooks: Playbooks, *options: str) -> Terminal:
    program = str(Path(sys.executable).with_name("ansible"))
    argv = [program, "-i", str(playbooks.inventory), "beta", "-m", "longhaul.fleet.transfer", *options]
    return Terminal([*argv, "-a", json.dumps(OPTIONS)], playbooks.environment())


def is_there(hosts: Testbed) -> bool:
    return compare.differences(hosts.root("alpha") / "data/src", hosts.root("beta") / "data/dest") == []


def test_a_typed_sudo_password_ad_hoc(hosts: Testbed, asking: Playbooks) -> None:
    before = everything(hosts)
    with ad_hoc(asking, "-b", "-K") as terminal:
        terminal.wait_for("BECOME password")
        terminal.type(WRONG + "\n")
        assert terminal.wait() != 0
        said = " ".join(terminal.output.split())
    assert "Incorrect sudo password" in said and "--ask-become-pass" in said, said
    assert everything(hosts) == before
    with ad_hoc(asking, "-b", "-K") as terminal:
        terminal.wait_for("BECOME password")
        terminal.type(SUDO_PASSWORD + "\n")
        assert terminal.wait() == 0, terminal.output
        assert SUDO_PASSWORD not in terminal.output
    assert is_there(hosts)


@pytest.mark.long
def test_a_sudo_password_from_a_file_in_a_play_with_become(hosts: Testbed, asking: Playbooks) -> None:
    run = asking.run(PLAY, "--become-password-file", password_file(asking, WRONG))
    assert "Incorrect sudo password" in run.result("Move")["msg"], run.output
    run = asking.run(PLAY, "-vvv", "--become-password-file", password_file(asking, SUDO_PASSWORD)).expect_success()
    assert run.result("Compare")["identical"] and is_there(hosts)
    assert SUDO_PASSWORD not in run.output


def test_no_sudo_password(asking: Playbooks) -> None:
    said = asking.run(PLAY).result("Move")["msg"]
    assert "password" in said and "--ask-become-pass" in said and "Incorrect" not in said, said


@pytest.mark.long
def test_the_variable_of_one_host_and_a_typed_password_for_the_other(hosts: Testbed, asking: Playbooks) -> None:
    """A variable wins over what was typed, and is told to its own host alone."""
    add_hosts(
        asking.inventory,
        {
            "right_source": ("alpha", {"ansible_become_password": SUDO_PASSWORD}),
            "right_dest": ("beta", {"ansible_become_password": SUDO_PASSWORD}),
            "wrong_dest": ("beta", {"ansible_become_password": WRONG}),
        },
    )
    move = {"longhaul.fleet.transfer": OPTIONS, "become": True, "ignore_errors": True}
    right = password_file(asking, SUDO_PASSWORD)
    mixed = {**move, "name": "Mixed", "delegate_to": "right_dest"}
    wrong = {**move, "name": "Wrong variable", "longhaul.fleet.transfer": {**OPTIONS, "dest_host": "wrong_dest"}}
    source = {**move, "name": "Variable", "longhaul.fleet.transfer": {**OPTIONS, "src_host": "right_source"}}
    run = asking.run([wrong, mixed, source], "--become-password-file", right, hosts="right_dest")
    assert "wrong_dest: Incorrect sudo password" in run.result("Wrong variable")["msg"]
    assert not run.result("Mixed").get("failed") and not run.result("Variable").get("failed"), run.output
    # The password that right_dest has in a variable is not tried at alpha, which has none.
    run = asking.run([{**mixed, "name": "Only the variable"}], hosts="right_dest")
    said = run.result("Only the variable")["msg"]
    assert "alpha: " in said and "password" in said and "Incorrect" not in said, said


@pytest.mark.long
def test_a_sudo_that_is_late_once(hosts: Testbed, asking: Playbooks) -> None:
    """As on a host under load: the first try says nothing for longer than Ansible waits."""
    late = '#!/bin/sh\nmkdir /tmp/was-late 2>/dev/null && sleep 30\nexec sudo "$@"\n'
    hosts.exec("alpha", ["sh", "-c", "cat >/usr/local/bin/late-sudo; chmod 755 /usr/local/bin/late-sudo"], input=late)
    slow = {"ansible_become_exe": "/usr/local/bin/late-sudo", "ansible_timeout": 3}
    add_hosts(asking.inventory, {"slow": ("alpha", {"ansible_become_password": SUDO_PASSWORD, **slow})})
    move = {"name": "Move", "longhaul.fleet.transfer": {**OPTIONS, "src_host": "slow"}, "become": True}
    run = asking.run([move], "--become-password-file", password_file(asking, SUDO_PASSWORD), hosts="beta")
    assert not run.result("Move").get("failed"), run.output
    assert run.output.count("slow did not answer for become in time. Trying again") == 1, run.output
    assert is_there(hosts)


def test_a_typed_ssh_password(hosts: Testbed, asking: Playbooks) -> None:
    content = json.loads(asking.inventory.read_text())
    known = asking.folder / "known_hosts"
    lines = [line.split(" ", 1) for line in hosts.known_hosts.read_text().splitlines()]
    known.write_text(
        "".join(f"{','.join(f'[{name}]:{PASSWORD_SSHD}' for name in names.split(','))} {key}\n" for names, key in lines)
    )
    shared = content["all"]["vars"]
    del shared["ansible_ssh_private_key_file"]
    shared["ansible_ssh_common_args"] = f"-F none -o PubkeyAuthentication=no -o UserKnownHostsFile={known}"
    shared["ansible_control_path_dir"] = str(asking.folder / "cp")  # no connection that is open already
    shared["ansible_port"] = PASSWORD_SSHD
    asking.inventory.write_text(json.dumps(content))
    argv = ["/usr/sbin/sshd", "-D", "-p", str(PASSWORD_SSHD), "-o", "PasswordAuthentication=yes"]
    with ExitStack() as stack:
        for host in hosts.hosts:
            stack.enter_context(beside(hosts, host, argv))
        until = time.monotonic() + 20
        while not all(any(one.port == PASSWORD_SSHD for one in hosts.listeners(host)) for host in hosts.hosts):
            assert time.monotonic() < until
            time.sleep(0.05)
        for typed, expected in ((WRONG, False), (SUDO_PASSWORD, True)):
            with ad_hoc(asking, "-b", "-k", "-K") as terminal:
                terminal.wait_for("SSH password")
                terminal.type(typed + "\n")
                terminal.wait_for("BECOME password")
                terminal.type(SUDO_PASSWORD + "\n")
                assert (terminal.wait() == 0) is expected, terminal.output
    assert is_there(hosts)
