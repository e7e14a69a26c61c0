# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every role documents exactly the variables that it has, with the same defaults."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.longhaul.fleet.plugins.modules.transfer import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup_jobs import TRANSFER

ROLES = Path(__file__).resolve().parents[3] / "roles"
NAMES = sorted(path.name for path in ROLES.iterdir() if (path / "defaults").is_dir())
PYTHON_TYPES = {"str": str, "path": str, "int": int, "bool": bool, "list": list, "dict": dict, "float": float}


def load(role: str, path: str) -> dict:
    return yaml.safe_load((ROLES / role / path).read_text()) or {}


def options_of(role: str) -> dict:
    """Give the options of all entry points: they share the role's defaults."""
    points = load(role, "meta/argument_specs.yml")["argument_specs"].values()
    return {name: option for point in points for name, option in point.get("options", {}).items()}


def all_options(options: dict, prefix: str = ""):
    for name, option in options.items():
        yield prefix + name, option
        yield from all_options(option.get("options", {}), f"{prefix}{name}.")


@pytest.mark.parametrize("role", NAMES)
def test_specs_and_defaults_name_the_same_variables_with_the_same_values(role):
    documented = {
        name: option.get("default") for name, option in options_of(role).items() if not option.get("required")
    }
    assert documented == load(role, "defaults/main.yml")


@pytest.mark.parametrize("role", NAMES)
def test_public_names_begin_with_the_role_and_private_ones_do_not(role):
    assert all(name.startswith(f"{role}_") for name in load(role, "defaults/main.yml"))
    assert all(name.startswith(f"__{role}_") for name in load(role, "vars/main.yml"))


@pytest.mark.parametrize("role", NAMES)
def test_every_option_has_a_type_a_description_and_a_default_of_its_type(role):
    for name, option in all_options(options_of(role)):
        assert option.get("description"), name
        assert option["type"] in PYTHON_TYPES, name
        if option.get("default") is not None:
            assert isinstance(option["default"], PYTHON_TYPES[option["type"]]), name
        if "choices" in option and "default" in option:
            chosen = option["default"] if option["type"] == "list" else [option["default"]]
            assert set(chosen) <= set(option["choices"]), name


@pytest.mark.parametrize("role", NAMES)
def test_the_readme_names_every_variable(role):
    text = (ROLES / role / "README.md").read_text()
    assert [name for name in options_of(role) if f"`{name}`" not in text] == []


def transfer_options() -> dict:
    options = yaml.safe_load(DOCUMENTATION)["options"]
    # These two are the role's own business: it waits always, and it compares at the right moment.
    return {name: option for name, option in options.items() if name not in ("wait", "verify")}


def expect_the_same(job: dict, options: dict):
    for name, option in options.items():
        assert {k: job[name].get(k) for k in ("type", "elements", "choices")} == {
            k: option.get(k) for k in ("type", "elements", "choices")
        }, name
        assert bool(job[name].get("no_log")) == name.endswith("password"), name


def test_a_migration_job_has_every_option_of_transfer_with_its_type_and_choices():
    expect_the_same(options_of("migrate")["migrate_jobs"]["options"], transfer_options())


def test_a_backup_job_has_every_option_of_transfer_that_a_backup_does_not_decide():
    options = transfer_options()
    decided = {"src_host", "src", "dest_host", "dest", "delete", "max_delete", "link_dest", "partial", "connect"}
    assert set(options) == decided | set(TRANSFER) | {"filter", "bwlimit"}
    expect_the_same(
        options_of("backup")["backup_jobs"]["options"],
        {name: option for name, option in options.items() if name not in decided},
    )


def test_migrate_hands_every_option_of_a_job_to_transfer():
    (task,) = [task for task in load("migrate", "tasks/transfer.yml") if "longhaul.fleet.transfer" in task]
    handed = task["longhaul.fleet.transfer"]
    assert set(handed) == {*transfer_options(), "verify"}
    for name in transfer_options():
        assert handed[name].startswith(f"{{{{ __migrate_job.{name}"), name
