# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs of the roles have the options of the module transfer, with one declaration."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.longhaul.fleet.plugins.module_utils._migrate.preflight import TOOLS
from ansible_collections.longhaul.fleet.plugins.modules.transfer import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.argument_spec import documented_options
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup import jobs as backup
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate import jobs as migrate
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.preflight import NEEDED, packages_of
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.request import NOT_TO_CHOOSE
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.methods import METHODS

ROLES = Path(__file__).resolve().parents[3] / "roles"
SET_BY_ROLE = {"migrate": migrate.SET_BY_ROLE, "backup": backup.SET_BY_ROLE}
OF_ONE_JOB = {"migrate": migrate.OF_ONE_JOB, "backup": backup.OF_ONE_JOB}
# Options of transfer that a role has as well, with a meaning of its own; all others are declared once.
OWN = {"migrate": {"src_host", "src", "dest_host", "dest", "verify"}, "backup": {"src", "verify"}}


def options_of(role: str) -> dict:
    spec = yaml.safe_load((ROLES / role / "meta/argument_specs.yml").read_text())
    return spec["argument_specs"]["main"]["options"]


def described(option: dict) -> str:
    return " ".join(option["description"])


@pytest.mark.parametrize("role", SET_BY_ROLE)
def test_a_role_restates_no_option_of_transfer(role: str):
    assert options_of(role)[f"{role}_jobs"]["options"].keys() & documented_options(DOCUMENTATION) == OWN[role]
    assert "options" not in options_of(role)[f"{role}_defaults"]


@pytest.mark.parametrize("names", [*SET_BY_ROLE.values(), NOT_TO_CHOOSE], ids=[*SET_BY_ROLE, "restore"])
def test_what_a_role_sets_itself_is_an_option_of_transfer(names: Collection[str]):
    assert set(names) - set(documented_options(DOCUMENTATION)) == set()


@pytest.mark.parametrize("role", SET_BY_ROLE)
def test_the_documentation_of_jobs_names_the_options_that_they_do_not_have(role: str):
    options = options_of(role)
    (text,) = [one for one in options[f"{role}_jobs"]["description"] if "M(longhaul.fleet.transfer)" in one]
    assert set(re.findall(r"C\((\w+)\)", text)) == set(SET_BY_ROLE[role]) - OWN[role]
    text = described(options[f"{role}_defaults"])
    assert set(re.findall(r"_jobs\[\]\.(\w+)\)", text)) == set(OF_ONE_JOB[role])


@pytest.mark.parametrize("role", SET_BY_ROLE)
def test_ansible_leaves_what_is_inside_of_jobs_to_the_role(role: str):
    options = options_of(role)
    given = {f"{role}_jobs": [{"name": "x", "delta": "none", "deltaa": 1}, "x"], f"{role}_defaults": {"x": 1}}
    assert ArgumentSpecValidator(options).validate(given).error_messages == []


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_a_migration_knows_the_programs_of_each_method_that_can_be_named(method: str):
    """And looks for these on both hosts, and knows the packages that have them."""
    assert method in documented_options(DOCUMENTATION)["method"]["choices"]
    for program in NEEDED[method]:
        assert program in TOOLS
        assert packages_of([program], "Debian")
