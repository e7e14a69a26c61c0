# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dumps come into a folder of their own, all at once, and what a preparation made goes again and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.dump_folder import (
    MARK,
    DumpFolder,
    file_name,
    find_files,
    name_in_file,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.made import MadeList
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.request import DumpPlace
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed


@pytest.mark.parametrize("name", ["plain", ".dot", "a/b", "ü ber", "100%", "-x", "a\nb", "%2F", "C:\\d"])
def test_each_name_has_a_file_of_its_own(name):
    file = file_name(name, ".dump")
    assert "/" not in file and not file.startswith(".") and file.isascii() and file.isprintable()
    assert name_in_file(file, ".dump") == name


def test_a_name_that_is_too_long_is_refused():
    assert file_name("x" * 200, ".dump")
    with pytest.raises(TransferFailed, match="too long"):
        file_name("ä" * 200, ".dump")


def place(root: Path, into: str = "a/dumps", keep: bool = False) -> DumpPlace:
    return DumpPlace(str(root), str(root / into), keep)


def dump(folder: DumpFolder, **contents: str) -> None:
    for name, content in contents.items():
        fd = folder.create(name)
        os.write(fd, content.encode())
        os.close(fd)


def test_dumps_get_their_names_at_once_and_are_undone(tmp_path):
    root, made = tmp_path / "src", MadeList(str(tmp_path / "made"))
    (root / "a").mkdir(parents=True)
    (root / "a/file").write_text("of the user")
    before = sorted(os.walk(root))
    with DumpFolder(place(root), made) as folder:
        dump(folder, one="1", two="22")
        assert sorted(os.listdir(root / "a/dumps")) == [MARK, "one.part", "two.part"]
        assert folder.publish() == 3
    assert sorted(os.listdir(root / "a/dumps")) == [MARK, "one", "two"]
    assert (root / "a/dumps").stat().st_mode & 0o777 == 0o700
    assert (root / "a/dumps/one").stat().st_mode & 0o777 == 0o600
    assert MadeList(str(tmp_path / "made")).undo() == "" and made.read() == []
    assert sorted(os.walk(root)) == before


def test_others_pass_through_new_folders_above_the_dumps_and_not_through_these(tmp_path):
    with DumpFolder(place(tmp_path, "a/b/dumps"), MadeList(str(tmp_path / "made"))):
        modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b", "a/b/dumps")]
    assert modes == [0o711, 0o711, 0o700]


def test_a_failure_leaves_the_dumps_that_are_kept(tmp_path):
    root, made = tmp_path / "src", MadeList(str(tmp_path / "made"))
    root.mkdir()
    for content in ("old", "new"):
        with DumpFolder(place(root, keep=True), made) as folder:
            dump(folder, one=content)
            if content == "old":
                folder.publish()
        made.undo()
    assert (root / "a/dumps/one").read_text() == "old" and sorted(os.listdir(root / "a/dumps")) == [MARK, "one"]


def test_a_folder_of_the_user_is_refused_and_untouched(tmp_path):
    root, made = tmp_path / "src", MadeList(str(tmp_path / "made"))
    (root / "a/dumps").mkdir(parents=True, mode=0o755)
    (root / "a/dumps/one").write_text("mine")
    with pytest.raises(TransferFailed, match="'one', which no backup made"):
        DumpFolder(place(root), made)
    assert made.undo() == "" and (root / "a/dumps/one").read_text() == "mine"


@pytest.mark.parametrize("link", ["a", "a/dumps"])
def test_no_link_leads_out_of_the_tree(tmp_path, link):
    root, made = tmp_path / "src", MadeList(str(tmp_path / "made"))
    (root / link).parent.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (root / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TransferFailed, match="cannot be made"):
        DumpFolder(place(root), made)
    made.undo()
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_folder_that_others_can_write_to_is_refused(tmp_path):
    (tmp_path / "a/dumps").mkdir(parents=True)
    (tmp_path / "a/dumps").chmod(0o777)
    with pytest.raises(TransferFailed, match="exchange dumps"):
        DumpFolder(place(tmp_path), MadeList(str(tmp_path / "made")))


def test_without_room_nothing_is_dumped(tmp_path):
    (tmp_path / "src").mkdir()
    with DumpFolder(place(tmp_path / "src"), MadeList(str(tmp_path / "made"))) as folder:
        folder.require_room(1 << 60, 0)
        with pytest.raises(TransferFailed, match="MiB free.*lower free_percent"):
            folder.require_room(1 << 60)


def test_what_cannot_be_removed_is_told_and_tried_again(tmp_path):
    made = MadeList(str(tmp_path / "made"))
    (tmp_path / "folder/one").mkdir(parents=True)
    (tmp_path / "folder/one/of a user").touch()
    made.add("file", os.fsencode(tmp_path / "folder"), b"one")  # is a folder by now
    made.add("folder", os.fsencode(tmp_path / "folder"), b"one")
    assert "folder/one: " in made.undo() and len(made.read()) == 2
    (tmp_path / "made").write_text((tmp_path / "made").read_text() + '{"kind": "file", "fol')  # cut off
    (tmp_path / "folder/one/of a user").unlink()
    assert made.undo() == "" and os.listdir(tmp_path / "folder") == [] and made.read() == []


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("app.db", ["app.db"]),
        ("*.db", [".hidden.db", "app.db", "other.db"]),
        ("*/*.db", ["sub/one.db"]),
        ("sub/o?e.db", ["sub/one.db"]),
        ("a+b(c)", ["a+b(c)"]),
    ],
)
def test_files_are_found_as_filter_rules_find_them(tmp_path, pattern, found):
    (tmp_path / "sub").mkdir()
    for name in ("app.db", "other.db", ".hidden.db", "sub/one.db", "app.db-wal", "a+b(c)"):
        (tmp_path / name).touch()
    (tmp_path / "link.db").symlink_to("app.db")
    (tmp_path / "linked").symlink_to("sub")
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        assert find_files(fd, [pattern, pattern]) == found
        with pytest.raises(TransferFailed, match="no file matches nothing/here"):
            find_files(fd, [pattern, "nothing/here"])
    finally:
        os.close(fd)
