# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The list of ``ansible-doc -l`` says which plugins are parts of a role, and not meant for users."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"
PUBLIC = {
    "modules/benchmark",
    "modules/fleet_status",
    "modules/network_checkpoint",
    "modules/nic_info",
    "modules/nic_path_info",
    "modules/rsyncd_diagnose",
    "modules/snapshot",
    "modules/ssh_offer",
    "modules/transfer",
    "modules/transfer_control",
    "modules/transfer_info",
    "modules/verify",
    "filter/restore_choose",
}
EVERY = {
    f"{path.parent.name}/{path.stem}": path for kind in ("modules", "filter") for path in PLUGINS.glob(f"{kind}/*.py")
}


def short_description(path: Path) -> str:
    """Return what ``ansible-doc -l`` shows of a plugin."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DOCUMENTATION":
            return yaml.safe_load(ast.literal_eval(node.value))["short_description"]
    raise AssertionError(f"{path} has no documentation")


def test_the_public_plugins_are_there():
    assert set(EVERY) >= PUBLIC


def test_no_filter_is_internal():
    assert {name for name in EVERY if name.startswith("filter/")} <= PUBLIC


@pytest.mark.parametrize("name", sorted(EVERY))
def test_a_plugin_is_public_or_says_that_it_is_internal(name):
    assert short_description(EVERY[name]).startswith("Internal: ") == (name not in PUBLIC)
