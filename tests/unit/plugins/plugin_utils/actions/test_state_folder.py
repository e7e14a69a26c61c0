# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where reports and states are, and how a folder that cannot be written is noticed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.state_folder import (
    find_benchmark_folder,
    find_folder,
    find_inventory,
    state_folder,
    try_writing,
)


def test_it_is_beside_the_inventory_unless_the_user_names_another(tmp_path: Path) -> None:
    inventory = str(tmp_path)
    assert (
        state_folder("longhaul-migrate", "", inventory, [f"{inventory}/hosts.yml"]) == f"{inventory}/longhaul-migrate"
    )
    assert state_folder("longhaul-migrate", "/srv", inventory, [inventory]) == "/srv/longhaul-migrate"


def test_it_is_not_in_a_folder_of_which_ansible_reads_each_file_as_an_inventory(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory"
    inventory.mkdir()
    assert state_folder("longhaul-backup", "", str(inventory), [f"{inventory}/"]) == str(tmp_path / "longhaul-backup")
    (inventory / "longhaul-backup").mkdir()  # by an earlier release
    assert state_folder("longhaul-backup", "", str(inventory), [str(inventory)]) == str(inventory / "longhaul-backup")


@pytest.mark.parametrize(("configured", "expected"), [("", "inventory"), ("states", "states")])
def test_results_of_benchmarks_are_found_by_all_tasks(tmp_path: Path, configured: str, expected: str) -> None:
    """The benchmark runs on localhost, and a migration that has a folder of its own on the hosts of its play."""
    host = {"inventory_dir": str(tmp_path / "inventory")}
    task = {"groups": {"all": ["new"]}, "hostvars": {"new": host}, "ansible_inventory_sources": []}
    task["longhaul_state_dir"] = str(tmp_path / configured) if configured else ""
    for variables in (task, {**task, **host}):
        found = find_benchmark_folder("", variables, lambda value: value)
        assert found == os.path.realpath(tmp_path / expected / "longhaul-benchmark")


def test_without_an_inventory_it_is_in_the_folder_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", "/srv/work")
    assert state_folder("longhaul-restore", "", "", ["old,new,"]) == "/srv/work/longhaul-restore"


def test_what_the_user_names_wins_and_is_a_path_without_links(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    variables = {"longhaul_state_dir": "{{ home }}/state", "inventory_dir": "/srv", "ansible_inventory_sources": ["/x"]}
    given = find_folder("longhaul-migrate", f"{tmp_path}/link/reports", variables, str)
    assert given == str(tmp_path.resolve() / "reports")
    assert find_folder("longhaul-migrate", "~/reports", variables, str) == os.path.expanduser("~/reports")
    templated = find_folder("longhaul-migrate", "", variables, lambda text: str(text).replace("{{ home }}", "/home"))
    assert templated == "/home/state/longhaul-migrate"
    beside = find_folder("longhaul-migrate", None, {"inventory_dir": str(tmp_path)}, str)
    assert beside == str(tmp_path.resolve() / "longhaul-migrate")


def test_the_inventory_is_the_one_that_no_fact_has_named() -> None:
    """Facts of a cache win over the inventory, and a host says in them what it likes."""
    forged = {"inventory_dir": "/tmp/forged", "ansible_facts": {"inventory_dir": "/tmp/forged"}}
    hosts = {"web": forged, "localhost": {}, "db": {"inventory_dir": "/srv", "ansible_facts": {"os_family": "Debian"}}}
    assert find_inventory({"groups": {"all": list(hosts)}, "hostvars": hosts}) == "/srv"
    assert find_inventory({"groups": {"all": ["web"]}, "hostvars": hosts}) == ""


def test_trying_leaves_nothing_behind(tmp_path: Path) -> None:
    try_writing(str(tmp_path / "a/b"))
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_raises(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        try_writing(str(tmp_path / "file/state"))
    with pytest.raises(OSError):
        try_writing("/proc/longhaul-migrate")
