# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A comparison of small equal trees takes one execution a side; anything else is left to jobs."""

from __future__ import annotations

import hashlib
import os
from types import SimpleNamespace

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.module_utils._job import commands, digest_job, state
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.record_store import RecordStore, RecordWriter
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.comparison import (
    SIDES,
    Comparison,
    ComparisonFailed,
    parse_digest,
    parse_quick_digest,
)


class Host:
    """Does the steps here, but starts no job: it says that it would have failed."""

    def __init__(self, name):
        self.name, self.asked = name, []

    def run(self, *asked):
        self.asked.append([step["do"] for step in asked])
        if any(step["do"] == "start" for step in asked):
            return [{"alive": False, "state": "failed", "failure": "no job here"}]
        return commands.run_steps(list(asked), commands.StepContext({}, "/no/engine"))


@pytest.fixture
def hosts(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "state_root", lambda: str(tmp_path / "state"))
    for side in SIDES:
        (tmp_path / side).mkdir()
        (tmp_path / side / "file").write_text("text")
    return {side: Host(side) for side in SIDES}


def comparison(hosts, tmp_path, short=True):
    roots = {side: str(tmp_path / side) for side in SIDES}
    return Comparison(runners=hosts, roots=roots, identity="pair", fields=["size", "mode"], short=short)


def around(what):
    return {side: [{"do": what, "id": "0123456789abcdef", "side": side, "succeeded": True}] for side in SIDES}


def test_small_equal_trees_take_one_execution_a_side(hosts, tmp_path):
    found = comparison(hosts, tmp_path).run(print, around("stop"), around("clear"))
    assert (found.differences, found.differences_total, found.unstable) == ((), 0, 0)
    assert found.counts["source"] == found.counts["dest"]
    assert found.counts["source"]["entries"] == 2
    assert [hosts[side].asked for side in SIDES] == [[["stop", "quick_digest"]]] * 2


def test_a_side_that_was_read_before_is_not_asked_again(hosts, tmp_path):
    compared = comparison(hosts, tmp_path)
    (said,) = hosts["source"].run(compared.quick_digest_step("source", []))
    compared.run(print, around("stop"), around("clear"), {"source": parse_quick_digest(said)})
    assert (hosts["source"].asked, hosts["dest"].asked) == ([["quick_digest"]], [["stop", "quick_digest"]])


@pytest.mark.parametrize("why", ["differs", "not short", "took too long", "cannot be read"])
def test_anything_else_is_left_to_jobs(hosts, tmp_path, why):
    quick_digests = {}
    if why == "differs":
        (tmp_path / "dest/file").write_text("longer text")
    if why == "took too long":
        quick_digests = {"source": None}
    if why == "cannot be read":
        (tmp_path / "dest/file").unlink()
        (tmp_path / "dest").rmdir()
    with pytest.raises(ComparisonFailed, match="source: no job here"):
        comparison(hosts, tmp_path, short=why != "not short").run(print, around("stop"), around("clear"), quick_digests)
    at_once = [["stop", "quick_digest"]] if why in ("differs", "cannot be read") else []
    for side in SIDES:
        assert hosts[side].asked == [*at_once, ["stop", "start"], ["stop", "clear", "clear"]]


class Reader:
    """Reads its tree at once where a job would, and answers questions about it."""

    def __init__(self, name, spool):
        self.name, self.spool, self.request, self.asked = name, str(spool), {}, []

    def file(self, _name):
        return self.spool

    def run(self, *asked):
        return [self._step(step) for step in asked]

    def _step(self, step):
        self.asked.append(step.get("ask", step["do"]))
        if step["do"] == "start":
            self.request = step["request"]
            with RecordWriter(self.spool) as spool, digest_job._held(self.request) as root:
                digest = digest_job._read(self.request, root, spool, lambda _size: None)
            return {"alive": False, "state": "finished", "digest": digest}
        folder = SimpleNamespace(request=self.request, file=self.file)
        return digest_job.drill_down(folder, step) if step["do"] == "drill_down" else {}


@pytest.mark.parametrize("portion", [1, 1_000_000])
def test_names_that_the_destination_alone_has_are_no_difference_of_links(tmp_path, monkeypatch, portion):
    listing = RecordStore.listing
    monkeypatch.setattr(RecordStore, "listing", lambda self, buckets, **more: listing(self, buckets, portion, **more))
    for side, names in (("source", "cbzy"), ("dest", "abczxy")):
        (tmp_path / side).mkdir()
        for name in names:
            path = tmp_path / side / name
            if name == names[0]:
                path.write_text("text")
            else:
                os.link(tmp_path / side / names[0], path)
    (tmp_path / "dest" / "y").unlink()
    (tmp_path / "dest" / "y").write_text("text")
    hosts = {side: Reader(side, tmp_path / f"spool-{side}") for side in SIDES}
    roots = {side: str(tmp_path / side) for side in SIDES}
    found = Comparison(hosts, roots, "pair", ["size", "links"]).run(print)
    assert [(one["path"], one["fields"]) for one in found.differences] == [("y", ["links"])]
    assert found.differences_total == 1
    assert ("absent" in hosts["dest"].asked) == (portion == 1)


DIGEST = {"entries": 1, "types": {"f": 1}, "bytes": 5, "sums": "", "errors": [], "errors_total": 0}


def test_a_digest_is_read():
    found = parse_digest(dict(DIGEST, errors=[{"path": "a", "reason": "denied"}], errors_total=1))
    counts = {"entries": 1, "types": {"f": 1}, "bytes": 5, "digest": hashlib.sha256(b"").hexdigest()[:32]}
    assert (found.counts, found.errors_total) == (counts, 1)
    assert found.errors[0]["path"] == "a" and parse_quick_digest({"digest": None}) is None


@pytest.mark.parametrize(
    "more", [{"entries": "1"}, {"types": {"f": "1"}}, {"types": []}, {"sums": None}, {"errors": [{"path": "a"}]}]
)
def test_what_is_no_digest_is_refused(more):
    with pytest.raises(WrongShape):
        parse_quick_digest({"digest": {**DIGEST, **more}})


def test_a_source_that_lists_nothing_it_is_asked_for_is_not_asked_for_ever(hosts, tmp_path, monkeypatch):
    digests = {side: parse_digest(dict(DIGEST, errors_total=0)) for side in SIDES}
    monkeypatch.setattr(
        "ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.comparison._differing", lambda _: [1]
    )
    monkeypatch.setattr(hosts["source"], "run", lambda *_steps: [{"buckets": [], "entries": "", "unstable": ""}])
    with pytest.raises(WrongShape, match="listed none"):
        comparison(hosts, tmp_path)._differences(digests)
