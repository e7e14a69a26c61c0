# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The progress of the job that reads a tree for a comparison."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Progress
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._job.digest_job import make_digest, quick_digest
from ansible_collections.longhaul.fleet.plugins.module_utils._job.request import parse_digest_request

REQUEST = {
    "side": "source", "part": "compare", "root": "/", "rules": [], "only": None, "one_file_system": False,
    "fields": ["size"], "owner_map": None, "count_owners": None, "special_files": [], "algorithm": "blake2b",
    "content_of": None, "content_of_rounded": False, "time_units": {}, "peer_name": "new",
}  # fmt: skip


def progress_of(tmp_path, **changes):
    """Return how far a job is that has read a tree with a file of five bytes."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/file").write_text("12345")
    progress = Progress()
    reporter = SimpleNamespace(progress=progress, set=lambda **_values: None)
    folder = SimpleNamespace(file=lambda name: str(tmp_path / name))
    root = os.open(tmp_path / "tree", os.O_RDONLY)
    try:
        make_digest(folder, parse_digest_request({**REQUEST, **changes}), root, reporter)
    finally:
        os.close(root)
    return progress


@pytest.mark.parametrize("reads, done", [(True, 5), (False, 0)])
def test_bytes_count_where_contents_are_read(tmp_path, reads, done):
    progress = progress_of(tmp_path, fields=["size", *(["content"] if reads else [])])
    assert (progress.phase, progress.bytes_done, progress.files_done) == ("comparing", done, 2)
    assert (progress.bytes_total, progress.files_total) == (0, 0)


def test_the_size_of_the_tree_is_told_by_the_control_node(tmp_path):
    progress = progress_of(tmp_path, fields=["content"], expects={"entries": 7, "bytes": 90})
    assert (progress.bytes_total, progress.files_total) == (90, 7)


def test_what_a_tag_leaves_out_at_the_source_need_not_be_at_the_destination(tmp_path):
    for tree in ("source", "dest"):
        (tmp_path / tree / "skip").mkdir(parents=True)
        (tmp_path / tree / "skip/.nobackup").write_text("why")
    (tmp_path / "source/skip/x").write_text("left out")
    tags = {"exclude_if_present": [".nobackup"], "exclude_caches": True}

    def sums(tree, **more):
        return quick_digest(parse_digest_request({**REQUEST, "root": str(tmp_path / tree), **more}), 60)["sums"]

    assert sums("source", **tags) == sums("dest") != sums("source")


@pytest.mark.parametrize("expects", [{"entries": "7", "bytes": 1}, {"entries": 7}, []])
def test_a_size_that_is_none_is_refused(expects):
    if expects == []:
        expects = [1]
    with pytest.raises(TransferFailed, match="cannot be read"):
        parse_digest_request({**REQUEST, "expects": expects})
