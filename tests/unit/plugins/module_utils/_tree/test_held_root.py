# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whoever may exchange a folder above a root leads no transfer elsewhere."""

from __future__ import annotations

import contextlib
import os
import stat

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._core.files import missing_of
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.module_utils._tree import staging
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.held_root import describe, open_held, parse_probed


@pytest.fixture(name="tree")
def _tree(tmp_path):
    """Return a folder with the way a/b to a root, and another one with the same names."""
    for name in ("here", "elsewhere"):
        (tmp_path / name / "a/b").mkdir(parents=True)
    return tmp_path


def held(root, probed=None, make=False):
    """Return the device and inode of what is opened."""
    fd = open_held(os.fsencode(root), probed, make)
    try:
        status = os.fstat(fd)
        return status.st_dev, status.st_ino
    finally:
        os.close(fd)


def found(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        return describe(os.fsencode(path), fd)
    finally:
        os.close(fd)


def test_what_the_probe_found_is_opened(tree):
    root = tree / "here/a/b"
    status = root.stat()
    for probed in (None, found(root), found(root.parent), found("/")):
        assert held(root, probed) == (status.st_dev, status.st_ino)
    assert held("/", found("/")) == (os.stat("/").st_dev, os.stat("/").st_ino)


@pytest.mark.parametrize("exchanged", ["a", "a/b"])
@pytest.mark.parametrize("by", ["symlink", "folder"])
def test_what_was_exchanged_since_is_refused(tree, exchanged, by):
    root, place = tree / "here/a/b", tree / "here" / exchanged
    probed = found(root)
    place.rename(tree / "aside")
    if by == "symlink":
        place.symlink_to(tree / "elsewhere" / exchanged)
    else:
        (tree / "elsewhere" / exchanged).rename(place)
    with pytest.raises(TransferFailed, match="is no longer the folder that was there when the transfer was planned"):
        open_held(os.fsencode(root), probed, True)


def test_what_is_missing_is_made_where_the_probe_was(tree):
    above, root = tree / "here/a/b", tree / "here/a/b/c/d"
    probed = found(above)
    held(root, probed, make=True)
    assert root.is_dir()
    with contextlib.suppress(FileNotFoundError):
        held(tree / "here/x/y", found(tree / "here"))
        pytest.fail("it was made without being asked for")
    above.rename(tree / "aside")
    above.mkdir()
    with pytest.raises(TransferFailed, match="no longer the folder"):
        open_held(os.fsencode(root), probed, True)
    assert list(above.iterdir()) == []


def test_a_file_on_the_way_is_no_directory(tree):
    (tree / "file").touch()
    for root in (tree / "file", tree / "file/below"):
        with pytest.raises(NotADirectoryError):
            open_held(os.fsencode(root), None, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: only root can become another user")
def test_the_way_need_not_be_readable(tree):
    os.chmod(tree / "here", 0o711)
    os.chmod(tree / "here/a", 0o711)
    for folder in (tree, *tree.parents):
        if not stat.S_IMODE(folder.stat().st_mode) & 0o001:
            os.chmod(folder, 0o711)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.setgid(65534)
        os.setuid(65534)
        try:
            held(tree / "here/a/b")
            os.write(write, b"opened")
        finally:
            os._exit(0)  # pylint: disable=protected-access
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read, "rb") as said:
        assert said.read() == b"opened"


@pytest.mark.parametrize("wrong", [[], {}, {"path": "x", "device": 1, "inode": 2}, {"path": "/x", "device": "1"}])
def test_only_what_a_probe_says_is_read(wrong):
    with pytest.raises(WrongShape):
        parse_probed(wrong)


def test_a_root_that_was_made_goes_again_where_nothing_arrived(tree):
    root = tree / "here/one/two/three"
    made = missing_of(os.fsencode(root))
    held(root, make=True)
    staging.take_back(made)
    assert not (tree / "here/one").exists()
    made = missing_of(os.fsencode(root))
    held(root, make=True)
    (tree / "here/one/file").touch()
    staging.take_back(made)
    assert os.listdir(tree / "here/one") == ["file"]
