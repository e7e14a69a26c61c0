# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers by tar_nc: what is its own. What it does as stream does is in test_stream_and_tar_nc.py."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.pending_connections import MOST
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_hard_tree
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import NotReady, Pair, settings
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.small_tree import make_tree
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import run_through

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="owners and devices need root")


def transfer(trees: tuple[Path, Path, Path], serving: str = "dest", **changes: Any) -> dict[str, Any]:
    """Run one transfer."""
    source, dest, work = trees
    return Pair(work, source, dest, settings("tar_nc", **changes), serving).run()


@needs_root
@pytest.mark.long
@pytest.mark.parametrize(
    ("serving", "flavours"),
    [
        ("dest", ("gnu", "gnu")),
        ("source", ("bsd", "bsd")),
        ("dest", ("gnu", "bsd")),
        ("source", ("bsd", "gnu")),
        ("source", ("gnu", "gnu")),
    ],
)
def test_every_hard_name_and_type_arrives(trees, serving, flavours):
    for flavour, program in (("gnu", "tar"), ("bsd", "bsdtar")):
        if flavour in flavours and shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    source, dest, work = trees
    make_hard_tree(source, many=300)
    pair = Pair(work, source, dest, settings("tar_nc", tar=dict(zip(("source", "dest"), flavours))), serving)
    for side, flavour in zip(("source", "dest"), flavours):
        if flavour == "bsd":
            use_bsdtar(pair, side)
    outcome = pair.run()
    assert outcome.get("errors") == [] and not outcome["failure"], outcome
    assert differences(source, dest) == []
    again = transfer(trees, serving, tar=dict(zip(("source", "dest"), flavours)))
    assert not again["changed"] and again["bytes_sent"] == 0 and again["changes"] == []
    assert again["bytes_matched"] == again["bytes_total"] == outcome["bytes_total"]


def use_bsdtar(pair: Pair, side: str) -> None:
    """Let one end find bsdtar under the name of tar."""
    programs = pair.work / f"bin-{side}"
    programs.mkdir(parents=True, exist_ok=True)
    (programs / "tar").symlink_to(shutil.which("bsdtar") or "")
    pair.env[side] = {"PATH": f"{programs}:{os.environ['PATH']}"}


BACKSLASHES = [
    r"a\a",
    r"a\b",
    r"a\f",
    r"a\n",
    r"a\r",
    r"a\t",
    r"a\v",
    r"a\123",
    r"a\0",
    r"a\\b",
    "a\\",
    r"\?",
    r"\"x\"",
]


@pytest.mark.parametrize("flavours", [("gnu", "gnu"), ("bsd", "gnu"), ("gnu", "bsd")], ids="-".join)
def test_a_backslash_in_a_path_is_a_backslash(tmp_path, flavours):
    if "bsd" in flavours and shutil.which("bsdtar") is None:
        pytest.skip("needs bsdtar")
    source, dest = (tmp_path.joinpath(side, *BACKSLASHES) for side in ("source", "dest"))
    for name in BACKSLASHES:
        (source / name).mkdir(parents=True)
        (source / name / name).write_text(name)
        (source / f"file {name}").write_text(f"file {name}")
    dest.mkdir(parents=True)
    plan = settings("tar_nc", tar=dict(zip(("source", "dest"), flavours)))
    pair = Pair(tmp_path / "work", source, dest, plan)
    for side, flavour in zip(("source", "dest"), flavours):
        if flavour == "bsd":
            use_bsdtar(pair, side)
    outcome = pair.run()
    assert (outcome["errors"], outcome["failure"]) == ([], ""), outcome
    assert differences(source, dest) == []
    assert os.listdir(tmp_path / "dest") == [BACKSLASHES[0]]


@pytest.mark.long
@pytest.mark.parametrize(
    "changes", [{"streams": 3}, {"compress": {"algorithm": "zlib", "level": 1}}, {"checksum": True}]
)
def test_options_do_not_change_what_arrives(trees, changes):
    source, dest, _work = trees
    make_tree(source)
    for number in range(24):  # more than one shard
        (source / f"m{number}").write_bytes(os.urandom(3 << 20))
        if number % 10 == 0:
            os.link(source / f"m{number}", source / "a" / f"l{number}")
    outcome = transfer(trees, **changes)
    assert outcome["errors"] == []
    assert differences(source, dest) == []
    assert not transfer(trees, **changes)["changed"]


@pytest.mark.long
@pytest.mark.parametrize(("serving", "victim"), [("dest", "source"), ("dest", "dest"), ("source", "source")])
def test_after_a_kill_only_the_shards_under_way_come_again(trees, victim, serving):
    source, dest, work = trees
    size = 8 << 20
    for number in range(30):
        (source / f"f{number:02}").write_bytes(random.Random(number).getrandbits(8 * size).to_bytes(size, "big"))
    plan = settings("tar_nc", bwlimit=250 << 20)
    pair = Pair(work, source, dest, plan, serving)
    pair.start(serving)
    pair.start(pair.driving)
    deadline = time.monotonic() + 30
    while len(list(dest.glob("f*"))) < 10 and time.monotonic() < deadline:
        time.sleep(0.01)
    pair.kill(victim)
    if victim == pair.serving:
        assert "failed" in pair.finish()
    pair.stop()
    placed = len(list(dest.glob("f*")))
    assert 10 <= placed < 30
    outcome = transfer(trees, serving)
    assert outcome["errors"] == [] and differences(source, dest) == []
    assert outcome["bytes_sent"] == (30 - placed) * size
    assert not transfer(trees, serving)["changed"]


@pytest.mark.parametrize(
    "dialects",
    [
        ("openbsd", "openbsd"),
        ("traditional", "ncat"),
        ("ncat", "builtin"),
        ("builtin", "openbsd"),
        ("ncat", "traditional"),
    ],
)
def test_the_dialects_of_netcat_understand_each_other(trees, dialects):
    source, dest, work = trees
    make_tree(source)
    (source / "big").write_bytes(os.urandom(5 << 20))
    names = {"openbsd": "nc.openbsd", "traditional": "nc.traditional", "ncat": "ncat"}
    plan = settings("tar_nc", nc=dict(zip(("source", "dest"), dialects)), streams=2)
    pair = Pair(work, source, dest, plan)
    pair.serve["allow"] = ["127.0.0.1"]
    for side, dialect in zip(("source", "dest"), dialects):
        if dialect == "builtin":
            continue
        program = shutil.which(names[dialect])
        if program is None:
            pytest.skip(f"needs {names[dialect]}")
        programs = work / f"bin-{side}"
        programs.mkdir(parents=True)
        (programs / "nc").symlink_to(program)
        pair.env[side] = {"PATH": f"{programs}:{os.environ['PATH']}"}
    outcome = pair.run()
    assert outcome.get("errors") == [], outcome
    assert differences(source, dest) == []
    assert "0123456789abcdef" not in str(outcome)


@pytest.mark.parametrize(("dialect", "streams"), [("builtin", 1), ("openbsd", 3)])
@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.0\r\n\r\n" * 10, b"LHSTREAM\0\1\0\0" + bytes(40), b"L", b""],
    ids=["another protocol", "wrong secret", "half a word", "silence"],
)
def test_strangers_on_the_port_do_not_keep_the_peer_out(trees, dialect, streams, said):
    source, dest, work = trees
    if dialect == "openbsd" and shutil.which("nc") is None:
        pytest.skip("needs nc")
    make_tree(source)
    plan = settings("tar_nc", nc={"source": dialect, "dest": dialect}, streams=streams, streams_max=streams)
    pair = Pair(work, source, dest, plan)
    pair.start("dest")
    with contextlib.ExitStack() as stack:
        for _number in range(MOST + 8):  # each stays for as long as it is let
            stranger = stack.enter_context(socket.create_connection(("127.0.0.1", pair.peer["port"]), timeout=5))
            with contextlib.suppress(ConnectionError):  # it was thrown out already
                stranger.sendall(said)
        begun = time.monotonic()
        pair.start("source")
        outcome = pair.finish()
    assert outcome.get("errors") == [], outcome
    assert time.monotonic() - begun < 20
    assert differences(source, dest) == []


def test_who_does_not_know_the_secret_is_refused(trees):
    source, dest, work = trees
    make_tree(source)
    pair = Pair(work, source, dest, settings("tar_nc"))
    pair.start("dest")
    pair.secrets["drive"] = {"exchange": "f" * 32}
    pair.start("source")
    try:
        time.sleep(3)
        assert not list(dest.glob("[a-z]*"))
        assert "handshake; listening on" in pair.stderr("dest")
    finally:
        pair.kill("source")
        pair.stop()


@pytest.mark.parametrize("dialect", ["builtin", "openbsd", "ncat"])
def test_ipv6(trees, dialect):
    source, dest, work = trees
    if dialect != "builtin" and shutil.which({"openbsd": "nc.openbsd"}.get(dialect, dialect)) is None:
        pytest.skip(f"needs {dialect}")
    make_tree(source)
    pair = Pair(work, source, dest, settings("tar_nc", nc={"source": dialect, "dest": dialect}))
    pair.serve.update(address="::1", allow=["::1"])
    if dialect != "builtin":
        (work / "bin").mkdir(parents=True)
        (work / "bin" / "nc").symlink_to(shutil.which({"openbsd": "nc.openbsd"}.get(dialect, dialect)) or "")
        for side in ("source", "dest"):
            pair.env[side] = {"PATH": f"{work / 'bin'}:{os.environ['PATH']}"}
    outcome = pair.run()
    assert outcome.get("errors") == [], outcome
    assert differences(source, dest) == []


RECURSES = 300  # calls, at both ends: each level costs all the more the deeper it is


def test_a_tree_deeper_than_python_recurses_leaves_nothing_staged(trees, tmp_path):
    """Nor does it need a descriptor for each level, as the removal of newer Pythons does."""
    source, dest, work = trees
    deepest = source.joinpath(*["d"] * (RECURSES + 20))
    subprocess.run(["mkdir", "-p", deepest], check=True)  # which neither pathlib nor os.makedirs can do
    for number in range(3):
        (deepest / f"f{number}").write_bytes(os.urandom(1000))
    pair = Pair(work, source, dest, settings("tar_nc"))
    (tmp_path / "sitecustomize.py").write_text(f"import sys; sys.setrecursionlimit({RECURSES})")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    for side in ("source", "dest"):
        pair.env[side]["PYTHONPATH"] = path
    run_through(pair, "dest", "ulimit -n 256")
    try:
        outcome = pair.run()
        assert outcome.get("errors") == [] and not outcome["failure"], outcome
        arrived = dest / deepest.relative_to(source)
        assert {path.name: path.read_bytes() for path in arrived.iterdir()} == {
            path.name: path.read_bytes() for path in deepest.iterdir()
        }
        assert os.listdir(dest) == ["d"]
        assert "cannot be removed" not in (work / "job-dest" / "stderr").read_text()
    finally:
        subprocess.run(["rm", "-rf", source, dest], check=True)  # pytest cannot


def test_a_busy_port_gives_way_to_the_next_and_none_is_a_clear_error(trees):
    source, dest, work = trees
    make_tree(source)
    with socket.socket() as busy, socket.socket() as other:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        other.bind(("127.0.0.1", 0))
        free = other.getsockname()[1]
        other.close()
        pair = Pair(work, source, dest, settings("tar_nc"))
        pair.serve["ports"] = [busy.getsockname()[1], free]
        assert pair.run()["errors"] == [] and pair.peer["port"] == free
        pair = Pair(work, source, dest, settings("tar_nc"))
        pair.serve["ports"] = [busy.getsockname()[1]]
        with pytest.raises(NotReady, match="cannot listen at port .* already in use"):
            pair.start("dest")
        pair.stop()


def test_a_job_that_is_told_to_stop_leaves_no_process(trees):
    source, dest, work = trees
    (source / "big").write_bytes(os.urandom(60 << 20))
    pair = Pair(work, source, dest, settings("tar_nc", bwlimit=10 << 20, nc={"source": "builtin", "dest": "openbsd"}))
    pair.start("dest")
    pair.start("source")
    time.sleep(1.5)
    pair.kill("source")
    group = pair.processes["dest"].pid
    pair.stop()
    time.sleep(0.5)
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)
