# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What was renamed still counts under its old name, with a warning; the toggles of the roles have one pattern."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from ansible_collections.longhaul.fleet.plugins.filter import backup_logic, migrate_logic, nic_logic, rsyncd_logic
from ansible_collections.longhaul.fleet.plugins.plugin_utils import old_names
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.old_keys import find_problems

ROLES = Path(__file__).resolve().parents[3] / "roles"
FILTERS = (migrate_logic, nic_logic, rsyncd_logic)
RENAMED = {
    "migrate_install_packages": "migrate_manage_packages",
    "nic_install_packages": "nic_manage_packages",
    "rsyncd_install_package": "rsyncd_manage_packages",
}


@pytest.fixture
def warned(monkeypatch) -> list[tuple[str, str]]:
    """What was deprecated, and until when."""
    found: list[tuple[str, str]] = []

    class Display:
        def deprecated(self, msg: str, version: str, collection_name: str) -> None:
            assert collection_name == "longhaul.fleet"
            found.append((msg, version))

    monkeypatch.setattr(old_names, "Display", Display)
    return found


def is_on(new: str, **given) -> str:
    """Evaluate what the tasks of the role look at."""
    role = new.partition("_")[0]
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    for plugin in FILTERS:
        for name, ask in plugin.FilterModule().filters().items():
            environment.filters[f"longhaul.fleet.{name}"] = ask
    defaults = yaml.safe_load((ROLES / role / "defaults/main.yml").read_text())
    variables = yaml.safe_load((ROLES / role / "vars/main.yml").read_text())
    return environment.from_string(variables[f"__{new}"]).render({new: defaults[new], **given})


@pytest.mark.parametrize("old, new", RENAMED.items())
def test_an_old_name_counts_and_warns(warned, old, new):
    for value in (False, "false", "no"):
        assert is_on(new, **{old: value}) == "False"
    assert is_on(new, **{old: True}) == "True"
    assert is_on(new, **{old: True, new: False}) == "False"
    assert all(old in text and f"Use {new}." in text and until == "0.3.0" for text, until in warned), warned
    assert len(warned) == 5


@pytest.mark.parametrize("new", RENAMED.values())
def test_the_new_name_warns_of_nothing(warned, new):
    assert (is_on(new), is_on(new, **{new: "false"}), warned) == ("True", "False", [])


@pytest.mark.parametrize("old, new", RENAMED.items())
def test_the_tasks_look_at_both_names(old, new):
    """Nothing but the variable that warns reads a toggle."""
    role = new.partition("_")[0]
    tasks = "".join(path.read_text() for path in (ROLES / role / "tasks").glob("*.yml"))
    assert f"__{new}" in tasks and new not in tasks.replace(f"__{new}", "") and old not in tasks


def test_what_a_role_manages_is_named_after_it():
    for path in ROLES.glob("*/defaults/main.yml"):
        for name in yaml.safe_load(path.read_text()):
            assert "_install_" not in name, name
            thing = name.rpartition("_")[2]
            if thing in ("packages", "service", "firewall", "selinux"):
                assert name == f"{path.parents[1].name}_manage_{thing}"


def test_a_backup_job_may_have_the_old_name_of_a_key(warned):
    ask = backup_logic.FilterModule().filters()["backup_logic"]
    groups = {"all": ["web", "vault"]}
    job: dict[str, Any] = {
        "name": "data",
        "host": "web",
        "src": "/srv",
        "repository": {"host": "vault", "path": "/b"},
        "keep": {"last": 1},
    }

    def subset(**keys: str) -> str:
        assert find_problems([{**job, **keys}], groups) == []
        return ask([{**job, **keys}], "runs", groups=groups)[0]["check_subset"]

    assert (subset(check_subset="1/3"), subset(), warned) == ("1/3", "", [])
    assert (subset(check_share="1/7"), subset(check_share="1/7", check_subset="1/3")) == ("1/7", "1/3")
    assert "the subset '7'" in find_problems([{**job, "check_share": "7"}], groups)[0]
    assert set(warned) == {("The key check_share is called check_subset now. Use check_subset.", "0.3.0")}
