# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs of a benchmark measure, exclude each other, and leave nothing."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._job import benchmark_job, launcher, reporter, state
from ansible_collections.longhaul.fleet.plugins.module_utils._job.request import parse_benchmark_request
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.credentials import certificate

REQUEST = {
    "part": "benchmark",
    "peer_name": "other",
    "work": "disk",
    "seconds": 0.5,
    "bytes": 1 << 20,
    "rules": [],
    "one_file_system": False,
    "streams": 1,
    "ratio": 1.0,
}


@pytest.fixture(name="root", autouse=True)
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(state, "state_root", lambda: str(tmp_path / "state"))
    return tmp_path


def folder_of(name: str, root: Path, side: str = "dest", **more: object) -> state.JobFolder:
    folder = state.JobFolder(name, side)
    folder.create()
    folder.request = {**REQUEST, "side": side, "root": str(root / "data"), **more}
    return folder


def measured(folder: state.JobFolder) -> benchmark_job.HostMeasured:
    key, shown = certificate("test")
    secrets = {"tls_key": key, "tls_certificate": shown}
    return benchmark_job.measure(folder, parse_benchmark_request(folder.request), secrets)


def test_a_source_is_measured(root: Path) -> None:
    (root / "data").mkdir()
    (root / "data/file").write_bytes(b"text " * 1000)
    found = measured(folder_of("one", root, "source"))
    assert found["tree"]["entries"] == 2
    assert 0 < found["ratio"] < 0.5
    assert found["disk"]["small"] > 0
    assert found["processor"]["ciphers"]["tls"] > 0


def test_a_processor_is_measured_with_made_data(root: Path) -> None:
    found = measured(folder_of("one", root, work="processor"))
    assert found["processor"]["compression"]["zlib-1"] > 0
    assert "disk" not in found


def test_a_python_without_tls_1_3_is_a_gap(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark_job.ssl, "HAS_TLSv1_3", False)
    found = measured(folder_of("one", root, work="processor"))
    assert found["processor"]["ciphers"] == {}
    assert found["processor"]["compression"]["zlib-1"] > 0
    assert "rate of tls could not be measured: the Python of this host has no TLS 1.3" in found["gaps"][0]


@pytest.mark.parametrize("there", [True, False])
def test_a_destination_is_measured_beside_it_and_nothing_stays(root: Path, there: bool) -> None:
    if there:
        (root / "data").mkdir()
    folder = folder_of("one", root)
    with benchmark_job.temporary_folder(folder, str(root / "data")) as (opened, path):
        assert os.path.dirname(path) == os.fsencode(root)
        assert os.fstat(opened).st_mode & 0o777 == 0o700
    found = measured(folder)
    assert "disk" in found
    assert sorted(path.name for path in root.iterdir()) == [*(["data"] if there else []), "state"]
    assert not os.path.exists(folder.file("temporary"))


def test_a_missing_source_is_refused(root: Path) -> None:
    with pytest.raises(TransferFailed, match="there is no .*data to measure"):
        measured(folder_of("one", root, "source"))


def test_a_disk_that_fails_is_a_gap_and_nothing_stays(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(folder: int, *_given: object) -> None:
        os.close(os.open("half", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(benchmark_job.disk, "measure_dest", fail)
    found = measured(folder_of("one", root))
    assert found["disk"]["large"] == 0
    assert "Input/output error" in found["gaps"][0]
    assert [path.name for path in root.iterdir()] == ["state"]


def test_a_running_transfer_is_named(root: Path) -> None:
    own = folder_of("one", root)
    folder_of("two", root, part="drive", peer_name="new")
    lock = state.JobFolder("two", "dest").lock()
    with pytest.raises(TransferFailed, match=r"transfer two \(dest here, with new\) is running"):
        benchmark_job.refuse_beside(own)
    assert lock is not None
    os.close(lock)
    benchmark_job.refuse_beside(own)  # what is interrupted does not run


def test_another_benchmark_is_named_while_it_runs_and_between_its_parts(root: Path) -> None:
    own, other = folder_of("one", root), folder_of("two", root)
    lock = other.lock()
    assert lock is not None
    benchmark_job.claim_host(other)
    with pytest.raises(TransferFailed, match="benchmark two .* is running"):
        benchmark_job.claim_host(own)
    os.close(lock)
    for status in ({"state": "finished"}, {}):  # between its parts
        other.status = cast(state.JobStatus, status)
        with pytest.raises(TransferFailed, match="benchmark two .* is running"):
            benchmark_job.claim_host(own)
    other_side = folder_of("two", root, "source")
    benchmark_job.claim_host(other_side)
    benchmark_job.claim_host(other)  # its next part, although one has been refused meanwhile
    other.status = other_side.status = {"state": "failed"}
    benchmark_job.claim_host(own)


def test_of_benchmarks_that_begin_at_once_one_claims_the_host(root: Path) -> None:
    folders = [folder_of(f"benchmark{number}", root) for number in range(6)]
    locks = [folder.lock() for folder in folders]

    def claim(folder: state.JobFolder) -> bool:
        try:
            benchmark_job.claim_host(folder)
        except TransferFailed:
            return False
        return True

    with ThreadPoolExecutor(len(folders)) as pool:
        assert sorted(pool.map(claim, folders)) == [False] * 5 + [True]
    for lock in locks:
        assert lock is not None
        os.close(lock)
    assert not os.listdir(os.path.join(state.state_root(), "locks"))


@pytest.mark.parametrize("work", ["disk", "serve", "drive", "processor"])
def test_every_part_is_refused_beside_a_transfer(root: Path, monkeypatch: pytest.MonkeyPatch, work: str) -> None:
    own, other = folder_of("one", root, work=work), folder_of("two", root, part="drive", peer_name="new")
    lock = other.lock()
    assert lock is not None
    monkeypatch.setattr(benchmark_job, "be_idle", lambda: None)
    monkeypatch.setattr(benchmark_job.signal, "signal", lambda *_given: None)
    with pytest.raises(TransferFailed, match="transfer two .* is running"):
        benchmark_job.run_benchmark(own, {}, reporter.Reporter(own))
    os.close(lock)


def test_what_a_killed_benchmark_left_goes(root: Path) -> None:
    own, other = folder_of("one", root), folder_of("two", root)
    with pytest.raises(KeyboardInterrupt), benchmark_job.temporary_folder(other, str(root / "data")) as (opened, _path):
        os.close(os.open("half", os.O_CREAT | os.O_WRONLY, dir_fd=opened))
        raise KeyboardInterrupt
    left = root / ".longhaul-benchmark-two"
    assert not left.exists()  # interrupted, and not killed
    left.mkdir()
    (left / "half").write_text("half")
    Path(other.file("temporary")).write_text(f'{{"folder": "{root}"}}')
    other.status = {"state": "running"}
    benchmark_job.refuse_beside(own)
    assert not left.exists()
    assert not os.path.exists(other.path)


def test_the_launcher_cleans_up_after_a_dead_benchmark(root: Path) -> None:
    folder = folder_of("one", root)
    left = root / ".longhaul-benchmark-one"
    left.mkdir()
    Path(folder.file("temporary")).write_text(f'{{"folder": "{root}"}}')
    launcher.stop(folder, succeeded=False)
    assert not left.exists()
    Path(folder.file("temporary")).write_text("{}")
    assert "folder" in benchmark_job.remove_temporary(folder)


@pytest.mark.parametrize("note", ["", "{", '{"folder": "/sr'])
def test_half_a_note_is_none(root: Path, note: str) -> None:
    folder = folder_of("one", root)
    Path(folder.file("temporary")).write_text(note)
    assert benchmark_job.remove_temporary(folder) == ""


def test_a_benchmark_that_is_being_started_is_left_alone(root: Path) -> None:
    own, other = folder_of("one", root), folder_of("two", root)
    benchmark_job.refuse_beside(own)
    assert os.path.exists(other.path)
    for path in (*(other.file(name) for name in os.listdir(other.path)), other.path):
        os.utime(path, (time.time() - 3600,) * 2)
    benchmark_job.refuse_beside(own)
    assert not os.path.exists(other.path)


def test_a_benchmark_is_no_transfer_in_a_list(root: Path) -> None:
    folder_of("one", root)
    assert state.list_jobs() == []


def test_an_odd_request_is_refused() -> None:
    for wrong in ({"seconds": "5"}, {"bytes": None}, {"rules": [1]}, {"peer": {"port": "x"}}):
        with pytest.raises(TransferFailed, match="cannot be read"):
            parse_benchmark_request({**REQUEST, "side": "dest", "root": "/", **wrong})
