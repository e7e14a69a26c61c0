# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers by scp and sftp over a real sshd."""

from __future__ import annotations

import os
import random
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import CommandRefusal
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy import rcp_server, scp, sftp, sftp_server
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy.common import failure
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_hard_tree
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ID, Pair, settings

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
needs_sshd = pytest.mark.skipif(SSHD is None or os.geteuid() != 0, reason="needs OpenSSH's sshd, and root for owners")


def pair_of(tmp_path: Path, method: str, serving: str, **changes: Any) -> Pair:
    """Make both ends of a transfer from ``source`` to ``dest``."""
    for name in ("source", "dest"):
        (tmp_path / name).mkdir(exist_ok=True)
    pair = Pair(tmp_path / "work", tmp_path / "source", tmp_path / "dest", settings(method, **changes), serving)
    pair.use_ssh()
    return pair


@pytest.mark.parametrize(
    ("code", "said", "expected"),
    [
        (0, "", None),
        (1, 'remote open "/x": Permission denied', None),  # of one file
        (-13, "", "the connection was lost: what carried it for sftp is gone. .*run the task again"),
        (-15, "", r"it was ended by signal 15\. .*run the task again"),
        (-9, "Fetching /x", r"it was ended by signal 9 \(Fetching /x\)\. .*run the task again"),
        (255, "", "the connection was lost: it ended with code 255. .*run the task again"),
        (1, "lost connection", "the connection was lost: lost connection. .*run the task again"),
        (255, "Connection to 192.0.2.1 closed by remote host.", "the connection was lost .*Run again"),
        (-13, "Connection to 192.0.2.1 closed by remote host.", "the connection was lost .*Run again"),
    ],
)
def test_what_the_end_of_a_client_means(code, said, expected):
    failed = failure("sftp", code, said)
    assert (failed is None) if expected is None else re.fullmatch(f"{expected}.*", failed or ""), failed


@needs_sshd
@pytest.mark.long
@pytest.mark.parametrize("serving", ["dest", "source"])
@pytest.mark.parametrize("method", ["scp", "sftp"])
def test_every_hard_name_and_type_arrives(tmp_path, method, serving):
    (tmp_path / "source").mkdir()
    make_hard_tree(tmp_path / "source", many=200)
    outcome = pair_of(tmp_path, method, serving).run()
    assert outcome.get("errors") == [], outcome
    assert differences(tmp_path / "source", tmp_path / "dest") == []
    again = pair_of(tmp_path, method, serving).run()
    assert not again["changed"] and again["bytes_sent"] == 0
    assert "PRIVATE" not in str(outcome)


@needs_sshd
@pytest.mark.long
@pytest.mark.parametrize(("method", "serving"), [("scp", "dest"), ("sftp", "source")])
def test_streams_and_check_mode(tmp_path, method, serving):
    (tmp_path / "source").mkdir()
    for number in range(12):
        (tmp_path / "source" / f"f{number}").write_bytes(os.urandom(12 << 20))
    predicted = pair_of(tmp_path, method, serving, check=True).run()
    assert list((tmp_path / "dest").iterdir()) == []
    done = pair_of(tmp_path, method, serving, streams=3).run()
    for name in ("files_created", "bytes_sent", "files_total", "attributes_changed"):
        assert predicted[name] == done[name]
    assert differences(tmp_path / "source", tmp_path / "dest") == []


@needs_sshd
@pytest.mark.long
@pytest.mark.parametrize(("serving", "victim"), [("dest", "dest"), ("source", "dest"), ("dest", "source")])
def test_sftp_goes_on_inside_a_file(tmp_path, serving, victim):
    size = 64 << 20
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "big").write_bytes(random.Random(7).getrandbits(8 * size).to_bytes(size, "big"))
    pair = pair_of(tmp_path, "sftp", serving, bwlimit=24 << 20)
    pair.start(serving)
    pair.start(pair.driving)
    partial = tmp_path / "dest" / f".longhaul-{ID}" / "partial"
    _wait_for(lambda: sum(path.stat().st_size for path in partial.glob("*")) > size // 3)
    pair.kill(victim)
    if victim == serving:
        assert "failed" in pair.finish()
    pair.stop()
    _wait_still(partial)
    left = sum(path.stat().st_size for path in partial.glob("*"))
    assert size // 3 < left < size
    outcome = pair_of(tmp_path, "sftp", serving).run()
    assert outcome["errors"] == [] and outcome["resumed"]
    assert outcome["bytes_sent"] == size - left
    assert differences(tmp_path / "source", tmp_path / "dest") == []


@needs_sshd
@pytest.mark.long
def test_sftp_does_not_trust_a_damaged_beginning(tmp_path):
    size = 40 << 20
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "big").write_bytes(random.Random(7).getrandbits(8 * size).to_bytes(size, "big"))
    pair = pair_of(tmp_path, "sftp", "dest", bwlimit=20 << 20)
    pair.start("dest")
    pair.start("source")
    partial = tmp_path / "dest" / f".longhaul-{ID}" / "partial"
    _wait_for(lambda: sum(path.stat().st_size for path in partial.glob("*")) > size // 3)
    pair.kill("source")
    pair.stop()
    _wait_still(partial)
    with open(next(partial.glob("*")), "r+b") as stream:
        stream.seek(1 << 20)
        stream.write(bytes(100))
    outcome = pair_of(tmp_path, "sftp", "dest").run()
    assert outcome["errors"] == []
    assert outcome["bytes_sent"] > size  # the rest, and then all of it
    assert differences(tmp_path / "source", tmp_path / "dest") == []


@needs_sshd
@pytest.mark.long
@pytest.mark.parametrize("victim", ["source", "dest"])
def test_scp_goes_on_with_the_shard(tmp_path, victim):
    size = 16 << 20
    (tmp_path / "source").mkdir()
    for number in range(12):
        (tmp_path / "source" / f"f{number}").write_bytes(os.urandom(size))
    pair = pair_of(tmp_path, "scp", "dest", bwlimit=100 << 20)
    pair.start("dest")
    pair.start("source")
    _wait_for(lambda: len(list((tmp_path / "dest").glob("f*"))) >= 4)
    pair.kill(victim)
    if victim == "dest":
        assert "failed" in pair.finish()
    pair.stop()
    placed = len(list((tmp_path / "dest").glob("f*")))
    assert placed < 12
    outcome = pair_of(tmp_path, "scp", "dest").run()
    assert outcome["errors"] == [] and outcome["bytes_sent"] == (12 - placed) * size
    assert differences(tmp_path / "source", tmp_path / "dest") == []


def _wait_for(reached, seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _wait_still(folder: Path) -> None:
    """Wait until processes of the peer have noticed."""
    before = -1
    while True:
        now = sum(path.stat().st_size for path in folder.glob("*"))
        if now == before:
            return
        before = now
        time.sleep(1)


@pytest.mark.parametrize(
    ("command", "side"),
    [
        ("scp -r -d -t .", "dest"),
        ("scp -r -t /etc/passwd", "dest"),
        ("scp -v -r -t -- /root", "dest"),
        ("scp -r -f view-12", "source"),
    ],
)
def test_what_the_serving_side_lets_scp_do(command, side):
    talk = scp.talk_of(command, side)
    assert talk is rcp_server.take_files if side == "dest" else talk.args == (12,)


@pytest.mark.parametrize(
    ("command", "side"),
    [
        ("scp -f /etc/shadow", "source"),
        ("scp -r -f view-1/../../..", "source"),
        ("scp -r -f view-01", "source"),
        ("scp -f view-1", "source"),
        ("scp -r -t .", "source"),
        ("scp -t .", "dest"),
        ("scp -r -f view-1", "dest"),
        ("scp -r -S /bin/sh -t .", "dest"),
        ("scp -r -t . ; id", "dest"),
        ("longhaul/sftp", "dest"),
        ("sh -c id", "dest"),
        ("", "dest"),
        ("scp 'unclosed", "dest"),
    ],
)
def test_the_serving_scp_refuses(command, side):
    with pytest.raises(CommandRefusal):
        scp.talk_of(command, side)


@pytest.mark.parametrize("command", ["/usr/lib/openssh/sftp-server", "sftp-server;id", "scp -t .", "id", ""])
def test_sftp_asks_for_one_thing(command):
    assert sftp.talk_of("longhaul/sftp") is sftp_server.answer_requests
    with pytest.raises(CommandRefusal):
        sftp.talk_of(command)
