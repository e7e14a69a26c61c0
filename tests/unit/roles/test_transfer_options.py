# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The jobs of the roles have the options of the module transfer."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.longhaul.fleet.plugins.module_utils._migrate.preflight import TOOLS
from ansible_collections.longhaul.fleet.plugins.modules.transfer import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.argument_spec import documented_options
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.jobs import TRANSFER
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.preflight import NEEDED, packages_of
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.methods import METHODS

ROLES = Path(__file__).resolve().parents[3] / "roles"


def load(role: str, path: str) -> dict:
    return yaml.safe_load((ROLES / role / path).read_text()) or {}


def options_of(role: str) -> dict:
    return load(role, "meta/argument_specs.yml")["argument_specs"]["main"]["options"]


def transfer_options() -> dict:
    options = documented_options(DOCUMENTATION)
    # These are the role's own business: it waits always, so collects nothing, and it compares at the right moment.
    return {name: option for name, option in options.items() if name not in ("wait", "collect", "verify")}


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
    decided = {
        "src_host",
        "src",
        "dest_host",
        "dest",
        "delete",
        "max_delete",
        "link_dest",
        "link_dest_exclude",
        "partial",
        "connect",
        "inplace",
        "owner_warnings",
        "sync",  # a snapshot is on the disk before it is complete
        "owner_map",  # a snapshot has the owners as they are
    }
    assert set(options) == decided | set(TRANSFER) | {"filter", "bwlimit"}
    expect_the_same(
        options_of("backup")["backup_jobs"]["options"],
        {name: option for name, option in options.items() if name not in decided},
    )


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_a_migration_knows_the_programs_of_each_method_that_can_be_named(method: str):
    """And looks for these on both hosts, and knows the packages that have them."""
    assert method in transfer_options()["method"]["choices"]
    for program in NEEDED[method]:
        assert program in TOOLS
        assert packages_of([program], "Debian")
