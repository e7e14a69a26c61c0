# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A session from its beginning to its result, over hosts that answer as a test says: which executions it makes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.memory import Memory
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import (
    ControllerGone,
    HostFailed,
    LeaseLost,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.interruption import Interruption
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.remembered import recall_size, remember_size
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import TransferError
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.session import Session
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import parse_status
from ansible_collections.longhaul.fleet.tests.support.scripted_hosts import (
    DIGEST,
    ScriptedHost,
    failed,
    finished,
    unreachable,
)
from ansible_collections.longhaul.fleet.tests.unit.plugins.plugin_utils.transfer.test_plan import end, options, path

MEASURED = {"entries": 3, "content": 7, "apparent": 7, "complete": True}
COMPARED = "stop, quick_digest(clear)"
NO_PEER = "no answer at port 5000"


class Case:
    """Two hosts, the memory of earlier runs, and the sessions between them."""

    def __init__(self, memory: Memory | None = None, **facts: Any) -> None:
        self.memory, self.said = memory, []  # type: tuple[Memory | None, list[str]]
        at = {"source": path(measured=MEASURED, empty=False), "dest": path(empty=False)}
        self.hosts = {
            side: ScriptedHost(side, {**end(side, at=at[side]).probe, "fingerprint": side, **facts}) for side in at
        }
        self.source, self.dest = self.hosts.values()

    def session(self, check: bool = False, snapshot: Any = None, **given: Any) -> Session:
        asked = options(numeric_ids=True, **given)
        for host in self.hosts.values():
            host.done.clear()
            host.requests.clear()
        source, dest = self.hosts.values()
        return Session(source, dest, asked, check, self.said.append, Interruption(), self.memory, snapshot=snapshot)

    def run(self, check: bool = False, **given: Any) -> Any:
        return self.session(check, **given).run()

    def has_job(self, side: str, request: Any, running: bool, **status: Any) -> None:
        """Let a host have a job that an earlier run began."""
        host = self.hosts[side]
        host.facts = {**host.facts, "job": {"running": running, "request": request, "status": status}}


def test_a_transfer_is_probed_served_driven_and_compared() -> None:
    case = Case()
    result = case.run()
    assert case.source.done == ["probe", f"drive({COMPARED})"]
    assert case.dest.done == ["probe", "serve", COMPARED]
    assert (result["state"], result["verified"], result["attached"]) == ("finished", "size", False)
    assert result["compared"]["dest"]["entries"] == 3
    assert set(result["phases"]) == {"probe", "connect", "transfer", "verify"}
    (driven,) = case.source.requests
    assert driven["peer"]["port"] == 5000 and driven["peer_name"] == "dest"
    assert driven["fingerprint"] == case.dest.requests[0]["fingerprint"]


@pytest.mark.parametrize(
    ("given", "source", "dest"),
    [
        ({"verify": "none"}, "drive(stop, clear)", "stop, clear"),
        ({"verify": "none", "sync": "data"}, "drive(stop, clear)", "stop, clear, sync"),
        ({"sync": "data"}, f"drive({COMPARED})", "stop, quick_digest(clear, sync)"),
        ({"verify": "checksum", "sync": "data"}, f"drive({COMPARED})", "stop, quick_digest(clear, sync)"),
        ({"check": True, "sync": "data"}, "drive(stop, clear)", "stop, clear"),
    ],
    ids=str,
)
def test_the_last_steps_follow_the_transfer(given: dict[str, Any], source: str, dest: str) -> None:
    case = Case()
    result = case.run(**given)
    assert (case.source.done[1], case.dest.done[2]) == (source, dest)
    assert ("sync" in result["phases"]) == (given.get("sync") == "data" and not given.get("check"))


@pytest.mark.parametrize("measured", [{"apparent": 2**26}, {"complete": False}], ids=str)
def test_contents_that_take_longer_to_read_are_compared_by_jobs(measured: dict[str, Any]) -> None:
    case = Case()
    case.source.facts["path"]["measured"] = {**MEASURED, **measured}
    assert case.run(verify="checksum")["verified"] == "checksum"
    assert (case.source.done[1:3], case.dest.done[2]) == (["drive", "stop, digest"], "stop, digest")


def test_the_destination_connects_where_the_source_cannot() -> None:
    case = Case()
    case.source.answers["drive"] = [unreachable(NO_PEER)]
    assert case.run()["method"] == "stream"
    assert case.source.done == ["probe", "drive(stop, quick_digest(clear))", "abort, clear", "serve", COMPARED]
    assert case.dest.done == ["probe", "serve", "abort, clear", f"drive({COMPARED})"]
    assert case.said == [f"source -> dest: {NO_PEER}. Trying the other direction"]


def test_ssh_is_used_where_no_port_can_be_reached() -> None:
    case = Case()
    for host in case.hosts.values():
        host.answers["drive"] = [unreachable(NO_PEER)]
    result = case.run()
    assert result["method"] == "rsync"
    assert any("method stream was tried first" in one for one in result["warnings"])
    other = f"{NO_PEER}. The other direction was tried too: {NO_PEER}"
    assert case.said[-1] == f"source -> dest: {other}. Trying without a port of its own"
    assert case.source.done == [
        "probe",
        f"drive({COMPARED})",
        "abort, clear",
        "serve",
        "abort",
        "abort, clear",
        "probe",
        f"drive({COMPARED})",
    ]


def test_a_direction_that_was_named_is_the_only_one() -> None:
    case = Case()
    case.source.answers["drive"] = [unreachable(NO_PEER)]
    with pytest.raises(TransferError, match=NO_PEER) as error:
        case.run(connect="push", method="stream")
    assert case.source.done[2:] == ["abort", "clear"] and case.dest.done[2:] == ["abort", "clear"]
    assert error.value.may_pass and error.value.details and error.value.details["state"] == "failed"


def test_hosts_that_are_not_trusted_use_no_other_port() -> None:
    case = Case()
    for host in case.hosts.values():
        host.answers["drive"] = [unreachable(NO_PEER)]
    with pytest.raises(TransferError, match="other direction was tried too.*since trust is none"):
        case.run(trust="none")
    assert all(host.off_disks for host in case.hosts.values())


def test_a_failure_names_what_the_peer_said_and_leaves_nothing() -> None:
    case = Case()
    case.source.answers["drive"] = [failed("the connection broke", lost=True)]
    case.dest.answers["abort"] = [failed("the disk is full")]
    with pytest.raises(TransferError, match=r"the connection broke \(the peer: the disk is full\)") as error:
        case.run()
    assert error.value.may_pass
    assert case.dest.done[2:] == ["abort", "clear"]


@pytest.mark.parametrize("name", ["serve", "drive"])
def test_nothing_is_left_where_an_end_does_not_start(name: str) -> None:
    case = Case()
    case.hosts["dest" if name == "serve" else "source"].answers[name] = [HostFailed("is gone", "host")]
    with pytest.raises(HostFailed, match="is gone"):
        case.run()
    assert case.source.done[-1] == case.dest.done[-1] == "abort, clear"


def test_a_long_transfer_is_polled() -> None:
    case = Case()
    case.source.answers["drive"] = [{"state": "running", "alive": True}]
    case.source.answers["poll"] = [{"state": "running", "alive": True}]
    assert case.run()["verified"] == "size"
    assert case.source.done == ["probe", f"drive({COMPARED})", "poll", "poll", COMPARED]


def test_a_transfer_goes_on_where_nobody_waits() -> None:
    case = Case()
    case.source.answers["drive"] = [{"state": "starting", "alive": True, "progress": {"phase": "starting"}}]
    case.source.answers["poll"] = [{"state": "running", "alive": True, "progress": {"phase": "transfer"}}]
    session = case.session(wait=False)
    running = session.begin()
    assert running.status.alive and [(place.runner.name, place.drives) for place in running.places] == [
        ("source", True),
        ("dest", False),
    ]
    result = session.finish(running, parse_status({**finished(), "started": 1.0, "ended": 6.0}))
    assert result["phases"]["transfer"] == 5.0 and result["verified"] == "size"
    case.source.answers["drive"] = [{"state": "running", "alive": True, "progress": {"phase": "transfer"}}]
    assert case.run(wait=False)["state"] == "running"


def test_a_running_transfer_of_the_same_task_is_attached_to() -> None:
    case = Case()
    case.run()
    (request,) = case.source.requests
    case.has_job("source", request, True, pid=7, started=10.0**9)
    case.has_job("dest", case.dest.requests[0], True, pid=8, ready={"port": 9})
    case.source.answers["poll"] = [{**finished(bytes_sent=3200), "started": 1.0, "ended": 17.0}]
    session = case.session()
    result = session.run()
    assert (result["phases"]["transfer"], result["throughput"]) == (16.0, 200)
    assert session.joined == "attached to a running transfer"
    assert result["attached"] and case.source.done == ["probe", "poll", COMPARED]
    assert case.said[-1].startswith("source -> dest: attached to the running transfer")
    with pytest.raises(Refusal, match="process 7 on source.*this task has other options.*transfer_control -a 'id="):
        case.run(delete=True)
    with pytest.raises(Refusal, match="in check mode nothing can be told"):
        case.run(check=True)
    assert case.run(timeout=77, owner_warnings=False)["attached"]


def test_a_result_that_nobody_waited_for_is_collected_or_counted() -> None:
    case = Case()
    case.run()
    (request,) = case.source.requests
    ended = finished(files_created=2, changes=[">f a"], changes_total=1, bytes_sent=4000)
    case.has_job("source", request, False, **ended, started=1.0, ended=3.0)
    collected = case.run(collect=True)
    assert collected["attached"] and collected["files_created"] == 2
    assert case.source.done == ["probe", COMPARED]
    assert (collected["phases"]["transfer"], collected["throughput"]) == (2.0, 2000)
    session = case.session()
    again = session.run()
    assert 2.0 <= again["phases"]["transfer"] < 3.0 and 1000 < again["throughput"] <= 2000
    assert session.joined == "with an earlier run that had ended already"
    assert not again["attached"] and again["files_created"] == 2 and again["changes"] == [">f a"]
    assert case.run(collect=True, delete=True)["attached"] is False


def test_a_prediction_that_still_runs_makes_way() -> None:
    case = Case()
    case.run(check=True)
    case.has_job("source", case.source.requests[0], True, pid=7)
    assert case.run()["attached"] is False


def test_a_rerun_needs_three_executions(tmp_path: Any) -> None:
    case = Case(Memory(str(tmp_path / "memory")))
    case.run()
    result = case.run()
    assert case.dest.done == ["probe(serve)", COMPARED]
    assert case.source.done == [f"probe(drive({COMPARED}))"]
    assert result["verified"] == "size" and set(result["phases"]) == {"connect", "transfer", "verify"}


@pytest.mark.parametrize("side", ["source", "dest"])
def test_a_host_that_changed_is_planned_anew(tmp_path: Any, side: str) -> None:
    case = Case(Memory(str(tmp_path / "memory")))
    case.run()
    case.hosts[side].facts = {**case.hosts[side].facts, "fingerprint": "other"}
    case.run()
    start = ["probe(serve)", "abort, clear"] if side == "source" else ["probe(serve)"]
    assert case.dest.done == [*start, "probe", "serve", COMPARED]
    assert case.source.done[-2:] == ["probe", f"drive({COMPARED})"]
    case.run()
    assert case.source.done == [f"probe(drive({COMPARED}))"]


def test_an_empty_destination_is_probed_again_for_the_next_run(tmp_path: Any) -> None:
    case = Case(Memory(str(tmp_path / "memory")))
    case.dest.facts = {**case.dest.facts, "path": path()}
    case.run()
    assert case.dest.done == ["probe", "serve", "stop, quick_digest(clear, probe)"]


def test_a_host_that_lies_about_what_it_has_starts_nothing(tmp_path: Any) -> None:
    case = Case(Memory(str(tmp_path / "memory")))
    case.run()
    case.source.facts = {**case.source.facts, "addresses": ["10.9.9.9"]}  # with the fingerprint of before
    with pytest.raises(TransferError, match="no longer as they had been found before"):
        case.run()
    assert case.source.done[-1] == case.dest.done[-1] == "abort, clear"


def test_what_was_left_to_rsync_is_sent_by_rsync() -> None:
    case = Case()
    case.source.answers["drive"] = [finished(deferred=["moved"], files_updated=1), finished(files_updated=2)]
    result = case.run(delta="rsync")
    assert result["by_rsync"] == 1 and result["files_updated"] == 3 and result["verified"] == "size"
    # All is cleared, rsync is started, and the comparison takes the last steps of both.
    assert case.source.done == ["probe", f"drive({COMPARED})", "stop, clear", "drive", COMPARED]
    assert case.dest.done == ["probe", "serve", "stop, clear", "serve", COMPARED]
    case.source.answers["drive"] = [finished(deferred=["moved"]), failed("rsync is broken")]
    with pytest.raises(TransferError, match=r"all but 1 file arrived.*rsync is broken"):
        case.run(delta="rsync")


@pytest.mark.parametrize("known", [{"time_units": {"": 10**9}}, {"kept_mounts": ["mnt"]}], ids=str)
def test_a_digest_that_did_not_know_what_the_transfer_found_is_made_again(known: dict[str, Any]) -> None:
    case = Case()
    case.source.answers["drive"] = [finished(**known)]
    assert case.run(delete=True)["verified"] == "size"
    assert case.source.done[2:] == ["stop, digest", "stop, clear, clear"]


def test_coarse_times_are_remembered(tmp_path: Any) -> None:
    case = Case(Memory(str(tmp_path / "memory")))
    units = {"": 10**9}
    case.source.answers["drive"] = [finished(time_units=units), finished(time_units=units)]
    assert "in steps of 1 s" in " ".join(case.run()["warnings"])
    case.run()
    assert case.source.requests[0]["settings"]["time_units"] == units
    assert case.source.done == [f"probe(drive({COMPARED}))"]


def test_the_size_of_the_tree_is_remembered(tmp_path: Any) -> None:
    memory = Memory(str(tmp_path / "memory"))
    case = Case(memory)
    case.source.answers["drive"] = [finished(files_total=7, bytes_total=40, bytes_apparent=50)]
    assert recall_size(memory, case.run()["transfer_id"]) == (7, 50)
    remember_size(memory, "another", -1, 5)
    assert recall_size(memory, "another") == recall_size(None, "another") == (0, 0)


def test_owners_are_counted_before_rsync_is_started() -> None:
    case = Case()
    owners = {"state": "finished", "alive": False, "owners": {"users": [], "groups": []}}
    case.source.answers["owners"] = [owners]
    result = case.run(method="rsync", check=True)
    assert case.source.done[:2] == ["probe", "owners(stop, clear)"]
    assert result["owner_mismatches"] == [] and result["phases"]["owners"] >= 0


def answers(case: Case, **ask: str) -> dict[str, Any]:
    """Probe hosts before a transfer begins; its source in the place of another one."""
    session = case.session(verify="checksum")
    return {side: case.hosts[side].run(session.probe_step(side))[0] for side in ask.values()}


def test_hosts_that_were_asked_before_are_probed_with_the_start_of_their_job() -> None:
    case = Case()
    case.dest.facts = {**case.dest.facts, "path": path()}  # empty: its room is known, as it was asked a moment ago
    probed, seen = answers(case, one="dest"), answers(case, one="source")
    result = case.session(verify="checksum").run(probed, seen)
    assert case.dest.done == ["serve", COMPARED] and case.source.done == [f"probe(drive({COMPARED}))"]
    assert result["verified"] == "checksum" and set(result["phases"]) == {"connect", "transfer", "verify"}
    # One of both is not enough, and what was seen of the source counts only while it is so.
    case.session().run(probed)
    assert case.dest.done == ["serve", COMPARED] and case.source.done == ["probe", f"drive({COMPARED})"]
    case.session().run({}, seen)
    assert case.dest.done == ["probe", "serve", COMPARED] and case.source.done == ["probe", f"drive({COMPARED})"]
    case.source.facts = {**case.source.facts, "fingerprint": "other"}
    case.session().run(probed, seen)
    assert case.dest.done == ["serve", "abort, clear", "serve", COMPARED]
    assert case.source.done == [f"probe(drive({COMPARED}))", "probe", f"drive({COMPARED})"]


def test_a_transfer_that_runs_is_attached_to_although_the_hosts_were_asked_before() -> None:
    case = Case()
    seen = answers(case, one="source")
    case.run()
    (request,) = case.source.requests
    case.has_job("source", request, True, pid=7, started=10.0**9)
    case.has_job("dest", case.dest.requests[0], True, pid=8, ready={"port": 9})
    probed = answers(case, one="dest")
    assert case.session().run(probed, seen)["attached"] and case.source.done == ["probe", "poll", COMPARED]


@pytest.mark.parametrize("change", [{"job": {"running": True}}, {"fingerprint": None}])
def test_where_another_job_was_seen_or_nothing_to_compare_with_hosts_are_probed(change: dict[str, Any]) -> None:
    case = Case()
    case.dest.facts = {**case.dest.facts, "path": path()}
    probed, seen = answers(case, one="dest"), answers(case, one="source")
    merged = {name: {**seen["source"][name], **one} if isinstance(one, dict) else one for name, one in change.items()}
    case.session().run(probed, {"source": {**seen["source"], **merged}})
    assert case.source.done == ["probe", f"drive({COMPARED})"]


def test_a_destination_that_is_too_small_is_refused_before_anything_starts() -> None:
    case = Case()
    case.dest.facts = {**case.dest.facts, "path": path(free_bytes=3)}
    case.source.facts["path"]["measured"] = {**MEASURED, "content": 10**6, "apparent": 10**6}
    probed, seen = answers(case, one="dest"), answers(case, one="source")
    with pytest.raises(Refusal, match="has room for 3 B"):
        case.session().run(probed, seen)
    assert not case.dest.done and case.source.done == ["probe"]


class Filled:
    """A snapshot whose last step compares."""

    compares = True
    steps = ({"do": "snapshot", "action": "begin"},)

    def take(self, answers: Any) -> dict[str, Any]:
        assert answers == [{}]
        return {"link_dest": ["/srv/older"]}


def test_a_snapshot_is_begun_with_the_probe_and_completed_by_its_owner() -> None:
    case = Case()
    session = case.session(snapshot=Filled())
    running = session.begin()
    result = session.finish(running, running.status)
    assert case.dest.done == ["snapshot, probe", "serve"]
    assert case.source.done == ["probe", f"drive({COMPARED})"]
    assert case.dest.requests[0]["settings"]["link_dest"] == ["/srv/older"]
    assert result["verified"] == "size" and session.uncompared is not None
    assert [step["do"] for step in session.uncompared.before] == ["stop"]
    assert [step["do"] for step in session.uncompared.after] == ["clear"]
    assert session.uncompared.compare["sums"] == DIGEST["sums"]
    case.source.done.clear()
    assert session.uncompared.send_again()["verified"] == "size"
    assert case.source.done == ["stop, digest", "stop, clear, clear"]


def test_a_source_that_cannot_be_read_at_once_leaves_the_comparison_to_both_hosts() -> None:
    case = Case()
    case.source.answers["quick_digest"] = [{"digest": None}]
    session = case.session(snapshot=Filled())
    running = session.begin()
    assert session.finish(running, running.status)["verified"] == "size"
    assert session.uncompared is None and case.dest.done[2:] == ["stop, digest", "stop, clear, clear"]


@pytest.mark.parametrize(
    ("method", "ran", "spent", "asked"),
    [
        ("rsync", 9.0, {"source": {"wall": 9.0}}, True),
        ("rsyncd", 9.0, {"source": {"wall": 9.0}}, True),
        ("rsync", 2.0, {"source": {"wall": 2.0}}, False),  # of which little can be said
        ("stream", 9.0, {"source": {"wall": 9.0}}, False),
        ("rsync", 9.0, {"source": {"wall": 9.0}, "dest": {"wall": 8.0}}, False),
    ],
)
def test_the_listening_side_of_a_program_is_asked_for_its_account(
    method: str, ran: float, spent: dict[str, object], asked: bool
) -> None:
    class Dest:
        steps: list[Any] = []

        def run(self, *steps: Any) -> list[object]:
            self.steps = [*self.steps, *steps]
            return [{"state": "serving", "alive": True, "spent": {"wall": 8.0, "disk": {"seconds": 8.0}}}]

    session, dest = Case().session(), Dest()
    session._hosts.runners = {"source": None, "dest": dest}
    plan: Any = SimpleNamespace(sides=("source", "dest"), choice=SimpleNamespace(method=method))
    outcome = {"bytes_sent": 5, "spent": spent}
    given = parse_status(
        {"state": "finished", "alive": False, "outcome": outcome, "started": 100.0, "ended": 100.0 + ran}
    )
    status = session._with_server_account(plan, given)
    assert [step["do"] for step in dest.steps] == (["poll"] if asked else [])
    found = {"wall": 8.0, "disk": {"seconds": 8.0}} if asked else spent.get("dest")
    assert status.outcome and status.outcome.spent.get("dest") == found and status.outcome.bytes_sent == 5
    assert given.outcome and given.outcome.spent == spent


@pytest.mark.parametrize(
    ("answer", "fails"),
    [
        (HostFailed("gone", unreachable=True), False),
        ([], False),
        ([{"state": 5, "alive": "x"}], False),
        (LeaseLost("another control node has it"), True),
        (ControllerGone("killed"), True),
    ],
)
def test_a_transfer_that_succeeded_does_not_fail_for_its_account(answer: Any, fails: bool) -> None:
    class Dest:
        def run(self, *_steps: Any) -> list[object]:
            if isinstance(answer, Exception):
                raise answer
            return answer

    session = Case().session()
    session._hosts.runners = {"source": None, "dest": Dest()}
    plan: Any = SimpleNamespace(sides=("source", "dest"), choice=SimpleNamespace(method="rsync"))
    given = parse_status(
        {"state": "finished", "alive": False, "outcome": {"bytes_sent": 5}, "started": 100.0, "ended": 109.0}
    )
    if fails:
        with pytest.raises(type(answer)):
            session._with_server_account(plan, given)
        return
    status = session._with_server_account(plan, given)
    assert status.outcome and status.outcome.bytes_sent == 5 and not status.outcome.spent.get("dest")
