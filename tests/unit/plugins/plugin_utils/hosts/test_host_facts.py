# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which variables a host may not set by its facts, as this ansible-core makes variables of facts."""

from __future__ import annotations

from typing import Any

import pytest
from ansible import constants
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import become_loader, connection_loader, shell_loader
from ansible.vars.clean import clean_facts, namespace_facts
from ansible.vars.manager import VariableManager
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_facts import (
    PLUGIN_OPTIONS,
    find_options_set_by_facts,
    find_set_by_facts,
    put_clean_first,
    refuse_facts,
)


def variables(facts: dict[str, Any], inventory: dict[str, Any] | None = None, injects: bool = True) -> dict[str, Any]:
    """Return the variables of a host that said these facts, as ansible-core makes them."""
    injected = clean_facts(facts) if injects else {}
    return {**(inventory or {}), **namespace_facts(facts), **injected}


@pytest.mark.parametrize(
    ("facts", "roles", "expected"),
    [
        ({"backup_after": [{"host": "localhost"}]}, ["backup"], ["backup_after"]),
        ({"__backup_before": []}, ["backup"], ["__backup_before"]),
        (
            {"migrate_before_cutover": [], "longhaul_link": "x"},
            ["migrate"],
            ["longhaul_link", "migrate_before_cutover"],
        ),
        ({"longhaul_trust": "full"}, [], ["longhaul_trust"]),
        ({"fleet_limits": {}}, ["migrate"], ["fleet_limits"]),
        ({"ansible_remote_tmp": "$(id)"}, [], ["ansible_remote_tmp"]),
        ({"ansible_sftp_executable": "/tmp/x"}, [], ["ansible_sftp_executable"]),
        # What does no harm: variables of roles that do not run, and devices whose names begin like a role's variables.
        ({"backup_after": []}, ["migrate"], []),
        ({"ansible_backup_lan": {}, "ansible_nic_0": {}, "ansible_longhaul_0": {}}, ["backup", "nic"], []),
        (
            {"remote_tmp": "mine", "ansible_distribution": "Debian", "ansible_local": {"backup_after": 1}},
            ["backup"],
            [],
        ),
    ],
)
def test_what_facts_may_not_set(facts: dict[str, Any], roles: list[str], expected: list[str]) -> None:
    assert find_set_by_facts(variables(facts), *roles) == expected
    assert find_set_by_facts(variables(facts, injects=False), *roles) == []


def test_the_inventory_may_set_them() -> None:
    inventory = {"backup_after": [], "longhaul_trust": "none", "ansible_remote_tmp": "/var/tmp"}
    assert find_set_by_facts(variables({"ansible_distribution": "Debian"}, inventory), "backup") == []
    assert find_set_by_facts(inventory, "backup") == []  # no facts were gathered


@pytest.mark.parametrize(
    ("name", "own", "said"),
    [
        ("inventory_dir", "/etc/ansible", "/tmp/x"),
        ("inventory_file", "/etc/ansible/hosts", "/tmp/x"),
        ("inventory_hostname", "web1", "web2"),
        ("inventory_hostname_short", "web1", "web2"),
        ("group_names", ["web"], ["admin"]),
    ],
)
def test_a_host_may_not_say_who_it_is_or_where_its_inventory_lies(name: str, own: Any, said: Any) -> None:
    assert find_set_by_facts(variables({name: said}, {name: own})) == [name]
    assert find_set_by_facts(variables({name: said}, {name: own}, injects=False)) == []
    assert find_set_by_facts(variables({f"ansible_{name}": said}, {name: own})) == []


@pytest.mark.parametrize("name", ["inventory_dir", "inventory_hostname", "group_names"])
def test_ansible_lets_facts_replace_them(name: str) -> None:
    """Where it no longer does, the refusal can go."""
    inventory = InventoryManager(DataLoader(), sources=["web1,"])
    manager = VariableManager(DataLoader(), inventory)
    manager.set_host_facts("web1", {name: "said"})
    host = inventory.get_host("web1")
    host.set_variable("inventory_dir", "/etc/ansible")
    found = manager.get_vars(host=host, include_hostvars=False)
    assert found[name] == "said"
    assert find_set_by_facts(found) == [name]


def test_options_of_plugins_are_known() -> None:
    """Each variable of a plugin by which ansible-core reaches a host is refused if it lets facts set it."""
    left: set[str] = set()
    loaders = {"connection": connection_loader, "shell": shell_loader, "become": become_loader}
    for kind, loader in loaders.items():
        for plugin in loader.all(class_only=True):
            named = constants.config.get_plugin_vars(kind, plugin._load_name)
            left |= {name for name in clean_facts(dict.fromkeys(named, "x")) if name.startswith("ansible_")}
    assert {"ansible_remote_tmp", "ansible_sftp_executable", "ansible_sudo_exe"} <= left
    assert {name.removeprefix("ansible_") for name in left} <= PLUGIN_OPTIONS


def test_options_of_other_plugins_are_found() -> None:
    said = variables(
        {"ansible_wire_program": "/tmp/x", "wire_port": 1}, {"ansible_wire_port": 2, "ansible_wire_user": 3}
    )
    named = ["ansible_wire_program", "ansible_wire_user", "ansible_wire_host"]
    assert find_options_set_by_facts(said, named) == ["ansible_wire_program"]


def test_the_refusal_says_what_to_type() -> None:
    said = refuse_facts("web1", ["backup_after"])
    assert said.startswith("backup_after: set among the facts of web1,") and "--flush-cache" in said
    assert "cacheable" in said and refuse_facts("web1", []) == ""


def test_a_host_that_says_too_much_does_not_speak_for_others() -> None:
    bad, good = variables({"migrate_jobs": []}), variables({"hostname": "x"})
    given: dict[str, Any] = {"hostvars": {"a": bad, "b": good, "c": bad, "d": good}}
    assert put_clean_first("abcd", given, "migrate") == ["b", "c", "d", "a"], "it looks no further than to b"
    assert put_clean_first("abcd", {**given, "ansible_limit": "c,d"}, "migrate") == ["b", "d", "a", "c"]
    assert put_clean_first("ac", given, "migrate") == ["a", "c"] and put_clean_first([], given, "migrate") == []
