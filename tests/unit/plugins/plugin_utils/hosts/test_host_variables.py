# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connection variables that are templates mean for a HostRunner what they mean for a delegated task."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.vault import VaultLib, VaultSecret
from ansible_collections.longhaul.fleet.tests.support.collections_folder import collections_folder

EVIL = "{{ lookup('ansible.builtin.pipe', 'touch %s') }}"
OPTIONS = ("host", "port", "remote_user", "password", "ssh_common_args", "ssh_extra_args", "private_key_file")

# An action that tells the options of a connection: that which Ansible made, or the one of a HostRunner for ``host``.
TOLD = f"""
import json
from ansible.plugins.action import ActionBase
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed, HostRunner

class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        host, way = self._task.args["of"], self._task.args["way"]
        try:
            asked = self if way == "delegated" else HostRunner(self, host, task_vars)._action
            connection = asked._connection
        except HostFailed as error:
            said = {{"failed": str(error)}}
        else:
            said = {{name: connection.get_option(name) for name in {OPTIONS!r}}}
            if connection.become is not None:
                said.update((name, connection.become.get_option(name)) for name in ("become_user", "become_pass"))
        with open(self._task.args["file"], "a") as told:
            told.write(json.dumps([host, way, said], default=str) + "\\n")
        return {{}}
"""
FACTS = """
from ansible.plugins.action import ActionBase

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        said = "{{ lookup('ansible.builtin.pipe', 'touch %s') }}" % self._task.args["file"]
        return {"ansible_facts": {"ansible_address": said, "ansible_user_id": said}}
"""

# Each host of this table is asked in both ways, and what is told must be the same. "gate" has an address of its own.
TABLE = """
all:
  vars:
    site: everywhere
  children:
    gates:
      hosts:
        gate:
          address: 192.0.2.9
          ansible_host: "{{ address }}"
          ansible_user: "gate-{{ site }}"
    table:
      vars:
        ansible_host: host.example
      hosts:
        by_hostvars:
          ansible_host: "{{ hostvars['gate'].address }}"
        by_hostvars_that_are_templates:
          ansible_host: "{{ hostvars.gate.ansible_host }}"
          ansible_port: "{{ 22 + 1 }}"
        by_jump:
          ansible_ssh_common_args: "-J {{ hostvars['gate'].ansible_user }}@{{ hostvars['gate'].ansible_host }}"
        by_proxy:
          ansible_ssh_common_args: "-o ProxyCommand='ssh -W %h:%p {{ hostvars.gate.ansible_host }}'"
        by_groups:
          ansible_host: "{{ groups['gates'] | map('extract', hostvars, 'address') | first }}"
        by_lookup:
          ansible_become: true
          ansible_become_password: "{{ lookup('ansible.builtin.env', 'TOLD_SECRET') }}"
        by_file:
          ansible_password: "{{ lookup('ansible.builtin.file', folder ~ '/word') }}"
        by_itself:
          ansible_host: "{{ short }}.{{ domain }}"
          ansible_user: "{{ short }}"
          domain: "{{ site }}.example"
          short: x
        by_play:
          ansible_host: "{{ prefix }}.example"
        by_play_over_inventory:
          ansible_host: "{{ prefix }}.example"
          prefix: overridden
        by_task:
          ansible_host: "{{ of_task }}.example"
        by_extra:
          ansible_host: "{{ folder | basename }}"
        by_condition:
          ansible_host: "{{ hostvars['gate'].address if 'gate' in groups['gates'] else 'no' }}"
        unneeded:
          ansible_become_password: "{{ nothing }}"
          ansible_winrm_path: "{{ nothing }}"
        vaulted:
          ansible_password: !vault |
@vault@
"""
MORE = """
    others:
      vars:
        ansible_host: host.example
      hosts:
        local_name:
          ansible_host: "{{ inventory_hostname }}.example"
        omits:
          ansible_user: "{{ nothing | default(omit) }}"
          ansible_port: "{{ omit }}"
        broken:
          ansible_host: "{{ nothing }}"
        broken_become:
          ansible_become: true
          ansible_become_password: "{{ nothing }}"
        liar:
          ansible_host: "{{ ansible_facts.address | default('h') }}"
          ansible_user: "{{ hostvars['liar'].ansible_facts.user_id | default('u') }}"
        believer:
          ansible_host: "x{{ hostvars['liar'].ansible_facts.address }}"
          ansible_user: "{{ hostvars['liar'].ansible_user_id }}"
"""


@pytest.fixture(name="told", scope="module")
def _told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return what was told of each host, by the way in which it was asked; and the folder under ''."""
    folder = tmp_path_factory.mktemp("told")
    secret = VaultLib([("default", VaultSecret(b"vault"))]).encrypt("from the vault").decode()
    inventory = TABLE.replace("@vault@\n", "".join(f"            {line}\n" for line in secret.splitlines())) + MORE
    (folder / "inventory.yml").write_text(inventory)
    (folder / "vault").write_text("vault")
    (folder / "word").write_text("from a file")
    (folder / "ansible.cfg").touch()
    (folder / "actions").mkdir()
    (folder / "actions/told.py").write_text(TOLD)
    (folder / "actions/lie.py").write_text(FACTS)
    ask = {"told": {"of": "{{ item }}", "way": "runner", "file": f"{folder}/told"}, "loop": "{{ groups['all'] }}"}
    lie = {"lie": {"file": f"{folder}/evil"}, "delegate_to": "liar", "delegate_facts": True}
    tasks: list[dict[str, Any]] = [
        lie,
        {**ask, "vars": {"of_task": "task"}},
        {
            **ask,
            "told": {**ask["told"], "way": "delegated"},
            "loop": "{{ groups['table'] }}",
            "vars": {"of_task": "task"},
            "delegate_to": "{{ item }}",
        },
    ]
    play = {
        "hosts": "localhost",
        "connection": "ssh",
        "gather_facts": False,
        "vars": {"prefix": "play"},
        "tasks": tasks,
    }
    (folder / "play.yml").write_text(json.dumps([play]))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "ansible", "playbook", "-i", str(folder / "inventory.yml")),
            *("-e", f"folder={folder}", str(folder / "play.yml")),
        ],
        env={
            **environment,
            "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
            "ANSIBLE_HOME": str(folder / "home"),
            "ANSIBLE_ACTION_PLUGINS": str(folder / "actions"),
            "ANSIBLE_COLLECTIONS_PATH": str(collections_folder()),
            "ANSIBLE_VAULT_PASSWORD_FILE": str(folder / "vault"),
            "ANSIBLE_LOCALHOST_WARNING": "0",
            "TOLD_SECRET": "from the environment",
            "LC_ALL": "C.UTF-8",
        },
        capture_output=True,
        check=False,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found: dict[str, dict[str, Any]] = {"": {"folder": folder}}
    for line in (folder / "told").read_text().splitlines():
        host, way, said = json.loads(line)
        found.setdefault(host, {})[way] = said
    return found


IN_TABLE = TABLE.partition("    table:")[2].partition("      hosts:")[2]
HOSTS = re.findall(r"^ {8}(\w+):$", IN_TABLE, re.MULTILINE)


@pytest.mark.parametrize("host", HOSTS)
def test_what_works_for_a_delegated_task_works_here(told: dict[str, Any], host: str) -> None:
    assert told[host]["runner"] == told[host]["delegated"]
    assert "{{" not in str(told[host])


def test_the_table_says_something(told: dict[str, Any]) -> None:
    expected = {
        "by_hostvars": ("host", "192.0.2.9"),
        "by_hostvars_that_are_templates": ("port", 23),
        "by_jump": ("ssh_common_args", "-J gate-everywhere@192.0.2.9"),
        "by_groups": ("host", "192.0.2.9"),
        "by_lookup": ("become_pass", "from the environment"),
        "by_file": ("password", "from a file"),
        "by_itself": ("host", "x.everywhere.example"),
        "by_play": ("host", "play.example"),
        "by_play_over_inventory": ("host", "play.example"),
        "by_task": ("host", "task.example"),
        "vaulted": ("password", "from the vault"),
    }
    assert {host: (name, told[host]["runner"][name]) for host, (name, _value) in expected.items()} == expected


def test_the_name_of_a_host_is_its_own(told: dict[str, Any]) -> None:
    assert told["local_name"]["runner"]["host"] == "local_name.example"


def test_what_is_omitted_is_not_set(told: dict[str, Any]) -> None:
    unset = told["by_hostvars"]["runner"]
    assert {name: told["omits"]["runner"][name] for name in ("remote_user", "port")} == {
        name: unset[name] for name in ("remote_user", "port")
    }


@pytest.mark.parametrize(("host", "name"), [("broken", "ansible_host"), ("broken_become", "ansible_become_password")])
def test_a_variable_that_is_needed_and_has_no_value_is_named(told: dict[str, Any], host: str, name: str) -> None:
    said = told[host]["runner"]["failed"]
    assert said.startswith(f"{host}: its variable {name} has no value: ") and "'nothing' is undefined" in said


def test_no_fact_is_a_template(told: dict[str, Any]) -> None:
    folder: Path = told[""]["folder"]
    evil = EVIL % (folder / "evil")
    assert (told["liar"]["runner"]["host"], told["liar"]["runner"]["remote_user"]) == (evil, evil)
    assert (told["believer"]["runner"]["host"], told["believer"]["runner"]["remote_user"]) == (f"x{evil}", evil)
    assert not (folder / "evil").exists()
