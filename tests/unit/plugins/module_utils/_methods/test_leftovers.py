# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A source that holds the folders of other transfers: they stay where they are, and everything else arrives."""

from __future__ import annotations

import shutil

import pytest
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import Pair as RsyncPair
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair, settings

OTHERS = (".longhaul-0123456789abcdef", "a/.longhaul-00112233445566ff")
KEPT = {"a", "a/b", ".longhaul-notes", "a/.longhaul-0123456789abcdef0", ".longhaul-0123456789ABCDEF"}


def fill(source):
    for name in OTHERS:
        (source / name / "partial").mkdir(parents=True)
        (source / name / "partial" / "large").write_text("half of it")
    for name in KEPT - {"a"}:
        (source / name).write_text(name)


def arrived(dest):
    return {str(path.relative_to(dest)) for path in dest.rglob("*")}


@pytest.mark.parametrize("method", ["stream", "tar_nc"])
def test_the_folders_of_other_transfers_are_left_out(tmp_path, method):
    source, dest = tmp_path / "source", tmp_path / "dest"
    dest.mkdir()
    fill(source)
    outcome = Pair(tmp_path / "work", source, dest, settings(method, delete=True, encrypt=False)).run()
    assert (outcome["failure"], outcome["errors"]) == ("", [])
    assert arrived(dest) == KEPT
    (warning,) = outcome["warnings"]
    assert warning.startswith("2 entries of the source were left out") and all(name in warning for name in OTHERS)
    silent = settings(method, encrypt=False, rules=["- .longhaul-????????????????"])
    assert Pair(tmp_path / "again", source, dest, silent).run()["warnings"] == []  # excluded by the user


@pytest.mark.skipif(shutil.which("rsync") is None, reason="cannot run here: there is no rsync")
@pytest.mark.parametrize(("connect", "streams"), [("push", 1), ("push", 2), ("pull", 1), ("pull", 2)])
def test_rsync_leaves_them_out_too(tmp_path, connect, streams):
    pair = RsyncPair(tmp_path)
    fill(pair.source)
    outcome = pair.over_shell(connect, delete=True, streams=streams)
    assert (outcome.failure, outcome.errors) == ("", [])
    assert arrived(pair.dest) == KEPT
    assert [text.startswith("2 entries") for text in outcome.warnings] == [True] * (connect == "push")
