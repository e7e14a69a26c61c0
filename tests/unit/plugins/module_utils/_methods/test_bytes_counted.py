# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a transfer says of its bytes, compared with the files, and with what went through a relay between both ends."""

from __future__ import annotations

import os
import shutil

import pytest
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.relay import Relay
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import Pair as RsyncPair
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ALL, Pair, settings

MIB = 1 << 20
SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
needs_sshd = pytest.mark.skipif(SSHD is None or os.geteuid() != 0, reason="needs sshd, and root for owners")
pytestmark = pytest.mark.newest

LEAVE_HOLES_OUT = ["stream", "tar_nc"]
SEND_ZEROS = [pytest.param("scp", marks=needs_sshd), pytest.param("sftp", marks=needs_sshd)]
WITHOUT = [name for name in ALL if name != "sparse"]
APPARENT = 96 * MIB + 2 * MIB + 5
CONTENT = 3 * MIB + 2 * MIB + 5
OVERHEAD = 256 << 10  # bytes: handshakes, entries, and the headers of programs


def make_tree(folder):
    """Make a sparse image whose end is a hole, and two dense files."""
    with open(folder / "image", "wb") as file:
        file.truncate(96 * MIB)
        for number in range(3):
            os.pwrite(file.fileno(), os.urandom(MIB), number * 30 * MIB)
        os.fsync(file.fileno())
    if (folder / "image").stat().st_blocks * 512 >= 96 * MIB:
        pytest.skip("cannot run here: this file system has no holes")
    (folder / "dense").write_bytes(os.urandom(2 * MIB))
    (folder / "small").write_bytes(b"small")


def run(trees, method, **changes):
    """Make a transfer through a relay; return its outcome, what passed, and how far the driving end was."""
    pair = Pair(trees[2], trees[0], trees[1], settings(method, encrypt=False, **changes))
    if method in ("scp", "sftp"):
        pair.use_ssh()
    pair.start(pair.serving)
    with Relay(int(pair.peer["port"])) as relay:
        pair.peer["port"] = relay.port
        pair.start(pair.driving)
        outcome = pair.finish()
        passed = relay.passed
    assert outcome.get("errors") == [], outcome
    return outcome, passed, [pair.progress(side) for side in ("source", "dest")]


def of_tree(outcome):
    return [outcome[f"bytes_{name}"] for name in ("apparent", "total", "content", "matched")]


@pytest.mark.parametrize("method", LEAVE_HOLES_OUT)
def test_what_is_sent_has_no_holes(trees, method):
    make_tree(trees[0])
    outcome, passed, progress = run(trees, method)
    assert differences(*trees[:2]) == []
    assert of_tree(outcome) == [APPARENT, CONTENT, CONTENT, 0]
    assert outcome["bytes_sent"] == CONTENT
    assert CONTENT <= passed < CONTENT + OVERHEAD
    for one in progress:
        assert one["counted"] == one["bytes_done"] == one["bytes_total"] == CONTENT, one
        assert (one["bytes_sent"], one["bytes_apparent"]) == (CONTENT, APPARENT)
    outcome, passed, progress = run(trees, method)
    assert of_tree(outcome) == [APPARENT, CONTENT, 0, CONTENT] and outcome["bytes_sent"] == 0
    assert passed < OVERHEAD and progress[0]["counted"] == progress[1]["counted"] == CONTENT


@pytest.mark.parametrize("method", SEND_ZEROS)
def test_a_program_that_sends_holes_as_zeros_is_said_to(trees, method):
    make_tree(trees[0])
    outcome, passed, progress = run(trees, method)
    assert differences(*trees[:2]) == []
    assert of_tree(outcome) == [APPARENT, CONTENT, CONTENT, 0]
    assert outcome["bytes_sent"] == APPARENT
    assert APPARENT <= passed < APPARENT * 1.02 + OVERHEAD
    driving = progress[0]  # the peer has processes of its own
    assert driving["counted"] == driving["bytes_total"] == CONTENT, driving


@pytest.mark.parametrize("method", LEAVE_HOLES_OUT)
def test_what_is_sent_is_packed(trees, method):
    with open(trees[0] / "text", "wb") as file:
        file.truncate(40 * MIB)
        os.pwrite(file.fileno(), os.urandom(500) * (8 * MIB // 500), 16 * MIB)
    (trees[0] / "small").write_bytes(b"word " * 40_000)
    outcome, passed, _progress = run(trees, method, compress={"algorithm": "zlib", "level": 1})
    assert outcome["bytes_content"] == outcome["bytes_total"] > 8 * MIB - 500
    assert outcome["bytes_sent"] <= passed < outcome["bytes_sent"] + OVERHEAD
    assert outcome["bytes_sent"] < MIB


@pytest.mark.parametrize(("preserve", "expected"), [(ALL, CONTENT), (WITHOUT, APPARENT)])
def test_a_forecast_has_holes_only_where_they_are_stored(trees, preserve, expected):
    make_tree(trees[0])
    outcome, _passed, _progress = run(trees, "stream", check=True, preserve=preserve)
    assert of_tree(outcome) == [APPARENT, CONTENT, CONTENT, 0]
    assert outcome["bytes_sent"] == expected and not os.listdir(trees[1])


def test_of_a_changed_image_only_the_change_counts(trees):
    make_tree(trees[0])
    run(trees, "stream")
    with open(trees[0] / "image", "r+b") as file:
        os.pwrite(file.fileno(), os.urandom(128 << 10), 30 * MIB)
    outcome, passed, progress = run(trees, "stream", delta="blocks")
    assert outcome["bytes_sent"] <= passed < 2 * MIB
    assert 128 << 10 <= outcome["bytes_content"] == outcome["bytes_sent"] < MIB
    assert outcome["bytes_from_basis"] <= CONTENT - outcome["bytes_content"]
    assert outcome["bytes_from_basis"] > 2 * MIB
    assert [one["counted"] for one in progress] == [CONTENT, CONTENT]


def test_a_file_with_several_names_is_forecast_once(trees):
    make_tree(trees[0])
    os.link(trees[0] / "image", trees[0] / "other")
    outcome, _passed, _progress = run(trees, "stream", check=True)
    assert outcome["bytes_sent"] == CONTENT
    outcome, passed, progress = run(trees, "stream")
    assert outcome["bytes_sent"] == CONTENT <= passed < CONTENT + OVERHEAD
    assert of_tree(outcome)[:2] == [APPARENT + 96 * MIB, CONTENT + 3 * MIB]
    assert progress[0]["counted"] == CONTENT + 3 * MIB


@pytest.fixture
def rsync_pair(tmp_path):
    pair = RsyncPair(tmp_path)
    make_tree(pair.source)
    return pair


@pytest.mark.parametrize("method", ["rsync", "rsyncd"])
def test_rsync_sends_holes_as_zeros(rsync_pair, method):
    relays = []

    def through(port):
        relays.append(Relay(port))
        return relays[0].__enter__().port

    rsync_pair.through = through
    try:
        outcome = rsync_pair.over(method)
    finally:
        for relay in relays:
            relay.__exit__(None, None, None)
    assert differences(rsync_pair.source, rsync_pair.dest) == []
    assert [outcome.bytes_apparent, outcome.bytes_total, outcome.bytes_content] == [APPARENT, CONTENT, CONTENT]
    assert outcome.bytes_sent == APPARENT
    assert all(APPARENT <= relay.passed < APPARENT * 1.02 + OVERHEAD for relay in relays)
    rsync_pair.through = lambda port: port
    again = rsync_pair.over(method)
    assert [again.bytes_total, again.bytes_content, again.bytes_sent] == [CONTENT, 0, 0]


def test_rsync_says_what_it_packed(rsync_pair):
    outcome = rsync_pair.over_shell(compress={"algorithm": "zlib", "level": 1})
    assert outcome.bytes_content == CONTENT <= outcome.bytes_sent < CONTENT + MIB  # zeros pack well


@pytest.mark.parametrize("connect", ["push", "pull"])
@pytest.mark.parametrize(("preserve", "expected"), [(ALL, CONTENT), (WITHOUT, APPARENT)])
def test_a_forecast_of_rsync_has_holes_only_where_they_are_stored(rsync_pair, connect, preserve, expected):
    outcome = rsync_pair.over_shell(connect, check=True, preserve=preserve)
    assert [outcome.bytes_total, outcome.bytes_content, outcome.bytes_sent] == [CONTENT, CONTENT, expected]
    outcome = rsync_pair.over_shell(connect, preserve=preserve)
    assert [outcome.bytes_total, outcome.bytes_content, outcome.bytes_sent] == [CONTENT, CONTENT, APPARENT]
