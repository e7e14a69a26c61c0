# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of a transfer as a job reads them, and those that it refuses."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core import settings as module
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._core.settings import parse_settings
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import settings


def whole(**changes: object) -> dict[str, object]:
    """Return settings of which none is missing."""
    optional = {"encrypt": True, "owner_map": {}, "rsync": {"source": [3, 2, 7], "dest": [3, 5, 0]}, "sftp": {}}
    return {**settings("stream"), **optional, **changes}


def test_what_is_whole_is_read_as_it_is():
    assert parse_settings(whole()) == whole()
    assert parse_settings(whole(rsyncd_module={"name": "m"})) == whole(rsyncd_module={"name": "m"})


def test_an_object_of_which_a_member_may_be_null_may_not_be_null_itself():
    assert parse_settings(whole(tar={"source": None, "dest": "gnu"}))["tar"]["source"] is None
    with pytest.raises(TransferFailed, match="no setting tar that can be read"):
        parse_settings(whole(tar=None))


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


@pytest.mark.parametrize("name", sorted(module.KINDS))
def test_each_setting_is_checked_for_its_type(name):
    for value in (1.5, b"x"):  # no setting has these
        with pytest.raises(TransferFailed, match=f"no setting {name} that can be read"):
            parse_settings(whole(**{name: value}))


def test_each_setting_has_a_type_that_the_parser_knows():
    kinds = {kind.partition(" | ")[0] for kind in module.KINDS.values()}
    assert {one for one in kinds if not one.startswith(("dict[", "list[str]"))} == {
        *("str", "int", "bool"),
        *("Compression", "SftpTuning", "DaemonModule"),
    }


def test_what_may_be_null_is_null_where_a_request_lacks_it():
    given = whole()
    del given["max_delete"]
    assert parse_settings(given)["max_delete"] is None
    del given["rsyncd_module"]
    assert parse_settings(given)["rsyncd_module"] is None
