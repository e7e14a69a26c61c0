# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dumps come into a folder of their own, all at once, and what a preparation made goes again and nothing else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.dump_folder import (
    MARK,
    DumpFolder,
    describe_stranger,
    file_name,
    find_files,
    name_in_file,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.made import MadeList
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.programs import Account
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
    with DumpFolder(place(root), made, None) as folder:
        dump(folder, one="1", two="22")
        assert sorted(os.listdir(root / "a/dumps")) == [MARK, "one.part", "two.part"]
        assert folder.publish() == 3
    assert sorted(os.listdir(root / "a/dumps")) == [MARK, "one", "two"]
    assert (root / "a/dumps").stat().st_mode & 0o777 == 0o700
    assert (root / "a/dumps/one").stat().st_mode & 0o777 == 0o600
    assert made.undo() == "" and MadeList(str(tmp_path / "made")).read() == []
    assert sorted(os.walk(root)) == before


def test_others_pass_through_new_folders_above_the_dumps_and_not_through_these(tmp_path):
    with DumpFolder(place(tmp_path, "a/b/dumps"), MadeList(str(tmp_path / "made")), None):
        modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b", "a/b/dumps")]
    assert modes == [0o711, 0o711, 0o700]


def test_a_failure_leaves_the_dumps_that_are_kept(tmp_path):
    root, made = tmp_path / "src", MadeList(str(tmp_path / "made"))
    root.mkdir()
    for content in ("old", "new"):
        with DumpFolder(place(root, keep=True), made, None) as folder:
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
        DumpFolder(place(root), made, None)
    assert made.undo() == "" and (root / "a/dumps/one").read_text() == "mine"


@pytest.mark.parametrize("link", ["a", "a/dumps"])
def test_no_link_leads_out_of_the_tree(tmp_path, link):
    root, made = tmp_path / "src", MadeList(str(tmp_path / "made"))
    (root / link).parent.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (root / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TransferFailed, match="cannot be made"):
        DumpFolder(place(root), made, None)
    made.undo()
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_folder_that_others_can_write_to_is_refused(tmp_path):
    (tmp_path / "a/dumps").mkdir(parents=True)
    (tmp_path / "a/dumps").chmod(0o777)
    with pytest.raises(TransferFailed, match="exchange dumps"):
        DumpFolder(place(tmp_path), MadeList(str(tmp_path / "made")), None)


APP = Account("app", os.geteuid() + 1, 700, (), "/")
ROOT = Account("root", 0, 0, (), "/root")


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "account", "words"),
    [
        (0o755, 0, 0, None, ""),
        (0o700, os.geteuid(), 9, None, ""),
        (0o755, APP.uid, 0, APP, ""),
        (0o755, APP.uid, 0, None, f"belongs to user {APP.uid}"),
        (0o755, APP.uid, 0, ROOT, f"belongs to user {APP.uid}"),
        (0o777, 0, 0, None, "is writable for all users"),
        (0o1777, 0, 0, None, ""),
        (0o1777, APP.uid, 0, None, f"belongs to user {APP.uid}"),
        (0o775, 0, 9, None, "is writable for group 9"),
        (0o775, 0, APP.gid, APP, ""),
        (0o775, 0, 9, APP, "is writable for group 9"),
        (0o775, 0, 0, ROOT, "is writable for group 0"),
    ],
)
def test_who_can_exchange_what_is_in_a_folder(mode, uid, gid, account, words):
    status = os.stat_result((stat.S_IFDIR | mode, 0, 0, 0, uid, gid, 0, 0, 0, 0))
    assert describe_stranger(status, account) == words


@pytest.mark.parametrize("open_to_all", [".", "a", "a/b"])
def test_below_a_folder_of_others_no_dumps_are_made(tmp_path, open_to_all):
    root, made = tmp_path / "src", MadeList(str(tmp_path / "made"))
    (root / "a/b").mkdir(parents=True)
    (root / open_to_all).chmod(0o777)
    with pytest.raises(TransferFailed, match="is writable for all users.*add it to src of the job, and set into"):
        DumpFolder(place(root, "a/b/dumps"), made, None)
    assert made.undo() == "" and sorted(os.walk(root))[-1] == (str(root / "a/b"), [], [])


def test_a_folder_belongs_to_one_job_until_its_dumps_are_undone(tmp_path):
    root = tmp_path / "src"
    root.mkdir()
    first, second = (MadeList(str(tmp_path / name), f"the job {name}") for name in ("first", "second"))
    with DumpFolder(place(root), first, None) as folder:
        dump(folder, one="1")
        folder.publish()
    with pytest.raises(TransferFailed, match="a/dumps has the dumps of the job first, which is running. Set into"):
        DumpFolder(place(root), second, None)
    second.add("file", os.fsencode(root / "a/dumps"), b"one")  # of a run before, which was killed
    assert "a/dumps/one: its folder has the dumps of the job first" in second.undo()
    assert (root / "a/dumps/one").exists()
    assert first.undo() == "" and os.listdir(root) == []
    DumpFolder(place(root), second, None).close()
    assert second.undo() == "" and os.listdir(root) == []


def test_an_exchanged_dump_is_not_published(tmp_path):
    (tmp_path / "src").mkdir()
    with DumpFolder(place(tmp_path / "src"), MadeList(str(tmp_path / "made")), None) as folder:
        dump(folder, one="1")
        os.rename("one.part", "aside", src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
        dump(folder, two="2")
        os.rename("two.part", "one.part", src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
        with pytest.raises(TransferFailed, match=r"one\.part was exchanged"):
            folder.publish()


def test_dumps_of_databases_that_are_gone_do_not_stay(tmp_path):
    root, made = tmp_path / "src", MadeList(str(tmp_path / "made"))
    root.mkdir()
    for names in ({"one": "1", "two": "2"}, {"two": "3"}):
        with DumpFolder(place(root, keep=True), made, None) as folder:
            dump(folder, **names)
            folder.publish()
        made.undo()
    assert sorted(os.listdir(root / "a/dumps")) == [MARK, "two"]


def test_without_room_nothing_is_dumped(tmp_path):
    (tmp_path / "src").mkdir()
    with DumpFolder(place(tmp_path / "src"), MadeList(str(tmp_path / "made")), None) as folder:
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
    (tmp_path / "folder.db").mkdir()
    (tmp_path / "dumps").mkdir()
    for name in (
        "app.db",
        "other.db",
        ".hidden.db",
        "sub/one.db",
        "app.db-wal",
        "a+b(c)",
        f"dumps/{MARK}",
        "dumps/a.db",
    ):
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("app.db")
    (tmp_path / "linked").symlink_to("sub")
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        assert list(find_files(fd, [pattern, pattern])) == found
        with pytest.raises(TransferFailed, match="no file matches nothing/here"):
            find_files(fd, [pattern, "nothing/here"])
        with pytest.raises(TransferFailed, match="link is a link or a special file"):
            find_files(fd, ["*"])
    finally:
        os.close(fd)
