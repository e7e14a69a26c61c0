# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tickets in files: which are believed, and how a limit follows them."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net import ticket_file
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.rate_limit import BURST, TokenBucket, refill
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.ticket_file import (
    OWN,
    PEER,
    BadTicket,
    TicketFile,
    Tickets,
    read_ticket,
    write_ticket,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._model.ticket import FREE, Ticket, combine
from hypothesis import given
from hypothesis import strategies as st

PAUSED = Ticket(paused=True)


@pytest.fixture(autouse=True)
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticket_file, "POLL", 0.0)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert read_ticket(folder, OWN) == FREE
    write_ticket(folder, OWN, Ticket(True, False, 5))
    assert read_ticket(folder, OWN) == Ticket(True, False, 5)
    assert (tmp_path / OWN).stat().st_mode & 0o777 == 0o600
    write_ticket(folder, OWN, FREE)
    assert os.listdir(folder) == []


def damaged(path: Path) -> None:
    path.write_text("{", encoding="ascii")


def readable_by_others(path: Path) -> None:
    path.chmod(0o644)


def of_another_user(path: Path) -> None:
    if os.geteuid():
        pytest.skip("cannot run here: needs root")
    os.chown(path, 4711, -1)


def a_symlink(path: Path) -> None:
    path.rename(path.with_name("target"))
    path.symlink_to(path.with_name("target"))


def a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def too_long(path: Path) -> None:
    path.write_text(" " * 5000 + path.read_text(encoding="ascii"), encoding="ascii")


@pytest.mark.parametrize("spoil", [damaged, readable_by_others, of_another_user, a_symlink, a_fifo, too_long])
def test_a_file_that_is_not_safe_is_not_believed_and_what_was_in_force_stays(tmp_path: Path, spoil) -> None:
    said: list[str] = []
    file = TicketFile(str(tmp_path), OWN, said.append)
    write_ticket(str(tmp_path), OWN, PAUSED)
    assert file.read() == PAUSED and not said
    write_ticket(str(tmp_path), OWN, Ticket(rate=5))
    spoil(tmp_path / OWN)
    with pytest.raises(BadTicket):
        read_ticket(str(tmp_path), OWN)
    assert file.read() == file.read() == PAUSED
    assert len(said) == 1


def test_a_file_is_looked_at_twice_a_second_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticket_file, "POLL", 0.5)
    looks = []
    found = os.lstat
    monkeypatch.setattr(os, "lstat", lambda path: looks.append(path) or found(path))
    file = TicketFile(str(tmp_path), OWN)
    began = time.monotonic()
    while time.monotonic() - began < 1.1:
        file.read()
    assert 2 <= len(looks) <= 3


def test_both_tickets_count(tmp_path: Path) -> None:
    tickets = Tickets(str(tmp_path))
    write_ticket(str(tmp_path), OWN, Ticket(rate=9))
    write_ticket(str(tmp_path), PEER, Ticket(paused=True, rate=5))
    assert tickets.read() == Ticket(True, False, 5)
    assert tickets.own.read() == Ticket(rate=9)


def test_what_is_in_force_is_worked_out_when_a_file_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for with each piece of a large file, so to work it out each time costs a transfer processor time."""
    now, worked_out = [100.0], []
    monkeypatch.setattr(ticket_file, "POLL", 0.5)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(ticket_file, "combine", lambda own, peer: worked_out.append(now[0]) or combine(own, peer))
    tickets = Tickets(str(tmp_path))
    for piece in range(1100):
        now[0] = 100 + piece / 1000
        tickets.read()
    assert worked_out == [100, 100.5, 101]


@pytest.mark.parametrize("name", [OWN, PEER])
def test_a_ticket_is_in_force_a_poll_after_it_was_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of the two files was looked at later."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    tickets = Tickets(str(tmp_path))
    tickets.own.read()
    now[0] += ticket_file.POLL / 2
    assert tickets.read() == FREE
    write_ticket(str(tmp_path), name, PAUSED)
    now[0] += ticket_file.POLL
    assert tickets.read() == PAUSED


def test_a_bucket_holds_back_while_it_is_paused(tmp_path: Path) -> None:
    bucket = TokenBucket(0, Tickets(str(tmp_path)))
    write_ticket(str(tmp_path), OWN, PAUSED)
    passed = threading.Event()
    thread = threading.Thread(target=lambda: (bucket.take(1), bucket.hold(), passed.set()), daemon=True)
    thread.start()
    assert not passed.wait(0.5)
    assert bucket.grant(1) == 0
    write_ticket(str(tmp_path), OWN, FREE)
    assert passed.wait(2)


def test_a_bucket_follows_its_ticket(tmp_path: Path) -> None:
    bucket = TokenBucket(1000, Tickets(str(tmp_path)))
    assert bucket.rate == 1000 and bucket.piece(1 << 20, 10) == 50
    write_ticket(str(tmp_path), OWN, Ticket(rate=0))
    assert bucket.rate == 0 and bucket.piece(1 << 20, 10) == 1 << 20
    bucket.take(1 << 60)
    write_ticket(str(tmp_path), OWN, Ticket(rate=1_000_000))
    began = time.monotonic()
    bucket.take(700_000)
    assert 0.4 < time.monotonic() - began < 3


def test_who_waits_is_told_that_it_is_over(tmp_path: Path) -> None:
    write_ticket(str(tmp_path), OWN, PAUSED)

    def lost() -> None:
        raise TransferFailed("the peer is lost")

    with pytest.raises(TransferFailed, match="the peer is lost"):
        TokenBucket(0, Tickets(str(tmp_path)), lost).take(5)
    bucket = TokenBucket(0, Tickets(str(tmp_path)))
    threading.Timer(0.2, bucket.close).start()
    with pytest.raises(TransferFailed, match="ended while"):
        bucket.take(5)


def _take(path: str, count: int) -> None:
    bucket = TokenBucket(1_000_000, shared=path)
    for _piece in range(count):
        bucket.take(50_000)


def test_processes_share_one_limit(tmp_path: Path) -> None:
    workers = [multiprocessing.Process(target=_take, args=(str(tmp_path / "bucket"), 10)) for _number in range(3)]
    began = time.monotonic()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert 1.2 < time.monotonic() - began < 6  # 1.5 MB, at 1 MB/s


@given(st.floats(-1e6, 1e6), st.floats(0, 10), st.integers(1, 1 << 40), st.integers(0, 1 << 30))
def test_no_more_is_granted_than_there_is(tokens, since, rate, count):
    left, granted = refill(tokens, since, rate, count)
    assert 0 <= granted <= count
    assert left + granted <= max(1.0, rate / BURST) + 1e-3
    assert granted <= max(0.0, left + granted)


@given(st.lists(st.floats(0, 3), min_size=1, max_size=200), st.integers(10_000, 1 << 30))
def test_in_no_two_seconds_is_more_granted_than_five_percent_above_the_limit(gaps, rate):
    now, tokens, grants = 0.0, 0.0, []
    for gap in gaps:
        now += gap
        tokens, granted = refill(tokens, gap, rate, 1 << 40)
        grants.append((now, granted))
    for first, (began, _granted) in enumerate(grants):
        assert sum(granted for at, granted in grants[first:] if at - began <= 2) <= 2.1 * rate + 1
