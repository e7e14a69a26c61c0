# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The comparison after a transfer, with real trees that both hosts read: both at once, and how often again."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from dataclasses import replace

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.module_utils._job import digest_job, state
from ansible_collections.longhaul.fleet.plugins.module_utils._job.reporter import Reporter
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.plan import make_plan
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import TransferError
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.verification import Verification, comparison_of
from ansible_collections.longhaul.fleet.tests.unit.plugins.plugin_utils.transfer.test_plan import end, options, path

TOGETHER = 20.0  # seconds that one side waits for the other to be asked


class Host:
    """Answers the steps of a comparison here and now. It reads its tree only once the other one has begun to."""

    def __init__(self, name: str, both: threading.Barrier) -> None:
        self.name, self._both = name, both
        self.done: list[str] = []
        self.read: list[list[str] | None] = []

    def run(self, *steps):
        return [self._do(step) for step in steps]

    def _do(self, step):
        self.done.append(step["do"])
        folder = state.JobFolder(step["id"], step["side"])
        if step["do"] == "drill_down":
            return digest_job.drill_down(folder, step)
        if step["do"] != "start":
            return {}
        self._both.wait(TOGETHER)
        self.read.append(step["request"]["content_of"])
        folder.create()
        folder.request = step["request"]
        with Reporter(folder) as reporter:
            request = digest_job.parse_digest_request(folder.request)
            root = os.open(request["root"], os.O_RDONLY)
            try:
                digest_job.make_digest(folder, request, root, reporter)
            finally:
                os.close(root)
        return dict(folder.status, alive=False)


class Case:
    """Two trees, the comparison of which is asked for, and what is done to repair them."""

    def __init__(self, tmp_path, **changes) -> None:
        self.source, self.dest = tmp_path / "source", tmp_path / "dest"
        for name in ("a", "b", "folder/c"):
            (self.source / name).parent.mkdir(parents=True, exist_ok=True)
            (self.source / name).write_bytes(b"right")
        os.link(self.source / "a", self.source / "z")
        both = threading.Barrier(2)
        self.hosts = {side: Host(side, both) for side in ("source", "dest")}
        given = options(src=f"{self.source}/", dest=str(self.dest), verify="checksum", preserve=["times", "hardlinks"])
        self.options = dict(given, **changes)
        ends = [end(side, at=path(real=str(getattr(self, side))), now_ns=2 * 10**18) for side in ("source", "dest")]
        self.plan = make_plan(self.options, *ends, check=False)
        self.rounds: list[dict] = []
        self.reads_rounded = False
        self.copy()

    def copy(self) -> None:
        shutil.rmtree(self.dest, ignore_errors=True)
        shutil.copytree(self.source, self.dest)
        (self.dest / "z").unlink()
        os.link(self.dest / "a", self.dest / "z")
        for place in ("", "folder"):
            shutil.copystat(self.source / place, self.dest / place)

    def spoil(self, name: str) -> None:
        """Change a file's contents and nothing else of it."""
        status = (self.dest / name).stat()
        (self.dest / name).write_bytes(b"wrong")
        os.utime(self.dest / name, ns=(status.st_atime_ns, status.st_mtime_ns))

    def run(self, mend=lambda: None):
        """Verify; each round of repair does what ``mend`` does."""

        def send_again(plan):
            self.rounds.append(dict(plan.settings))
            mend()
            return Outcome(files_updated=1, changes=[">f c"], changes_total=1)

        counts = dict.fromkeys(
            (
                "files_created",
                "files_updated",
                "files_deleted",
                "attributes_changed",
                "bytes_content",
                "bytes_sent",
                "bytes_total",
            ),
            0,
        )
        result = {**counts, "files_unchanged": 5, "changed": False, "changes": [], "changes_total": 0}
        steps = {do: {side: [{"do": do, "id": "0", "side": side}] for side in self.hosts} for do in ("stop", "clear")}
        Verification(
            plan=self.plan,
            comparison=comparison_of(self.plan, self.hosts, self.options, "", self.reads_rounded),
            before=steps["stop"],
            after=steps["clear"],
            label="source -> dest",
            say=lambda line: None,
            phase=lambda name: contextlib.nullcontext(),
            send_again=send_again,
        ).run(result)
        return result


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "state_root", lambda: str(tmp_path / "state"))


def test_what_coarse_times_do_not_tell_is_read_in_the_last_comparison(tmp_path):
    case = Case(tmp_path, verify="size")
    units = {"": 10**9, "folder": 1}
    case.plan = replace(case.plan, settings={**case.plan.settings, "time_units": units})
    for place in {case.dest, *case.dest.rglob("*")} - {case.dest / "folder/c"}:
        whole = place.stat().st_mtime_ns // 10**9 * 10**9
        os.utime(place, ns=(whole, whole))
    inner = (case.source / "folder").stat().st_mtime_ns
    os.utime(case.dest / "folder", ns=(inner, inner))
    assert case.run()["differences_total"] == 0
    case.spoil("b")
    case.spoil("folder/c")  # whose time is kept in nanoseconds, so that it is believed
    assert case.run()["differences_total"] == 0
    case.reads_rounded = True
    assert case.run(lambda: shutil.copy2(case.source / "b", case.dest / "b"))["repaired"] == ["b"]
    assert [one["suspects"] for one in case.rounds] == [["b"]]


def test_equal_trees_are_read_once_and_at_the_same_time(tmp_path):
    case = Case(tmp_path)
    result = case.run()
    assert (result["unstable"], case.rounds) == (0, [])
    assert "repaired" not in result and "warnings" not in result
    for host in case.hosts.values():
        assert host.read == [None]
        assert host.done == ["stop", "start", "stop", "clear", "clear"]


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: only root has trusted attributes")
@pytest.mark.parametrize("trust", ["none", "full"])
def test_attributes_that_are_not_taken_from_an_untrusted_source_are_no_difference(tmp_path, trust):
    case = Case(tmp_path, trust=trust, method="stream", preserve=["times", "hardlinks", "xattrs"], verify="size")
    os.setxattr(case.source / "b", "trusted.overlay.redirect", b"/etc")
    if trust == "none":
        assert case.run()["differences_total"] == 0
        return
    with pytest.raises(TransferError, match="xattrs"):
        case.run()


def test_what_was_repaired_is_read_again_and_nothing_else(tmp_path):
    case = Case(tmp_path)
    case.spoil("folder/c")
    result = case.run(case.copy)
    assert (result["repaired"], result["repaired_total"]) == (["folder/c"], 1)
    assert result["changed"] and "memory" in result["warnings"][0]
    assert [settings["suspects"] for settings in case.rounds] == [["folder/c"]]
    assert [host.read for host in case.hosts.values()] == [[None, ["folder/c"]]] * 2


def test_a_second_round_sees_what_the_first_one_left(tmp_path):
    case = Case(tmp_path)
    case.spoil("a")  # and so its other name
    steps = iter([lambda: (case.dest / "a").unlink() or shutil.copy2(case.source / "a", case.dest / "a"), case.copy])
    result = case.run(lambda: next(steps)())  # pylint: disable=unnecessary-lambda # another step each time
    assert len(case.rounds) == 2
    assert set(result["repaired"]) == {"a", "z"}


def test_after_three_rounds_it_fails_and_names_what_still_differs(tmp_path):
    case = Case(tmp_path)
    case.spoil("b")
    with pytest.raises(TransferError, match=r"'b' \(differs content\).* 3 times") as failure:
        case.run()
    assert len(case.rounds) == 3
    details = failure.value.details
    assert [one["path"] for one in details["differences"]] == ["b"]
    assert (details["repaired"], details["repaired_total"]) == ([], 0)


def test_size_finds_and_repairs_nothing_that_only_contents_show(tmp_path):
    case = Case(tmp_path, verify="size")
    case.spoil("b")
    case.run()
    (case.dest / "b").write_bytes(b"wrong")
    with pytest.raises(TransferError, match="'b'"):
        case.run()
    assert case.rounds == []


def changed_since(case: Case) -> None:
    """Let the transfer have begun before what follows."""
    case.plan = replace(case.plan, started_ns=time.time_ns())
    time.sleep(0.05)  # longer than a tick of the clock of file systems


def test_what_changed_at_the_source_since_is_a_warning(tmp_path):
    case = Case(tmp_path, verify="size")
    changed_since(case)
    (case.source / "b").write_bytes(b"longer than before")
    (case.source / "folder/new").write_bytes(b"made meanwhile")
    result = case.run()
    assert (result["differences_total"], result["unstable"], case.rounds) == (3, 3, [])
    assert sorted(one["path"] for one in result["differences"]) == ["b", "folder", "folder/new"]
    (warning,) = result["warnings"]
    assert "3 entries changed at the source" in warning and "Run the task again" in warning


@pytest.mark.parametrize("extra", [False, True])
def test_one_other_difference_is_still_a_failure(tmp_path, extra):
    """Something that is missing at the destination, or that it alone has, although the source did not change there."""
    case = Case(tmp_path, verify="size", delete=True)
    changed_since(case)
    (case.source / "b").write_bytes(b"longer than before")
    if extra:
        (case.dest / "only here").write_bytes(b"extra")
    else:
        (case.dest / "folder/c").unlink()
    with pytest.raises(TransferError, match="are not the same on both hosts") as failed:
        case.run()
    assert failed.value.details["unstable"] == 1 < failed.value.details["differences_total"]
    assert "warnings" not in failed.value.details


@pytest.mark.parametrize(("year", "is_far"), [(2_200_000_000, True), (2_000_000_000, False)])
def test_a_time_that_the_destination_cannot_store_is_not_taken_for_a_change(tmp_path, year, is_far):
    case = Case(tmp_path, verify="size")
    os.utime(case.source / "b", (1, year))
    os.utime(case.dest / "b", (1, 2**31 - 1))
    with pytest.raises(TransferError) as failed:
        case.run()
    assert (
        "'b' has a time at the source that the file system of the destination cannot" in str(failed.value)
    ) == is_far


def test_a_repair_that_fails_is_said_with_what_differs(tmp_path):
    case = Case(tmp_path)
    case.spoil("b")

    def fail():
        raise TransferError("the line is cut")

    with pytest.raises(TransferError, match=r"'b'.*failed: the line is cut") as failure:
        case.run(fail)
    assert [one["path"] for one in failure.value.details["differences"]] == ["b"]


def test_more_than_can_be_listed_is_looked_for_in_the_whole_tree(tmp_path):
    case = Case(tmp_path)
    for number in range(120):
        (case.source / f"many-{number}").write_bytes(b"right")
    case.copy()
    for number in range(120):
        case.spoil(f"many-{number}")
    result = case.run(case.copy)
    assert (len(result["repaired"]), result["repaired_total"]) == (100, 120)
    assert case.rounds[0]["checksum"] and case.rounds[0]["suspects"] == []
    assert [host.read for host in case.hosts.values()] == [[None, None]] * 2


@pytest.mark.parametrize(("method", "expected"), [("rsync", True), ("rsyncd", True), ("stream", False)])
def test_names_that_rsync_leaves_together_are_told_with_the_way_out(tmp_path, method, expected):
    case = Case(tmp_path, verify="size", method="stream")
    case.plan.settings["method"] = method
    (case.source / "z").unlink()
    shutil.copy2(case.source / "a", case.source / "z")
    os.utime(case.dest, ns=(0, case.source.stat().st_mtime_ns))
    with pytest.raises(TransferError, match="'z' \\(differs links\\)") as caught:
        case.run()
    assert ("run the transfer once with method: stream" in str(caught.value)) is expected
