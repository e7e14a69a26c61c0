# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The staging folder comes and goes without a trace in its root."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job import staging
from ansible_collections.longhaul.fleet.plugins.module_utils._methods import rsync_leftover

OLD = 1_000_000_000_123_456_789


@pytest.fixture(name="root")
def a_root(tmp_path):
    root = os.fsencode(tmp_path / "root")
    os.mkdir(root)
    os.utime(root, ns=(OLD, OLD))
    return root


def stage(root):
    return os.path.join(root, b".longhaul-0123456789abcdef")


def test_the_root_keeps_its_times(root):
    staging.prepare(root, stage(root))
    assert sorted(os.listdir(stage(root))) == [b"partial", b"tmp"]
    assert os.stat(root).st_mtime_ns == OLD
    staging.settle(root, stage(root), keep_partial=True)
    assert os.listdir(root) == []
    assert os.stat(root).st_mtime_ns == OLD


def test_what_an_interrupted_rsync_left_becomes_its_partial(root):
    staging.prepare(root, stage(root))
    temporary, partial = os.path.join(stage(root), b"tmp"), os.path.join(stage(root), b"partial")
    for name, content in ((b"big.img.a1B2c3", b"12345"), (b"other.Zz9Yy8", b"")):
        with open(os.path.join(temporary, name), "wb") as stream:
            stream.write(content)
    with open(os.path.join(partial, b"big.img"), "wb") as stream:
        stream.write(b"123")
    assert staging.prepare(root, stage(root), rsync_leftover.adopt)
    assert os.listdir(temporary) == []
    assert os.path.getsize(os.path.join(partial, b"big.img")) == 5


def test_what_a_method_does_not_adopt_goes(root):
    staging.prepare(root, stage(root))
    os.makedirs(os.path.join(stage(root), b"tmp", b"shard-1", b"sub"))
    assert not staging.prepare(root, stage(root))
    assert os.listdir(os.path.join(stage(root), b"tmp")) == []


def test_partial_files_stay_for_a_rerun_only_where_there_are_any(root):
    staging.prepare(root, stage(root))
    with open(os.path.join(stage(root), b"partial", b"big"), "wb") as stream:
        stream.write(b"x")
    staging.settle(root, stage(root), keep_partial=True)
    assert os.path.exists(os.path.join(stage(root), b"partial", b"big"))
    staging.settle(root, stage(root), keep_partial=False)
    assert os.listdir(root) == []


def test_a_link_in_place_of_the_staging_folder_is_not_followed(root, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("x")
    os.symlink(victim, stage(root))
    with pytest.raises(NotADirectoryError):
        staging.prepare(root, stage(root))
    staging.settle(root, stage(root), keep_partial=False)
    assert (victim / "precious").exists()


def test_a_root_that_was_made_goes_again_where_nothing_arrived(root):
    deep = os.path.join(root, b"one/two/three")
    made = staging.make_root(deep)
    assert os.path.isdir(deep)
    staging.take_back(made)
    assert os.listdir(root) == []
    made = staging.make_root(deep)
    with open(os.path.join(root, b"one/file"), "wb"):
        pass
    staging.take_back(made)
    assert sorted(os.listdir(os.path.join(root, b"one"))) == [b"file"]
    assert staging.make_root(root) == []
