# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each member of the type of the options' values is an option of the table, with the type of its kind."""

from __future__ import annotations

import ast
from pathlib import Path

from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd import options
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.check import OWN_KEYS

PYTHON_TYPES = {
    options.BOOL: "bool",
    options.INT: "int",
    options.TEXT: "str",
    options.PATH: "str",
    options.WORD: "str",
    options.WORDS: "tuple[str, ...]",
    options.NAMES: "tuple[str, ...]",
}


def test_the_type_has_options_of_the_table():
    source = Path(options.__file__).read_text(encoding="utf-8")
    (found,) = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef) and node.name == "Values"
    ]
    members = {
        node.target.id: ast.get_source_segment(source, node.annotation)
        for node in found.body
        if isinstance(node, ast.AnnAssign)
    }
    kinds = {**OWN_KEYS, **{key: option.kind for key, option in options.OPTIONS.items()}}
    assert members.items() <= {key: PYTHON_TYPES[kind] for key, kind in kinds.items()}.items()
