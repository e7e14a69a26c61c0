# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole transfers by stream: what is its own. What it does as tar_nc does is in test_stream_and_tar_nc.py."""

from __future__ import annotations

import contextlib
import os
import socket
import time

import pytest
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_hard_tree
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.support.relay import Relay
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import NotReady
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.small_tree import make_tree
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import (
    MIB,
    journaled,
    make_pair,
    needs_root,
    noise,
    transfer,
)


@needs_root
@pytest.mark.newest
@pytest.mark.often(2)
@pytest.mark.parametrize("serving", ["dest", "source"])
@pytest.mark.parametrize("encrypt", [False, True])
def test_every_hard_name_and_type_arrives(trees, serving, encrypt):
    source, dest, _work = trees
    make_hard_tree(source, many=300)
    outcome = transfer(trees, serving, encrypt=encrypt, streams=2)
    assert outcome.get("errors") == [] and not outcome["failure"], outcome
    assert differences(source, dest) == []
    again = transfer(trees, serving, encrypt=encrypt, streams=2)
    assert not again["changed"] and again["bytes_sent"] == 0 and again["changes"] == []
    assert again["bytes_matched"] == again["bytes_total"] == outcome["bytes_total"]


@pytest.mark.long
@pytest.mark.parametrize(
    "changes",
    [
        {"streams": 3},
        {"streams": 2, "encrypt": True},
        {"streams": 2, "compress": {"algorithm": "zlib", "level": 1}},
        {"streams": 2, "encrypt": True, "compress": {"algorithm": "zstd", "level": 3}},
        {"checksum": True},
        {"bwlimit": 200 * MIB},
    ],
)
def test_options_do_not_change_what_arrives(trees, changes):
    source, dest, _work = trees
    make_tree(source)
    for number in range(12):
        (source / f"m{number}").write_bytes(noise(number, 3 * MIB))
        if number % 5 == 0:
            os.link(source / f"m{number}", source / "a" / f"l{number}")
    (source / "large").write_bytes(noise(99, 40 * MIB) + bytes(MIB) + b"text " * MIB)
    outcome = transfer(trees, **changes)
    assert outcome.get("errors") == [], outcome
    assert differences(source, dest) == []
    assert outcome["bytes_content"] == outcome["bytes_total"] - outcome["bytes_matched"]
    assert outcome["bytes_sent"] <= outcome["bytes_content"]
    assert not transfer(trees, **changes)["changed"]


@pytest.mark.often(2)
@pytest.mark.parametrize("compress", [{"level": None, "auto": True}, {"level": 1}], ids=["auto", "always"])
@pytest.mark.parametrize("serving", ["dest", "source"])
def test_text_arrives_that_zstd_packed(trees, compress, serving):
    source, dest, _work = trees
    make_tree(source)
    line = b"2026-11-22 12:00:%02d one of many lines in a log %d\n"
    for number in range(400):
        text = b"".join(line % (number % 60, other) for other in range(number))
        (source / f"s{number}").write_bytes(text)
    (source / "noise").write_bytes(noise(1, 200_000))
    (source / "large").write_bytes(b"".join(line % (number % 60, number) for number in range(800_000)))
    outcome = transfer(trees, serving, streams=2, compress={"algorithm": "zstd", **compress})
    assert outcome.get("errors") == [] and not outcome["failure"], outcome
    assert differences(source, dest) == []


@pytest.mark.parametrize("encrypt", [False, *rarely(True)])
def test_holes_arrive_as_holes(trees, encrypt):
    source, dest, _work = trees
    with open(source / "sparse", "wb") as file:
        file.truncate(300 * MIB)
        for place in (0, 70 * MIB, 150 * MIB + 12345):
            file.seek(place)
            file.write(noise(place, 100_000))
    with open(source / "hole", "wb") as file:
        file.truncate(20 * MIB)
    assert transfer(trees, encrypt=encrypt, streams=2)["errors"] == []
    assert differences(source, dest) == []
    assert (dest / "sparse").stat().st_blocks * 512 < 2 * MIB
    assert (dest / "hole").stat().st_blocks == 0


@pytest.mark.parametrize("small", [True, False])
def test_a_small_file_that_keeps_changing_is_listed_too(trees, small):
    source, dest, work = trees
    make_tree(source)
    (source / "log").write_bytes(b"x" * (200_000 if small else 2 * MIB))
    pair = make_pair(trees)
    pair.start("dest")
    pair.start("source")
    with open(source / "log", "r+b") as log:
        while not (work / "job-source" / "result.json").exists() and pair.processes["source"].poll() is None:
            log.seek(0)
            log.write(os.urandom(100))
            log.flush()
    outcome = pair.finish()
    if outcome["errors_total"]:
        assert "unstable: sent 4 times" in outcome["errors"][0]["reason"] and not (dest / "log").exists()
    else:  # it was read between two changes
        assert (dest / "log").stat().st_size == (source / "log").stat().st_size
    assert (dest / "a" / "-rf").exists()


@pytest.mark.newest
@pytest.mark.parametrize(("serving", "victim"), [("dest", "source"), ("dest", "dest"), *rarely(("source", "dest"))])
def test_after_a_kill_a_rerun_goes_on_inside_the_file(trees, victim, serving):
    source, dest, _work = trees
    size = 128 * MIB
    (source / "image").write_bytes(noise(1, size // 4) * 4)
    (source / "small").write_bytes(b"small")
    pair = make_pair(trees, serving, streams=2, bwlimit=40 * MIB)
    pair.start(serving)
    pair.start(pair.driving)
    partial = dest / f".longhaul-{pair.plan['id']}" / "partial"
    deadline = time.monotonic() + 60
    safe = 0
    while not safe and time.monotonic() < deadline:
        time.sleep(0.02)
        safe = journaled(partial)
    pair.kill(victim)
    if victim == pair.serving:
        assert "failed" in pair.finish()
    pair.stop()
    assert safe and not (dest / "image").exists()
    outcome = transfer(trees, serving, streams=2)
    assert outcome["errors"] == [] and outcome["resumed"] and differences(source, dest) == []
    assert outcome["bytes_sent"] <= size - safe
    assert outcome["bytes_sent"] + outcome["bytes_matched"] == outcome["bytes_total"]
    assert not transfer(trees, serving)["changed"]


@pytest.mark.newest
@pytest.mark.parametrize("damage", ["torn", "flipped", "other", "short"])
def test_a_damaged_journal_is_not_believed(trees, damage):
    source, dest, _work = trees
    size = 96 * MIB
    (source / "image").write_bytes(noise(2, size // 4) * 4)
    pair = make_pair(trees, bwlimit=40 * MIB)
    pair.start("dest")
    pair.start("source")
    partial = dest / f".longhaul-{pair.plan['id']}" / "partial"
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size for path in partial.glob("*.ranges")) and time.monotonic() < deadline:
        time.sleep(0.02)
    pair.kill("dest")
    assert "failed" in pair.finish()
    (journal,) = partial.glob("*.ranges")
    data = journal.with_suffix("")
    text = journal.read_bytes()
    if damage == "torn":
        journal.write_bytes(text[: len(text) - 9])
    elif damage == "flipped":
        journal.write_bytes(text.replace(text[-12:-10], b"zz"))
    elif damage == "other":  # the data file is another one than the journal's
        data.rename(data.with_name("aside"))
        data.write_bytes(bytes(size))
        data.with_name("aside").unlink()
    else:
        os.truncate(data, 5 * MIB)
    assert transfer(trees)["errors"] == []
    assert differences(source, dest) == []


@pytest.mark.parametrize("encrypt", [True, *rarely(False)])
def test_of_a_changed_large_file_only_the_changed_blocks_travel(trees, encrypt):
    source, dest, _work = trees
    size = 64 * MIB
    (source / "image").write_bytes(noise(4, size))
    assert transfer(trees, streams=2)["errors"] == []
    with open(source / "image", "r+b") as image:
        for place in (0, 10 * MIB, 33 * MIB + 7, size - 100):
            image.seek(place)
            image.write(noise(place, 90))
        image.seek(size)
        image.write(b"appended" * 1000)
    outcome = transfer(trees, streams=2, encrypt=encrypt)
    assert outcome["errors"] == [] and differences(source, dest) == []
    assert outcome["bytes_sent"] <= 5 * 32768 + 8000
    assert outcome["bytes_sent"] + outcome["bytes_matched"] == outcome["bytes_total"]
    os.truncate(source / "image", 20 * MIB)
    outcome = transfer(trees, streams=2, encrypt=encrypt)
    assert outcome["bytes_sent"] == 0 and differences(source, dest) == []
    assert not transfer(trees)["changed"]


def test_without_delta_a_changed_file_travels_whole(trees):
    source, dest, _work = trees
    (source / "image").write_bytes(noise(4, 5 * MIB))
    assert transfer(trees)["errors"] == []
    with open(source / "image", "ab") as image:
        image.write(b"more")
    outcome = transfer(trees, delta="none")
    assert outcome["errors"] == [] and differences(source, dest) == []
    assert (outcome["bytes_sent"], outcome["bytes_matched"]) == (5 * MIB + 4, 0)


def test_files_whose_content_moved_are_left_to_rsync_and_no_others(trees):
    source, dest, _work = trees
    old = noise(4, 5 * MIB)
    for name in ("moved", "linked", "in place", "longer"):
        (source / name).write_bytes(old)
    os.link(source / "linked", source / "other name")
    assert transfer(trees)["errors"] == []
    (source / "moved").write_bytes(b"inserted" + old)
    (source / "linked").write_bytes(b"inserted" + old)
    (source / "in place").write_bytes(old[:MIB] + noise(5, MIB) + old[2 * MIB :])
    (source / "longer").write_bytes(noise(6, 16 * MIB))
    outcome = transfer(trees, delta="rsync")
    assert outcome["errors"] == [] and outcome["deferred"] == ["moved"]
    assert (dest / "moved").read_bytes() == old
    assert outcome["files_updated"] == 4
    assert outcome["bytes_sent"] == (5 * MIB + 8) + MIB + 16 * MIB


def test_in_place_only_the_changed_blocks_are_written_into_the_file(trees):
    source, dest, _work = trees
    (source / "image").write_bytes(noise(4, 20 * MIB))
    (source / "linked").write_bytes(noise(5, MIB))
    assert transfer(trees)["errors"] == []
    os.link(dest / "linked", dest.parent / "older backup")
    before = {name: (dest / name).stat() for name in ("image", "linked")}
    with open(source / "image", "r+b") as image:
        for place in (0, 10 * MIB + 7, 20 * MIB):
            image.seek(place)
            image.write(noise(place, 90))
        image.seek(3 * MIB)
        image.write(bytes(MIB))
    with open(source / "linked", "ab") as linked:
        linked.write(b"more")
    outcome = transfer(trees, inplace=True, streams=2)
    assert outcome["errors"] == [] and differences(source, dest) == []
    assert outcome["bytes_sent"] <= MIB + 5 * 32768
    assert outcome["bytes_sent"] + outcome["bytes_matched"] == outcome["bytes_total"]
    after = {name: (dest / name).stat() for name in before}
    assert after["image"].st_ino == before["image"].st_ino
    assert after["linked"].st_ino != before["linked"].st_ino  # its other name keeps the old version
    assert (dest.parent / "older backup").read_bytes() == noise(5, MIB)
    os.truncate(source / "image", 5 * MIB + 1)
    outcome = transfer(trees, inplace=True, encrypt=True)
    assert outcome["errors"] == [] and differences(source, dest) == []
    assert outcome["bytes_sent"] <= 32768 and (dest / "image").stat().st_ino == before["image"].st_ino
    assert not transfer(trees, inplace=True)["changed"]


@pytest.mark.parametrize("victim", ["dest", *rarely("source")])
def test_in_place_a_rerun_goes_on_from_what_was_written(trees, victim):
    source, dest, _work = trees
    size = 24 * MIB
    (source / "image").write_bytes(noise(1, size))
    (dest / "image").write_bytes(bytes(size))
    inode = (dest / "image").stat().st_ino
    pair = make_pair(trees, inplace=True, bwlimit=8 * MIB)
    pair.start("dest")
    pair.start("source")
    while not (dest / "image").read_bytes()[8 * MIB : 8 * MIB + 4096].strip(b"\0"):
        assert pair.processes["source"].poll() is None, pair.stderr("source")
        time.sleep(0.05)
    pair.kill(victim)
    pair.stop()
    assert (dest / "image").stat().st_mtime_ns != (source / "image").stat().st_mtime_ns
    outcome = transfer(trees, inplace=True)
    assert outcome["errors"] == [] and differences(source, dest) == []
    assert outcome["bytes_sent"] <= size - 8 * MIB + 4 * 32768, outcome["bytes_sent"]
    assert (dest / "image").stat().st_ino == inode


def test_holes_stay_and_come_with_a_delta(trees):
    source, dest, _work = trees
    with open(source / "image", "wb") as image:
        image.truncate(60 * MIB)
        image.seek(5 * MIB)
        image.write(noise(5, 30 * MIB))
    assert transfer(trees)["errors"] == []
    with open(source / "image", "r+b") as image:
        image.seek(50 * MIB)
        image.write(b"x")
        image.truncate(80 * MIB)
    outcome = transfer(trees)
    assert outcome["errors"] == [] and differences(source, dest) == []
    assert (dest / "image").stat().st_blocks * 512 < 32 * MIB
    (source / "image").write_bytes(bytes(20 * MIB))  # what was full is zeros now
    assert transfer(trees)["errors"] == []
    assert (dest / "image").read_bytes() == bytes(20 * MIB)


@pytest.mark.newest
def test_a_data_connection_that_is_cut_costs_nothing_but_time(trees):
    """A relay stands between the ends and cuts data connections, again and again."""
    source, dest, _work = trees
    (source / "image").write_bytes(noise(3, 20 * MIB) * 4)
    for encrypt in (False, True):
        pair = make_pair(trees, encrypt=encrypt, streams=2, bwlimit=40 * MIB, timeout=20)
        pair.start("dest")
        with Relay(int(pair.peer["port"])) as relay:
            pair.peer["port"] = relay.port
            pair.start("source")
            for cut in range(1, 5):
                relay.wait(cut * 16 * MIB)
                relay.cut_newest()
            outcome = pair.finish()
        assert outcome.get("errors") == [] and relay.cuts >= 2, outcome
        assert differences(source, dest) == []
        (dest / "image").unlink()


@pytest.mark.long
@pytest.mark.parametrize("serving", ["dest", "source"])
def test_a_line_that_breaks_before_anything_is_complete_is_given_up(trees, serving):
    """A relay cuts every connection after a mebibyte, and no range is as short as that."""
    source, dest, _work = trees
    (source / "image").write_bytes(noise(3, 32 * MIB))
    (source / "small").write_bytes(b"1")
    pair = make_pair(trees, serving, encrypt=False, streams=2, bwlimit=8 * MIB, timeout=2)
    pair.start(pair.serving)
    with Relay(int(pair.peer["port"])) as relay:
        pair.peer["port"] = relay.port
        pair.start(pair.driving)
        while pair.processes[pair.driving].poll() is None and relay.cuts < 1000:
            passed = relay.passed
            wait_for(lambda mark=passed: relay.passed >= mark + MIB or pair.processes[pair.driving].poll() is not None)
            relay.cut_all()
        outcome = pair.finish()
    assert "got no farther" in outcome.get("failed", ""), outcome
    assert (dest / "small").read_bytes() == b"1"
    assert make_pair(trees, serving).run()["errors"] == []
    assert differences(source, dest) == []


@pytest.mark.long
@pytest.mark.parametrize("serving", ["dest", "source"])
def test_the_whole_line_may_break_and_the_transfer_goes_on(trees, serving):
    source, dest, _work = trees
    make_tree(source)
    for number in range(60):
        (source / f"m{number}").write_bytes(noise(number, MIB))
    (source / "z-image").write_bytes(noise(3, 16 * MIB) * 4)
    pair = make_pair(trees, serving, encrypt=True, streams=2, bwlimit=40 * MIB, timeout=20)
    pair.start(serving)
    with Relay(int(pair.peer["port"])) as relay:
        pair.peer["port"] = relay.port
        pair.start(pair.driving)
        for cut in range(1, 4):
            relay.wait(cut * 24 * MIB)
            relay.cut_all()
        outcome = pair.finish()
    assert outcome.get("errors") == [] and relay.cuts >= 6, outcome
    assert differences(source, dest) == []
    assert outcome["files_created"] == outcome["files_total"] - 1 and outcome["resumed"]  # all but the root


@pytest.mark.parametrize("encrypt", [False, True])
def test_a_stranger_on_the_port_is_dropped(trees, encrypt):
    source, dest, _work = trees
    make_tree(source)
    pair = make_pair(trees, encrypt=encrypt)
    pair.start("dest")
    for said in (b"GET / HTTP/1.0\r\n\r\n" * 10, os.urandom(40), b"LHSTREAM" + bytes(80), b""):
        with socket.create_connection(("127.0.0.1", int(pair.peer["port"])), timeout=5) as stranger:
            stranger.sendall(said)
    pair.start("source")
    outcome = pair.finish()
    assert outcome.get("errors") == [], outcome
    assert differences(source, dest) == []


@pytest.mark.parametrize("encrypt", [False, True])
def test_what_was_said_once_cannot_be_said_again(trees, encrypt):
    source, dest, _work = trees
    make_tree(source)
    (source / "image").write_bytes(noise(1, 12 * MIB))
    pair = make_pair(trees, encrypt=encrypt, bwlimit=8 * MIB)
    pair.start("dest")
    with Relay(int(pair.peer["port"])) as relay:
        port, pair.peer["port"] = int(pair.peer["port"]), relay.port
        pair.start("source")
        relay.wait(2 * MIB)
        for said in [bytes(said) for said in relay.said]:  # of the conversation, and of the data connection
            before = pair.stderr("dest").count("listening on")
            with socket.create_connection(("127.0.0.1", port), timeout=15) as stranger:
                with contextlib.suppress(OSError):  # it may be refused before it has said everything
                    stranger.sendall(said[:4096])
                    stranger.shutdown(socket.SHUT_WR)
                    while stranger.recv(65536):
                        pass
            wait_for(lambda before=before: pair.stderr("dest").count("listening on") > before, seconds=15)
        outcome = pair.finish()
    assert outcome.get("errors") == [] and not outcome["resumed"], outcome
    assert differences(source, dest) == [] and relay.cuts == 0
    assert "Connecting again" not in pair.stderr("source") and len(relay.said) == 2


@pytest.mark.parametrize("wrong", ["secret", "certificate of the driving end", "certificate of the serving end"])
def test_who_is_not_the_other_end_is_refused(trees, wrong):
    source, dest, _work = trees
    make_tree(source)
    pair = make_pair(trees, encrypt=wrong != "secret")
    right = {name: dict(values) for name, values in pair.secrets.items()}
    if wrong == "secret":
        pair.secrets["drive"]["exchange"] = "f" * 32
    else:
        pair.use_tls()  # others
        part = "drive" if "driving" in wrong else "serve"
        other = "serve" if part == "drive" else "drive"
        pair.secrets[other] = right[other]
        # The impostor knows whom to trust, but is not trusted itself.
        pair.secrets[part]["tls_peer"] = right[part]["tls_peer"]
    pair.start("dest")
    pair.start("source")
    try:
        wait_for(lambda: "listening on" in pair.stderr("dest"), seconds=30)
        time.sleep(2)
        assert not list(dest.glob("[a-z]*"))
    finally:
        pair.kill("source")
        pair.stop()


def test_ipv6(trees):
    source, dest, _work = trees
    make_tree(source)
    pair = make_pair(trees)
    pair.serve.update(address="::1", allow=["::1"])
    assert pair.run().get("errors") == []
    assert differences(source, dest) == []


def test_a_busy_port_gives_way_to_the_next_and_none_is_a_clear_error(trees):
    source, _dest, _work = trees
    make_tree(source)
    with socket.socket() as busy, socket.socket() as other:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        other.bind(("127.0.0.1", 0))
        free = other.getsockname()[1]
        other.close()
        pair = make_pair(trees)
        pair.serve["ports"] = [busy.getsockname()[1], free]
        assert pair.run()["errors"] == [] and pair.peer["port"] == free
        pair = make_pair(trees)
        pair.serve["ports"] = [busy.getsockname()[1]]
        with pytest.raises(NotReady, match="cannot listen at port"):
            pair.start("dest")
        pair.stop()
