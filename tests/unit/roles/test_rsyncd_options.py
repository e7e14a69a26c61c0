# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role rsyncd documents the options of rsyncd.conf as the table has them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.options import (
    BOOL,
    INT,
    NAMES,
    NOT_SHARED,
    OF_A_MODULE,
    OPTIONS,
    PATH,
    TEXT,
    WORD,
    WORDS,
)

ANSIBLE_TYPES = {BOOL: "bool", INT: "int", TEXT: "str", PATH: "str", WORD: "str", WORDS: "list", NAMES: "list"}
SPECS = Path(__file__).resolve().parents[3] / "roles/rsyncd/meta/argument_specs.yml"


def described(variable: str) -> dict:
    return yaml.safe_load(SPECS.read_text())["argument_specs"]["main"]["options"][variable]["options"]


@pytest.mark.parametrize(
    "variable, keys, own",
    [
        ("rsyncd_modules", OF_A_MODULE, {"name", "state", "create_path", "path_mode"}),
        ("rsyncd_options", frozenset(OPTIONS) - NOT_SHARED, set()),
    ],
)
def test_the_role_documents_every_option_with_its_type(variable, keys, own):
    options = described(variable)
    assert set(options) - own == keys
    for key in keys:
        assert options[key]["type"] == ANSIBLE_TYPES[OPTIONS[key].kind], key
        assert tuple(options[key].get("choices", ())) == OPTIONS[key].choices, key
