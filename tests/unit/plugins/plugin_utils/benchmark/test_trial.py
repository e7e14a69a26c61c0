# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a trial sends, what it believes of the hosts, and what it leaves there."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark import trial
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.abilities import PairRules, find_abilities
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.candidates import list_candidates
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.trial import Trial, TrialRequest, apply_trial
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed

from tests.support.measured_pairs import GB, MB, end, measured

MIB = 1 << 20
ROOM = "0 x\n/dev/x 99999999 0 99999999 0% /\n"


class Runner:
    """A host that runs scripts here, but makes no large files."""

    def __init__(self, name: str, free: str) -> None:
        self.name, self.sizes, self.free = name, [], free

    def run_module(self, _name: str, asked: Mapping[str, Any], *_more: Any) -> Mapping[str, Any]:
        argv = asked["argv"]
        if len(argv) == 6:
            self.sizes.append(int(argv[5]))
            argv = [*argv[:5], "0"]
        said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        return {"stdout": self.free if self.free and "df" in argv[2] else said}


@pytest.fixture(name="run")
def _run(monkeypatch, tmp_path: Path):
    """Return a function that tries the methods, and returns the candidates, the gaps, and what was asked."""

    def run(rules: PairRules, seconds: float = 1.0, free: str = ROOM, most: int = GB, fails: str = "") -> Any:
        asked: list[Mapping[str, Any]] = []

        def session(_source: Any, _dest: Any, given: Mapping[str, Any], *_more: Any) -> SimpleNamespace:
            def answer() -> Mapping[str, Any]:
                asked.append(given)
                if given["method"] == fails:
                    raise Refusal("the port is closed")
                return {"phases": {"transfer": seconds}}

            return SimpleNamespace(run=answer)

        monkeypatch.setattr(trial, "Session", session)
        folders = {"source": str(tmp_path), "dest": f"{tmp_path}/"}
        request = TrialRequest(folders, int(most), "full", "push", {"port": None, "port_range": "5000-5010"})
        source, dest = Runner("alpha", free), Runner("beta", free)
        pair = measured()
        abilities = find_abilities(end("source"), end("dest"), rules)
        tried = Trial(source, dest, request, lambda _line: None, None).run(
            pair, abilities, list_candidates(pair, abilities)
        )
        assert list(tmp_path.iterdir()) == [], "a folder stayed"
        return *tried, asked, source.sizes

    return run


def test_each_method_that_is_allowed_runs_with_made_data(run):
    pair, candidates, asked, sizes = run(PairRules(encryption="none"), seconds=6.0)

    assert len(asked) == len(candidates) == 8 and not any(one.derived for one in candidates)
    assert sizes == [512], "one file for all"
    assert pair.bytes_sent == 8 * 512 * MIB
    methods = {(one["method"], one["encryption"]) for one in asked}
    assert {("stream", "required"), ("stream", "none"), ("rsyncd", "none"), ("rsync", "required")} <= methods
    assert all(one["compress"] == "none" and one["port_range"] == "5000-5010" for one in asked)
    assert [one["ssh_ciphers"] for one in asked if one["method"] == "rsync"] == [
        ["chacha20-poly1305@openssh.com"],
        ["aes128-gcm@openssh.com"],
    ]


def test_what_is_not_allowed_does_not_run(run):
    _pair, candidates, asked, _sizes = run(PairRules())
    assert {one["method"] for one in asked} == {"stream", "rsync", "scp", "sftp"}
    assert all(one["encryption"] == "required" for one in asked)
    assert {one.method for one in candidates if one.derived} == {"stream", "rsyncd", "tar_nc"}


def test_a_method_that_fails_is_not_allowed_and_says_why(run):
    _pair, candidates, _asked, _sizes = run(PairRules(), fails="scp")
    (found,) = [one for one in candidates if one.method == "scp"]
    assert not found.allowed and "the port is closed" in found.refused


def test_without_room_the_speeds_stay_derived(run):
    pair, candidates, asked, _sizes = run(PairRules(), free="0 x\n/dev/x 9999 0 9999 0% /\n")
    assert asked == [] and all(one.derived for one in candidates)
    assert "2 MiB" in pair.gaps[0]


def test_the_budget_bounds_what_is_sent(run):
    assert run(PairRules(), most=100 * MIB)[3] == [100]


def test_a_folder_that_is_missing_is_the_reason_and_nothing_stays(monkeypatch, tmp_path: Path):
    folders = {"source": str(tmp_path), "dest": str(tmp_path / "missing")}
    request = TrialRequest(folders, 10**9, "full", "push", {})
    made = Trial(Runner("alpha", ""), Runner("beta", ""), request, print, None)  # type: ignore[arg-type]
    with pytest.raises(HostFailed, match="beta: mkdir: .*missing"):
        made.run(measured(), (), ())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("rate", "most", "size"),
    [
        (0, 9999, 8),
        (1 * MB, 9999, 8),
        (20 * MB, 9999, 64),
        (117 * MB, 9999, 512),
        (2 * GB, 9999, 2048),
        (2 * GB, 100, 100),
    ],
)
def test_a_method_sends_what_takes_some_seconds(rate: float, most: int, size: int):
    assert trial.choose_size(rate, most) == size


def test_the_start_of_a_method_does_not_count():
    pair, abilities = measured(), find_abilities(end("source"), end("dest"), PairRules())
    scp = next(one for one in abilities if one.method == "scp")
    (derived,) = list_candidates(pair, (scp,))
    seen = apply_trial(pair, scp, derived, int(100 * MB), derived.first_byte + 0.18 + 1.0)
    assert seen.plain == pytest.approx(100 * MB, rel=0.01) and not seen.derived
    slow = measured(read=10 * MB)
    assert apply_trial(slow, scp, derived, int(100 * MB), 1.0).plain == 10 * MB
    assert apply_trial(slow, scp, derived, int(100 * MB), 1.0).limited_by == "source_disk"
    assert apply_trial(pair, scp, derived, 100, 0.0).plain > 0


@pytest.mark.parametrize("said", ["", "df: no", "a b c -1", "a b c 1e9\n"])
def test_an_answer_without_room_is_refused(said: str):
    with pytest.raises(ValueError, match="df does not say"):
        trial.parse_free(said)
