# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of a transfer: what a job reads, what it refuses, and what the documentation says of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core import settings as module
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._core.settings import parse_settings
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import settings

ARCHITECTURE = Path(__file__).resolve().parents[5] / "docs/architecture.md"
OPTIONAL = {"rsyncd_module"}
SIMPLE = {
    "str": "str",
    "str | None": "str or null",
    "bool": "bool",
    "int": "int",
    "int | None": "int or null",
    "list[str]": "list[str]",
}


def annotations() -> dict[str, str]:
    """Return the type of each setting, as it is written: at run time the type is a plain dict."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    fields = [*classes["_Always"].body, *classes["Settings"].body]
    text = {node.target.id: node.annotation for node in fields if isinstance(node, ast.AnnAssign)}
    return {name: _written(kind) for name, kind in text.items()}


def _written(kind: ast.expr) -> str:
    lines = Path(module.__file__).read_text(encoding="utf-8").splitlines()
    return lines[kind.lineno - 1][kind.col_offset : kind.end_col_offset]


def whole(**changes: object) -> dict[str, object]:
    """Return settings of which none is missing."""
    optional = {"encrypt": True, "owner_map": {}, "rsync": {"source": [3, 2, 7], "dest": [3, 5, 0]}, "sftp": {}}
    return {**settings("stream"), **optional, **changes}


def test_what_is_whole_is_read_as_it_is():
    assert parse_settings(whole()) == whole()
    assert parse_settings(whole(rsyncd_module={"name": "m"})) == whole(rsyncd_module={"name": "m"})


def test_a_request_of_an_earlier_version_means_what_it_meant_then():
    given = whole()
    lacking = (
        "suspects",
        "inplace",
        "delta",
        "streams_max",
        "streams_first",
        "congestion",
        "congestion_first",
        "owner_map",
        "sftp",
        "only",
        "encrypt",
    )
    for name in lacking:
        del given[name]
    found = parse_settings({**given, "streams": 3})
    assert {name: found[name] for name in lacking} == {
        "suspects": [],
        "inplace": False,
        "delta": "auto",
        "streams_max": 3,
        "streams_first": 3,
        "congestion": "none",
        "congestion_first": "",
        "owner_map": {},
        "sftp": {},
        "only": None,
        "encrypt": False,
    }


@pytest.mark.parametrize("name", ["id", "method", "check", "rules", "delete", "preserve", "timeout", "link_dest"])
def test_a_setting_that_is_missing_is_named(name):
    given = whole()
    del given[name]
    with pytest.raises(TransferFailed, match=f"no setting {name} that can be read"):
        parse_settings(given)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", 1),
        ("check", "no"),
        ("check", 1),
        ("rules", "- *.tmp"),
        ("rules", [1]),
        ("only", b"a"),
        ("max_delete", True),
        ("bwlimit", "0"),
        ("streams", True),
        ("streams", None),
        ("compress", "zstd"),
        ("rsyncd_module", "backup"),
    ],
)
def test_a_setting_of_another_type_is_named(name, value):
    with pytest.raises(TransferFailed, match=f"no setting {name} that can be read"):
        parse_settings(whole(**{name: value}))


def test_what_is_no_table_is_refused():
    with pytest.raises(TransferFailed, match="no setting id that can be read"):
        parse_settings(None)


def test_the_parser_checks_each_setting_for_its_type():
    words = {"str": str, "bool": bool, "int": int, "str | None": str, "int | None": int}
    kinds = {name: words.get(kind, list if kind.startswith("list") else dict) for name, kind in annotations().items()}
    may_lack = {name for name, kind in annotations().items() if kind.endswith("None")} | OPTIONAL
    assert {name: (kind, type(None)) if name in may_lack else (kind,) for name, kind in kinds.items()} == module._TYPES


def test_the_documentation_lists_each_setting_with_its_type():
    text = ARCHITECTURE.read_text(encoding="utf-8")
    rows = text[text.index("Settings, the same on both sides") :].split("\n\n")[1]
    documented = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", rows, re.MULTILINE))
    assert documented == {
        name: SIMPLE.get(kind, "table") + (", optional" if name in OPTIONAL else "")
        for name, kind in annotations().items()
    }
