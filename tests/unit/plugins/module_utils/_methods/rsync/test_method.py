# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Method rsync from end to end over real ssh."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import CommandRefusal, TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync import method as rsync
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.confinement import RootConfinement
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.method import rsync_handler
from ansible_collections.longhaul.fleet.tests.support import hard_tree
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import Pair, settings

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin") is None,
    reason="needs root and OpenSSH's server",
)


@pytest.fixture(scope="module", name="keys")
def some_keys(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("host", "driver"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / name)], check=True)
    return folder


@pytest.mark.long
@pytest.mark.parametrize(("connect", "streams"), [("push", 1), ("pull", 2)])
def test_a_tree_arrives_and_a_rerun_changes_nothing(tmp_path, keys, connect, streams):
    pair = Pair(tmp_path)
    hard_tree.make_hard_tree(pair.source, without=["longer than PATH_MAX"], many=200, big=1 << 20)
    first = pair.over_ssh(keys, connect, streams=streams)
    assert (first.failure, first.errors, first.warnings) == ("", [], [])
    assert differences(pair.source, pair.dest) == []
    assert len(first.phases) == (1 if streams == 1 else 4)
    again = pair.over_ssh(keys, connect, streams=streams)
    assert (again.changed, again.bytes_sent) == (False, 0)
    assert set(first.cmd) == {"source", "dest"}
    private = (keys / "driver").read_text().split()[5]
    assert private not in str(first.as_dict())
    for root in (pair.source, pair.dest):
        hard_tree.remove_tree(root)


def test_nobody_there_is_said_before_anything_is_written(tmp_path, keys, monkeypatch):
    pair = Pair(tmp_path)
    (pair.source / "a").write_text("x")
    original = pair.context

    def elsewhere(side, part, plan):
        context = original(side, part, plan)
        if part == "serve":
            context.serve["allow"] = ["127.9.9.9"]
        return context

    monkeypatch.setattr(pair, "context", elsewhere)
    (keys / "driver").rename(keys / "driver.kept")
    shutil.copy(keys / "host", keys / "driver")  # a key that the serving end does not know
    try:
        with pytest.raises(TransferFailed, match="ssh"):
            pair.over_ssh(keys)
    finally:
        (keys / "driver.kept").rename(keys / "driver")
    assert not (pair.dest / "a").exists()


@pytest.mark.parametrize("command", ["id", "rsync --server --daemon . ./", "longhaul list", ""])
def test_the_destination_serves_nothing_else(tmp_path, command):
    handle = rsync_handler(Pair(tmp_path).context("dest", "serve", settings()), RootConfinement(""))
    with pytest.raises(CommandRefusal):
        handle(command, True)


@pytest.mark.often(1)
@pytest.mark.parametrize("connect", ["push", "pull"])
def test_a_run_that_waits_for_ever_is_ended_where_both_ends_are_idle(tmp_path, keys, connect, monkeypatch):
    """rsync 3.5 waits for ever for a hard link that cannot be made; the peer is asked whether it is active."""
    pair = Pair(tmp_path)
    (pair.source / "a").write_text("f")
    os.link(pair.source / "a", pair.source / "b")
    (pair.dest / "a").mkdir()
    (pair.dest / "a" / "kept").write_text("x")
    answers, ask = [], rsync._far_vitals

    def asked(context, ssh):
        answers.append(ask(context, ssh))
        return answers[-1]

    monkeypatch.setattr(rsync, "_far_vitals", asked)
    # rsync gets half of it for silence on the line; with 2 seconds its own signs of life come late on a busy machine.
    outcome = pair.over_ssh(keys, connect, timeout=6)
    assert not outcome.failure and [error["path"] for error in outcome.errors] == ["a"]
    assert answers and all(answer is not None and answer.processes for answer in answers)
