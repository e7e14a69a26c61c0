# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of a transfer: what it found counts for its comparison, who compares, and what is said of a failure."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import (
    ControllerGone,
    HostFailed,
    LeaseLost,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.completion import (
    Completion,
    clean_up_failed,
    find_failure,
    first_digests,
    with_outcome,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import TransferError, shape_result
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import Status, parse_status
from ansible_collections.longhaul.fleet.tests.support.scripted_hosts import DIGEST, failed, finished
from ansible_collections.longhaul.fleet.tests.unit.plugins.plugin_utils.transfer.test_transfer_hosts import Pair

COMPARED = {"digest": DIGEST, "then": [{}]}
LATER = {"compares_later": True, "fills_snapshot": True}


class End(Pair):
    """A pair whose transfer has ended."""

    rsync_fails = False

    def __init__(self, check: bool = False, **given: Any) -> None:
        super().__init__(check, **given)
        self.sent_again: list[Any] = []
        self.result = shape_result(self.plan, parse_status(finished()), "finished", {}, {})
        self.completion = Completion(self.hosts, self.ends, self.result, False, self.send_again)

    def send_again(self, plan: Any) -> Outcome:
        self.sent_again.append(plan)
        if self.rsync_fails:
            raise TransferError("no rsync")
        return Outcome(files_updated=1)

    def run(self, then: Any = None, **outcome: Any) -> list[list[str]]:
        """End the transfer; return what was asked of both sides."""
        self.completion.run(self.plan, parse_status({**finished(**outcome), **({"then": then} if then else {})}))
        return [self.runners[side].done for side in self.ends]


@pytest.mark.parametrize(
    ("given", "then", "source", "dest"),
    [
        ({"verify": "none"}, [{}, {}], [], ["stop, clear"]),
        ({"verify": "none"}, None, ["stop, clear"], ["stop, clear"]),
        ({"check": True}, [{}, {}], [], ["stop, clear"]),
        ({}, [{}, COMPARED], [], ["stop, quick_digest(clear)"]),
        ({}, None, ["stop, quick_digest(clear)"], ["stop, quick_digest(clear)"]),
        ({}, [{}, {"digest": None}], ["stop, digest", "stop, clear, clear"], ["stop, digest", "stop, clear, clear"]),
        ({"connect": "pull"}, [{}, COMPARED], ["stop, quick_digest(clear)"], []),
        ({"more": LATER}, [{}, COMPARED], [], []),
        ({"more": LATER}, None, ["stop, quick_digest(clear)"], []),
        ({"more": LATER, "verify": "none"}, [{}, {}], [], ["stop, clear"]),
    ],
    ids=str,
)
def test_each_side_does_what_it_has_not_done(given: dict[str, Any], then: Any, source: Any, dest: Any) -> None:
    end = End(**given)
    assert end.run(then) == [source, dest]
    assert end.result["verified"] == ("none" if given.get("check") or given.get("verify") == "none" else "size")
    assert (end.completion.uncompared is not None) == (given == {"more": LATER})


@pytest.mark.parametrize(
    ("outcome", "files", "digest"),
    [
        ({}, 200_001, COMPARED),
        ({"kept_mounts": ["mnt"]}, 3, COMPARED),
        ({}, 3, {"digest": {**DIGEST, "errors_total": 1}}),
    ],
    ids=["large", "a mount is kept", "unread"],
)
def test_a_snapshot_is_compared_by_both_hosts_where_its_last_step_cannot(outcome: Any, files: int, digest: Any) -> None:
    end = End(more=LATER, delete=True)
    end.result["files_total"] = files
    assert end.run([{}, digest], **outcome)[1]
    assert end.completion.uncompared is None and end.result["verified"] == "size"


def test_the_time_for_the_disk_is_a_phase_of_its_own() -> None:
    end = End(sync="data", verify="none")
    end.runners["dest"].answers["sync"] = [{"seconds": 2.0}]
    end.run()
    assert end.hosts.phases["sync"] == 2.0 and end.hosts.phases["finish"] < 0  # the scripted host did not wait


def test_a_destination_that_was_empty_is_probed_for_the_next_run() -> None:
    end = End(empty=True, more={"remembers": True})
    end.run([{}, COMPARED])
    probe: Any = end.completion.dest_probe
    assert probe["fingerprint"] == "dest"


def test_what_is_left_to_rsync_is_sent_before_the_comparison() -> None:
    end = End(delta="rsync")
    assert end.run([{}, COMPARED], deferred=["a*b"]) == [["stop, clear", "stop, quick_digest(clear)"]] * 2
    (by_rsync,) = end.sent_again
    assert by_rsync.choice.method == "rsync" and by_rsync.settings["rules"][-2:] == ["+ /a\\*b", "- *"]
    assert end.result["by_rsync"] == 1 and end.result["files_updated"] == 1
    end.rsync_fails = True
    with pytest.raises(TransferError, match="all but 1 file arrived.*no rsync"):
        end.run(deferred=["b"])


def test_what_a_transfer_found_counts_for_its_comparison() -> None:
    end = End(owner_map={"users": {1: 2}})
    outcome = Outcome(owners={"users": [[1, 9], [3, 4]]}, time_units={"": 10**9})
    settings = with_outcome(end.plan, outcome).settings
    assert settings["owner_map"]["users"] == [[1, 2], [3, 4]] and settings["time_units"] == {"": 10**9}


@pytest.mark.parametrize(
    ("outcome", "known"),
    [(Outcome(), True), (Outcome(time_units={"": 10**9}), False), (Outcome(kept_mounts=["mnt"]), False)],
)
def test_a_digest_counts_if_it_knew_all(outcome: Outcome, known: bool) -> None:
    digests = first_digests(End().plan, outcome, {"source": [{}, COMPARED]})
    assert list(digests) == ["source"] and (digests["source"] is not None) == known
    assert first_digests(End().plan, outcome, {}) == {}


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (finished(), ""),
        (failed("the line is down"), "the line is down"),
        ({**failed("told"), "outcome": Outcome(failure="less").as_dict()}, "told"),
        (finished(failure="the disk is full"), "the disk is full"),
        (finished(errors=[{"path": "a", "reason": "no"}], errors_total=1), "1 of the entries could not be transferred"),
        ({"state": "died", "alive": False}, "the transfer ended as died"),
        ({"state": "finished", "alive": False}, "the transfer ended as finished"),
    ],
)
def test_why_a_transfer_failed(status: Any, failure: str) -> None:
    found = find_failure(parse_status(status))
    assert found.startswith(failure) and bool(found) == bool(failure)


def test_a_failure_is_told_with_what_the_peer_says_and_cleaned_up() -> None:
    end = End()
    assert clean_up_failed(end.hosts, end.plan, parse_status(finished())) == "" and not end.runners["source"].done
    end.runners["dest"].answers["abort"] = [failed("the disk is full")]
    lost = Status("failed", alive=False, failure="the line is down")
    assert clean_up_failed(end.hosts, end.plan, lost) == "the line is down (the peer: the disk is full)"
    assert end.runners["source"].done == end.runners["dest"].done == ["abort", "clear"]
    end.runners["dest"].answers["abort"] = [HostFailed("cannot be reached", "dest")]
    assert "Afterwards dest: cannot be reached" in clean_up_failed(end.hosts, end.plan, lost)
    for error in (ControllerGone("killed"), LeaseLost("taken")):
        end.runners["dest"].answers["abort"] = [error]
        with pytest.raises(type(error)):
            clean_up_failed(end.hosts, end.plan, lost)
