# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Leases of jobs: what is decided, and the file at the host with real processes that ask for it at once."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import stat

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.state_folder import StateError
from ansible_collections.longhaul.fleet.plugins.module_utils._job import leases, records
from ansible_collections.longhaul.fleet.plugins.module_utils._job.commands import StepContext, run_steps
from ansible_collections.longhaul.fleet.plugins.module_utils._job.leases import Clock, decide, do_lease, see

IDENTITY = "0123456789abcdef"
LIFE = 900.0
NOW = Clock("this-boot", 5000.0)


def ask(act, holder="a" * 32, **more):
    return {
        "do": "lease", "id": IDENTITY, "act": act, "holder": holder, "who": f"{holder[0]}@control", "life": LIFE,
        "takeover": False, "guard": False, **more,
    }  # fmt: skip


def lease(holder="a" * 32, **changes):
    return {
        "holder": holder, "who": f"{holder[0]}@control", "boot": "this-boot", "since": 4000.0, "renewed": 4900.0,
        "life": LIFE, "firm": False, "released": False, **changes,
    }  # fmt: skip


OTHER = "b" * 32
LIVE = lease(OTHER)
EXPIRED = lease(OTHER, renewed=NOW.now - LIFE)
REBOOTED = lease(OTHER, boot="another-boot")
RESTARTED = lease(OTHER, renewed=NOW.now + 1)  # a system without an id of its boots
RELEASED = lease(OTHER, released=True)
FIRM = lease(OTHER, firm=True)
OLD_FIRM = {**EXPIRED, "firm": True, "boot": "another-boot"}


@pytest.mark.parametrize(
    ("found", "takes", "forced"),
    [
        (None, True, True),
        (RELEASED, True, True),
        (EXPIRED, True, True),
        (REBOOTED, True, True),
        (RESTARTED, True, True),
        (LIVE, False, True),
        (FIRM, False, True),
        (OLD_FIRM, False, True),
    ],
    ids=["none", "released", "expired", "rebooted", "clock restarted", "live", "firm", "firm, of another boot"],
)
def test_who_may_take_a_lease(found, takes, forced):
    for takeover, may in ((False, takes), (True, forced)):
        decision = decide(found, ask("take", takeover=takeover), NOW)
        assert decision.held == may
        assert (decision.written is not None) == may
        if decision.written:
            assert decision.written["holder"] == "a" * 32 and decision.written["renewed"] == NOW.now
            # What was stopped when it was taken over stays so until its new holder says otherwise.
            assert decision.written["firm"] == bool(found and found["firm"])
    for act in ("renew", "release", "look"):
        assert decide(found, ask(act, takeover=True), NOW) == (False, None)


@pytest.mark.parametrize("found", [lease(), lease(renewed=0.0), lease(boot="another-boot"), lease(released=True)])
def test_its_holder_keeps_it_as_long_as_nobody_else_took_it(found):
    for act in ("take", "renew"):
        decision = decide(found, ask(act), NOW)
        assert decision.held
        assert decision.written is None or decision.written["renewed"] == NOW.now
        assert not (decision.written or found)["released"]


def test_a_renewal_is_written_down_now_and_then():
    assert decide(lease(renewed=4990.0), ask("renew"), NOW).written is None
    assert decide(lease(renewed=4905.0), ask("renew"), NOW).written["renewed"] == NOW.now
    assert decide(lease(renewed=4999.0), ask("renew", firm=True), NOW).written["firm"] is True


def test_a_firm_lease_is_not_released_and_expires_by_nothing():
    kept = decide(lease(firm=True), ask("release"), NOW)
    assert kept.held and not (kept.written or {}).get("released")
    freed = decide(lease(firm=True), ask("release", firm=False), NOW)
    assert freed.written["released"] and not freed.written["firm"]
    assert see(freed.written, NOW)["left"] == 0.0


def test_after_another_had_it_its_former_holder_must_begin_again():
    taken = decide(EXPIRED, ask("take"), NOW).written
    released = decide(taken, ask("release"), NOW).written
    for found in (taken, released):
        assert not decide(found, ask("renew", OTHER), NOW).held
    assert decide(released, ask("take", OTHER), NOW).held


def test_what_a_host_says_of_a_lease():
    assert see(LIVE, NOW) == {
        "holder": OTHER, "who": "b@control", "age": 1000.0, "left": 800.0, "firm": False, "released": False,
    }  # fmt: skip
    assert see(REBOOTED, NOW)["age"] is None and see(REBOOTED, NOW)["left"] == 0.0


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    for module in (leases, records):
        monkeypatch.setattr(module, "state_root", lambda: str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_lease_is_kept_for_this_user_alone(root):
    assert do_lease(ask("look")) == {"held": False, "found": None, "problem": ""} and not root.exists()
    assert do_lease(ask("take"))["held"]
    refused = do_lease(ask("take", OTHER))
    assert not refused["held"] and refused["found"]["who"] == "a@control" and 0 < refused["found"]["left"] <= LIFE
    assert refused["problem"] == ""
    assert sorted(os.listdir(root / "leases")) == [".lock", f"{IDENTITY}.json"]
    assert stat.S_IMODE((root / "leases").stat().st_mode) == 0o700
    assert stat.S_IMODE((root / f"leases/{IDENTITY}.json").stat().st_mode) == 0o600
    assert [one["id"] for one in leases.list_leases()] == [IDENTITY]
    assert do_lease(ask("release"))["held"] and do_lease(ask("take", OTHER))["held"]


def test_it_expires_by_the_clock_of_the_host(monkeypatch):
    clock = [NOW]
    monkeypatch.setattr(leases, "read_clock", lambda: clock[0])
    do_lease(ask("take"))
    clock[0] = NOW._replace(now=NOW.now + LIFE - 1)
    assert not do_lease(ask("take", OTHER))["held"]
    clock[0] = NOW._replace(now=NOW.now + LIFE)
    assert do_lease(ask("take", OTHER))["held"]
    clock[0] = Clock("next-boot", 3.0)
    assert do_lease(ask("take"))["held"]


def test_a_guard_lets_no_step_pass_without_a_lease(root):
    guard = ask("take", guard=True)
    keep = {"do": "keep_record", "id": IDENTITY, "record": {}}
    given = StepContext({}, "")
    assert [len(run_steps([guard, keep], given)) for _number in range(2)] == [2, 2]
    other = ask("renew", OTHER, guard=True)
    assert len(run_steps([other, keep], given)) == 1
    assert len(run_steps([{**other, "guard": False}, keep], given)) == 2


def test_a_record_comes_with_a_release_of_the_holder_alone(root):
    given = StepContext({}, "")
    run_steps([ask("take"), ask("release", record={"by": "a"})], given)
    assert records.find_record(IDENTITY)["record"] == {"by": "a"} and leases.read_lease(IDENTITY)["released"]
    run_steps([ask("take", OTHER)], given)
    (refused,) = run_steps([ask("release", record={"by": "a, asleep since"})], given)
    assert not refused["held"] and records.find_record(IDENTITY)["record"] == {"by": "a"}
    (root / "records" / f"{IDENTITY}.json").unlink()
    (root / "records" / f"{IDENTITY}.json").mkdir()
    (released,) = run_steps([ask("release", OTHER, record={"by": "b"})], given)
    assert released["held"] and not released["problem"], "what cannot be kept holds nobody up"


@pytest.mark.parametrize(
    "text",
    ["", "{ torn", "[]", "{}", '"' + "x" * leases.LARGEST + '"', "[" * 2000]
    + [
        json.dumps({**lease(), **change})
        for change in (
            {"holder": "../x"}, {"holder": 5}, {"who": "x" * 500}, {"life": 0}, {"life": 1e9}, {"firm": 1},
            {"renewed": -1}, {"renewed": float("nan")}, {"since": 1e300}, {"boot": "x" * 100}, {"released": None},
        )
    ],
)  # fmt: skip
def test_what_is_no_lease_stops_all_and_says_what_to_do(root, text):
    do_lease(ask("take"))
    path = root / f"leases/{IDENTITY}.json"
    path.write_text(text)
    for act in ("look", "take", "renew", "release"):
        answer = do_lease(ask(act))
        assert not answer["held"] and str(path) in answer["problem"] and "remove that file" in answer["problem"]
        assert path.read_text() == text
    assert leases.list_leases() == []
    assert do_lease(ask("take", takeover=True))["held"] and do_lease(ask("renew"))["held"]


def test_what_another_user_could_have_put_there_is_not_used(root, tmp_path):
    do_lease(ask("take"))
    path = root / f"leases/{IDENTITY}.json"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert "cannot be read" in do_lease(ask("renew"))["problem"]
    path.unlink()
    os.mkfifo(path)
    assert "cannot be read" in do_lease(ask("renew"))["problem"]
    os.rename(root / "leases", tmp_path / "moved")
    (root / "leases").symlink_to(tmp_path / "moved")
    assert "not a folder of this user" in do_lease(ask("take"))["problem"]


@pytest.mark.parametrize("wrong", [{"act": "steal"}, {"holder": ""}, {"life": 1e9}, {"who": "x" * 999}, {"firm": "no"}])
def test_a_request_that_makes_no_sense_is_refused(root, wrong):
    with pytest.raises(StateError, match="cannot be asked for"):
        do_lease({**ask("take"), **wrong})
    assert "its id is none" in do_lease({**ask("take"), "id": "../../x"})["problem"]
    assert not root.exists() or not list(root.glob("**/*.json"))


SPAWNED = multiprocessing.get_context("spawn")
ROUNDS = [f"{number:016x}" for number in range(60)]


def _race(folder, holder, together, won):
    """Ask for one lease after the other, each at the same moment as the others do."""
    leases.state_root = lambda: folder
    held = []
    for identity in ROUNDS:
        together.wait(60)
        held.append(do_lease({**ask("take", holder), "id": identity})["held"])
    won.put((holder, held))


@pytest.mark.parametrize("before", [None, REBOOTED], ids=["free", "expired"])
def test_of_processes_that_ask_at_once_one_gets_it(root, before):
    for identity in ROUNDS if before else ():
        do_lease({**ask("take"), "id": identity})
        (root / f"leases/{identity}.json").write_text(json.dumps(before))
    holders = [letter * 32 for letter in "cde"]
    together, won = SPAWNED.Barrier(len(holders)), SPAWNED.Queue()
    racers = [SPAWNED.Process(target=_race, args=(str(root), holder, together, won)) for holder in holders]
    for racer in racers:
        racer.start()
    said = dict(won.get(timeout=90) for _racer in racers)
    for racer in racers:
        racer.join(30)
    for number, identity in enumerate(ROUNDS):
        (winner,) = [holder for holder in holders if said[holder][number]]
        assert leases.read_lease(identity)["holder"] == winner


def _hold(folder, holding):
    leases.state_root = lambda: folder
    with leases._locked():
        holding.set()
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_was_killed_while_it_held_the_lock_is_in_nobodys_way(root):
    do_lease(ask("take"))
    holding = SPAWNED.Event()
    killed = SPAWNED.Process(target=_hold, args=(str(root), holding))
    killed.start()
    assert holding.wait(60)
    killed.join(30)
    assert do_lease(ask("renew"))["held"]


@pytest.mark.parametrize(
    ("left", "stays"),
    [(RELEASED, False), (EXPIRED, False), (REBOOTED, False), (LIVE, True), (FIRM, True), (OLD_FIRM, True)],
)
@pytest.mark.parametrize("is_old", [True, False])
def test_a_lease_that_nobody_has_is_forgotten_after_a_while(root, monkeypatch, left, stays, is_old):
    monkeypatch.setattr(leases, "read_clock", lambda: NOW)
    assert do_lease(ask("take"))["held"]
    path = root / f"leases/{IDENTITY}.json"
    path.write_text(json.dumps(left))
    os.utime(path, (1000, 1000) if is_old else (3000, 3000))
    leases.remove_forgotten_leases(2000)
    assert path.exists() == (stays or not is_old)


def test_what_is_no_lease_is_not_forgotten(root):
    assert do_lease(ask("take"))["held"]
    path = root / f"leases/{IDENTITY}.json"
    path.write_text("{}")
    os.utime(path, (1000, 1000))
    leases.remove_forgotten_leases(2000)
    assert path.exists()
