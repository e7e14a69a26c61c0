# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a restore, with hosts and transfers of the test."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.files import Folder
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import ControllerGone, HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.interruption import Interruption
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore import workflow
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.load import LoadOutcome
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.request import RestoreRequest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import TransferError
from ansible_collections.longhaul.fleet.tests.unit.plugins.plugin_utils.jobs.restore.options import make_options

NAME = names.name_of(int(time.time()) - 3600)
SNAPSHOT = {"name": NAME, "state": "complete", "time": "2026-11-21T17:30:09Z", "age": 3600, "reason": ""}
LISTED = {"snapshots": [SNAPSHOT]}
INTACT = {
    "name": NAME,
    "kind": "directory",
    "checked": "contents",
    "problems": [],
    "problems_total": 0,
    "probe": {"of": "source"},
}
FREE = {"overlaps": False, "dest": "/srv/data.back", "free": True}
COUNTS = ("files_created", "files_updated", "files_deleted", "files_unchanged", "attributes_changed", "vanished")
MADE = {
    **dict.fromkeys(COUNTS, 0),
    "changed": True,
    "bytes_total": 5,
    "bytes_apparent": 5,
    "bytes_sent": 5,
    "files_total": 2,
}
RESULT = {**MADE, "duration": 1.0, "method": "stream", "encrypted": True, "verified": "checksum", "changes": ["+ a"]}


class Bench:
    """A workflow, the answers of its hosts by step, and the results of its transfers, the real one last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "reports"
        self.answers: dict[str, Any] = {
            "snapshot": LISTED,
            "inspect_snapshot": INTACT,
            "inspect_destination": FREE,
            "probe": {"of": "dest"},
        }
        self.results: list[Any] = [RESULT]
        self.transfers: list[tuple[dict[str, Any], bool, str]] = []
        self.known: list[Any] = []  # of both hosts before each transfer
        self.shown: list[str] = []
        self.summary: Any = None
        self.noted: list[Any] = []  # in the history of the snapshots
        self.note_answer: Any = {"changed": True, "warnings": []}
        self.executions: list[list[str]] = []  # the steps of each
        self.cut: int | None = None  # how many answers the host that receives the files gives at most

    def runner(self, name: str) -> Any:
        """Return a runner of a host."""
        return SimpleNamespace(name=name, variables={}, run=self._run)

    def _run(self, *steps: Any) -> list[Any]:
        self.executions.append([str(step.get("action") or step["do"]) for step in steps])
        answers = [self._answer(step) for step in steps]
        return answers[: self.cut] if steps[0]["do"] == "inspect_destination" else answers

    def _answer(self, step: Any) -> Any:
        if step.get("action") == "restored":
            self.noted.append(step["options"])
            return self.note_answer
        answer = self.answers[step["do"]]
        if isinstance(answer, Exception):
            raise answer
        return answer(step) if callable(answer) else answer

    def session(self, _source: Any, _dest: Any, options: Any, check: bool, *_others: Any) -> Any:
        """Return a transfer."""
        return SimpleNamespace(
            run=lambda probed, seen: self._transfer(options, check, {**seen, **probed}),
            probe_step=lambda side: {
                "do": "probe",
                "side": side,
                "path": options["src" if side == "source" else "dest"],
            },
        )

    def _transfer(self, options: Any, check: bool, known: Any) -> Any:
        self.transfers.append((options, check, self.state))
        self.known.append(known)
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return dict(result)

    def run(self, check: bool = False, path: str = "", to: str = "web1", **given: Any) -> Any:
        """Restore, and return the result."""
        made = workflow.RestoreWorkflow(
            RestoreRequest("vault", "/srv/backup", "web1", "data", path, to, f"/srv/data/{path}".rstrip("/")),
            make_options(**{"dest": "/srv/data.back", **given}),
            self.runner("vault"),
            self.runner(to),
            Folder(str(self.folder), writes=not check),
            self.shown.append,
            Interruption(),
            check=check,
            diff=True,
            by="ada@control1",
        )
        try:
            return made.run()
        finally:
            self.summary = made.summary

    def run_refused(self, words: str, **given: Any) -> None:
        """Restore what must be refused with these words."""
        with pytest.raises((Refusal, HostFailed), match=words):
            self.run(**given)

    @property
    def state(self) -> str:
        """The state in the report."""
        return str(self.report.get("state", ""))

    @property
    def report(self) -> dict[str, Any]:
        """The report for programs that was written last; there is one for people, too."""
        found = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        assert {path.with_suffix(".html") for path in found} == set(self.folder.glob("*.html"))
        return json.loads(found[-1].read_text()) if found else {}


@pytest.fixture(name="bench")
def _bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench(tmp_path)
    monkeypatch.setattr(workflow, "Session", bench.session)
    return bench


def test_a_restore_beside(bench: Bench) -> None:
    assert bench.run(transfer={"bwlimit": "1M", "trust": None, "sync": None}) == RESULT
    ((options, check, state),) = bench.transfers
    assert (check, state, bench.state) == (False, "begun", "restored")
    chosen = (
        "src_host",
        "src",
        "dest_host",
        "dest",
        "trust",
        "sync",
        "checksum",
        "delete",
        "verify",
        "bwlimit",
        "wait",
    )
    assert [options[name] for name in chosen] == [
        *("vault", f"/srv/backup/web1/data/{NAME}/data/", "web1", "/srv/data.back", "none", "data"),
        *(False, False, "checksum", "1M", True),
    ]
    assert bench.shown[0] == f"{NAME}, the newest" and bench.shown[1] == "Restore of web1, data"
    assert bench.summary["state"] == "restored" and bench.summary["entries"] == 2 and bench.summary["bytes"] == 5
    assert Path(bench.summary["report"]).exists()
    assert bench.report["result"]["method"] == "stream" and "changes" not in bench.report["result"]


def test_owners_are_told_where_another_host_receives_the_files_or_names_count(bench: Bench) -> None:
    for chosen, told in (({}, False), ({"numeric_ids": "false"}, True), ({"owner_warnings": True}, True)):
        bench.results = [RESULT]
        bench.run(transfer=chosen)
        assert bench.transfers[-1][0]["owner_warnings"] == told
    bench.results = [RESULT]
    bench.run(to="web2")
    assert bench.transfers[-1][0]["owner_warnings"]


def test_the_newest_snapshot_is_checked_in_the_execution_that_lists_all(bench: Bench) -> None:
    for when in ("latest", NAME):
        bench.results = [RESULT]
        bench.run(when=when)
        assert bench.executions == [["list", "inspect_snapshot"], ["inspect_destination", "probe"]]
        bench.executions.clear()
    bench.run_refused("there is no snapshot 2020", when="2020-01-01T000000Z")
    bench.executions.clear()
    bench.answers["inspect_snapshot"] = {**INTACT, "name": "2020-01-01T000000Z"}  # pruned or made meanwhile
    bench.results = [RESULT]
    bench.run()
    assert bench.executions[:2] == [["list", "inspect_snapshot"], ["inspect_snapshot"]]
    bench.executions.clear()
    bench.answers["inspect_snapshot"] = HostFailed("there is no 'photo'. Did you mean photos?", "vault")
    with pytest.raises(HostFailed, match="Did you mean photos"):
        bench.run()
    assert bench.executions == [["list", "inspect_snapshot"], ["list"], ["inspect_snapshot"]]


def test_the_history_of_the_snapshots_says_who_restored(bench: Bench) -> None:
    bench.run()
    assert not bench.noted, "a rerun that finds nothing to do changes nothing"
    restored = {**RESULT, "files_created": 2}
    bench.results.append(restored)
    bench.run()
    assert bench.noted == [{"name": NAME, "why": "all to web1:/srv/data.back", "by": "ada@control1"}]
    assert bench.report["warnings"] == []
    bench.results.append(restored)
    bench.note_answer = {"refused": "the repository is read-only"}
    assert bench.run() == restored
    (warning,) = bench.report["warnings"]
    assert warning == "the restore is not in the history of the snapshots: the repository is read-only"


def test_check_mode_predicts_and_writes_nothing(bench: Bench) -> None:
    bench.run(check=True, over=True, delete=True)
    ((options, check, _state),) = bench.transfers
    assert check and options["checksum"] and options["delete"] and not bench.folder.exists() and not bench.noted
    assert bench.summary["report"] == "" and bench.summary["check_mode"]
    assert any("Would be restored" in line for line in bench.shown)


@pytest.mark.parametrize(
    "error", [Refusal("no room"), HostFailed("no room"), TransferError("no room", dict(RESULT)), TypeError("no room")]
)
def test_a_failure_is_written_down_and_resumed_without_a_prediction(bench: Bench, error: Exception) -> None:
    bench.results = [error, RESULT]
    with pytest.raises(TransferError, match="^The restore is not complete: .*no room.* to resume it$") as failed:
        bench.run()
    assert failed.value.details == getattr(error, "details", None)
    assert bench.state == "failed" and "no room" in bench.summary["failure"]
    bench.answers["inspect_destination"] = {**FREE, "free": False}
    bench.run()
    assert [check for _options, check, _state in bench.transfers] == [False, False] and bench.state == "restored"


def test_a_run_that_is_killed_is_resumed_without_a_prediction(bench: Bench) -> None:
    bench.results = [ControllerGone("killed"), RESULT]
    with pytest.raises(ControllerGone):
        bench.run()
    assert bench.state == "begun" and not bench.summary
    bench.answers["inspect_destination"] = {**FREE, "free": False}
    bench.run()
    assert [check for _options, check, _state in bench.transfers] == [False, False]


@pytest.mark.parametrize("predicted", [{**RESULT, "files_updated": 1}, HostFailed("lost"), TransferError("failed")])
def test_other_content_is_left_alone(bench: Bench, predicted: Any) -> None:
    bench.answers["inspect_destination"] = {**FREE, "free": False}
    bench.results = [predicted]
    with pytest.raises(Refusal, match="restore_over=true"):
        bench.run(check=True)
    ((options, check, _state),) = bench.transfers
    assert check and options["checksum"] and options["delete"] and options["verify"] == "none"
    assert ("+ a" in bench.shown) == isinstance(predicted, dict) and not bench.summary


def test_a_complete_restore_is_predicted_and_made_again(bench: Bench) -> None:
    bench.run()
    bench.answers["inspect_destination"] = {**FREE, "free": False}
    bench.results = [RESULT, RESULT]
    bench.run()
    assert [(check, state) for _options, check, state in bench.transfers[1:]] == [(True, "restored"), (False, "begun")]
    assert "+ a" not in bench.shown, "a prediction of a real run is for that run only"


OWN, BESIDE = "/srv/data/a/", f"/srv/data/a/b.restored-{NAME}/"


@pytest.mark.parametrize(
    ("taken", "earlier", "predicted", "is_own"),
    [
        ([], False, None, True),
        (["/srv/data/a/b"], False, None, False),  # what is there is not even compared
        (["/srv/data/a/b"], True, RESULT, True),  # the same restore once more
        (["/srv/data/a/b"], True, {**RESULT, "files_updated": 1}, False),  # it was changed since
    ],
)
def test_a_file_goes_to_its_own_place_where_that_is_free(
    bench: Bench, taken: list[str], earlier: bool, predicted: Any, is_own: bool
) -> None:
    bench.answers["inspect_snapshot"] = {**INTACT, "kind": "file"}
    if earlier:
        bench.run(path="a/b", dest="")
    bench.answers["inspect_destination"] = lambda step: {**FREE, "free": step["occupies"] not in taken}
    bench.transfers, bench.results = [], [*([predicted] if predicted else []), RESULT]
    bench.run(path="a/b", dest="")
    assert [(check, options["dest"]) for options, check, _state in bench.transfers] == [
        *([(True, OWN)] if predicted else []),
        (False, OWN if is_own else BESIDE),
    ]
    looks = [one for one in bench.executions if one[0] == "inspect_destination"]
    again = [["inspect_destination", "probe"]] * bool(predicted and not is_own)  # a prediction may take long
    first = looks[-1 - len(again) :]
    assert first == [["inspect_destination", "probe"] * 2, *again], "both places are looked at in one execution"
    # A prediction leaves traces of its job, so the host is probed again.
    source, dest = {"source": {"of": "source"}}, {"dest": {"of": "dest"}}
    both = {**source, **dest}
    assert bench.known[-len(bench.transfers) :] == ([both, source if is_own else both] if predicted else [both])


def test_a_place_that_is_not_needed_may_be_unusable(bench: Bench) -> None:
    bench.answers["inspect_snapshot"] = {**INTACT, "kind": "file"}
    too_long = HostFailed("File name too long", "web1")

    def answer(step: Any) -> Any:
        if step["occupies"] != "/srv/data/a/b":
            raise too_long
        return FREE

    bench.answers["inspect_destination"] = answer
    bench.run(path="a/b", dest="")
    assert bench.executions[1:] == [["inspect_destination", "probe"] * 2, ["inspect_destination", "probe"]]
    assert [options["dest"] for options, _check, _state in bench.transfers] == [OWN]
    for error in (HostFailed("no route", "web1", unreachable=True), ControllerGone("killed")):
        bench.answers["inspect_destination"] = error
        bench.executions.clear()
        with pytest.raises(HostFailed, match=str(error)):
            bench.run(path="a/b", dest="")
        assert len(bench.executions) == 2


def test_too_few_answers_are_a_failure_of_the_host(bench: Bench) -> None:
    bench.cut = 1
    with pytest.raises(ValueError, match="shorter"):
        bench.run()
    assert not bench.transfers and not bench.folder.exists()


def test_options_that_cannot_be_are_refused_before_any_host_is_asked(monkeypatch: Any, bench: Bench) -> None:
    def refuse(_side: str) -> Any:
        raise Refusal("bwlimit is no rate")

    monkeypatch.setattr(workflow, "Session", lambda *_given: SimpleNamespace(probe_step=refuse))
    bench.run_refused("bwlimit is no rate")
    assert not bench.executions and not bench.folder.exists()


def test_an_interrupted_restore_of_a_file_never_writes_over_its_own_place(bench: Bench) -> None:
    bench.answers["inspect_snapshot"] = {**INTACT, "kind": "file"}
    bench.results = [ControllerGone("killed"), {**RESULT, "files_updated": 1}, RESULT]
    with pytest.raises(ControllerGone):
        bench.run(path="a/b", dest="")
    bench.answers["inspect_destination"] = lambda step: {**FREE, "free": step["occupies"] != "/srv/data/a/b"}
    bench.run(path="a/b", dest="")
    assert [(check, options["dest"]) for options, check, _state in bench.transfers[1:]] == [
        (True, OWN),
        (False, BESIDE),
    ]


LOADS = [{"postgresql": {}}, {"mariadb": {}}]


def test_dumps_that_are_loaded_are_a_change_in_the_history(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Any] = []

    def load_one(_host: Any, load: Any, *_others: Any) -> LoadOutcome:
        loaded.append(load["kind"])
        return LoadOutcome("shop as shop_restored")

    monkeypatch.setattr(workflow, "load_dumps", load_one)
    assert bench.run(check=True, consistent=LOADS)["changed"] and not loaded and not bench.noted
    assert "Would load the dumps of mariadb on web1" in bench.shown
    bench.results = [{**RESULT, "changed": False}]
    assert bench.run(consistent=LOADS)["changed"] and loaded == ["postgresql", "mariadb"]
    assert bench.noted[0]["why"].endswith(":/srv/data.back, and dumps of postgresql, mariadb into its databases")
    assert "Loaded the dumps of mariadb on web1: shop as shop_restored" in bench.shown
    assert bench.report["loaded"] == dict.fromkeys(("postgresql", "mariadb"), "shop as shop_restored")


@pytest.mark.parametrize("over", [False, True])
def test_a_load_that_fails_keeps_the_report_of_the_files_and_says_what_is_loaded(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, over: bool
) -> None:
    def load_one(_host: Any, load: Any, *_others: Any) -> LoadOutcome:
        return LoadOutcome("", "web1: no room") if load["kind"] == "mariadb" else LoadOutcome("shop as old")

    monkeypatch.setattr(workflow, "load_dumps", load_one)
    bench.results = [{**RESULT, "files_created": 2}]
    with pytest.raises(
        TransferError, match="^All files are restored and compared, .* web1: no room. Loaded: "
    ) as failed:
        bench.run(consistent=[{kind: {"over": over}} for one in LOADS for kind in one])
    assert "web1: no room. Loaded: shop as old (postgresql)" in str(failed.value)
    assert ("Another run refuses to load over these: remove them first" in str(failed.value)) != over
    assert bench.state == "unloaded" and bench.report["loaded"] == {"postgresql": "shop as old"}
    assert bench.report["result"]["files_total"] == 2 and "no room" in bench.report["result"]["failure"]
    assert bench.summary["entries"] == 2 and "dumps of postgresql" in bench.noted[0]["why"]
    assert any(line.startswith("2 entries, 5 B: 2 created") for line in bench.shown)


@pytest.mark.parametrize("outcome", [LoadOutcome("", "the database 'old' exists already"), HostFailed("lost", "web1")])
def test_a_load_that_loads_nothing_does_not_claim_that_databases_are_loaded(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, outcome: Any
) -> None:
    def load_one(*_given: Any) -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(workflow, "load_dumps", load_one)
    with pytest.raises(TransferError) as failed:
        bench.run(consistent=LOADS)
    assert "exists already" in str(failed.value) or "web1: lost. Look on web1" in str(failed.value)
    assert "Another run refuses" not in str(failed.value) and "Loaded:" not in str(failed.value)
    assert "resume" not in str(failed.value) and not bench.noted
    bench.answers["inspect_destination"] = {**FREE, "free": False}
    bench.results = [RESULT, RESULT]
    bench.run()
    assert [check for _options, check, _state in bench.transfers] == [False, True, False], "files of a user stay"


def test_a_damaged_report_is_named(bench: Bench) -> None:
    bench.run()
    (path,) = bench.folder.glob("*.json")
    path.write_text("{")
    bench.answers["inspect_destination"] = {**FREE, "free": False}
    with pytest.raises(Refusal, match=f"{path} cannot be read"):
        bench.run()


@pytest.mark.parametrize(
    "step, answer, words",
    [
        ("snapshot", {"refused": "there is no repository"}, "vault: there is no repository"),
        ("snapshot", {"snapshots": [1]}, "vault: its answer cannot be read"),
        ("snapshot", {"snapshots": []}, "Nothing was restored: there is no complete snapshot"),
        ("inspect_snapshot", {**INTACT, "kind": "socket"}, "vault: its answer cannot be read"),
        ("inspect_snapshot", {**INTACT, "problems_total": 1}, "not all is as it was"),
        ("inspect_snapshot", {**INTACT, "kind": "other"}, "symbolic link or a special file"),
        ("inspect_destination", {}, "web1: its answer cannot be read"),
        ("inspect_destination", {**FREE, "overlaps": True}, "could spoil the snapshots"),
    ],
)
def test_nothing_begins_after_such_an_answer(bench: Bench, step: str, answer: Any, words: str) -> None:
    bench.answers[step] = answer
    with pytest.raises((Refusal, HostFailed), match=words):
        bench.run()
    assert not bench.transfers and not bench.folder.exists() and not bench.summary


def test_a_snapshot_that_changes_meanwhile_is_a_failure(bench: Bench) -> None:
    bench.results = [{**RESULT, "vanished": 2}]
    with pytest.raises(TransferError, match="2 files were gone") as failed:
        bench.run()
    assert failed.value.details == {**RESULT, "vanished": 2} and bench.state == "failed"
