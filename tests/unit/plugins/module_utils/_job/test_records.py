# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of jobs in a real folder."""

from __future__ import annotations

import os
import stat

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.state_folder import StateError
from ansible_collections.longhaul.fleet.plugins.module_utils._job import records

IDENTITY = "0123456789abcdef"


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "state_root", lambda: str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_record_is_kept_for_this_user_alone_and_found_again(root):
    assert records.find_record(IDENTITY) is None and records.list_records() == []
    records.keep_record(IDENTITY, {"phase": "seed"})
    records.keep_record(IDENTITY, {"phase": "sync"})
    found = records.find_record(IDENTITY)
    assert found["record"] == {"phase": "sync"} and 0 <= found["age"] < 60
    assert [one["id"] for one in records.list_records()] == [IDENTITY]
    assert os.listdir(root / "records") == [f"{IDENTITY}.json"]
    assert stat.S_IMODE((root / "records").stat().st_mode) == 0o700
    assert stat.S_IMODE((root / f"records/{IDENTITY}.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("identity, record", [("../x", {}), ("a/b", {}), (IDENTITY, {"a": "x" * records.LARGEST})])
def test_what_cannot_be_kept_is_refused(root, identity, record):
    with pytest.raises(StateError, match="cannot be kept"):
        records.keep_record(identity, record)
    assert not root.exists()


def test_what_cannot_be_read_is_left_out(root):
    records.keep_record(IDENTITY, {"phase": "seed"})
    folder = root / "records"
    (folder / "torn.json").write_text('{"pha')
    (folder / "list.json").write_text("[1]")
    (folder / "huge.json").write_text('"' + "x" * 2 * records.LARGEST + '"')
    (folder / "link.json").symlink_to(f"{IDENTITY}.json")
    (folder / "folder.json").mkdir()
    os.mkfifo(folder / "pipe.json")
    (folder / "a b.json").write_text("{}")
    assert [one["id"] for one in records.list_records()] == [IDENTITY]


def test_a_folder_that_others_could_write_to_is_not_used(root, tmp_path):
    root.mkdir()
    (root / "records").symlink_to(tmp_path)
    with pytest.raises(StateError, match="not a folder of this user"):
        records.keep_record(IDENTITY, {})
