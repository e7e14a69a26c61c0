# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a measurement sends, and what it believes of the hosts."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.action import benchmark
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed

OPTIONS = {"folder": "", "most_mib": 256, "mib": None, "seconds": 10}
CIPHERS = ["aes128-gcm@openssh.com", "aes256-ctr"]


class Runner:
    """A host that runs scripts here, but makes no large files."""

    def __init__(self, name: str, free: str = "") -> None:
        self.name, self.variables, self.sizes = name, {}, []
        self._free = free

    def run_module(self, name: str, asked: Mapping[str, Any], *_more: Any) -> Mapping[str, Any]:
        if name != "ansible.builtin.command":
            return {"peers": {"beta": {"ciphers": CIPHERS}}}
        argv = asked["argv"]
        if len(argv) == 6:
            self.sizes.append(int(argv[5]))
            argv = [*argv[:5], "0"]
        said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        return {"stdout": self._free if self._free and "df" in argv[2] else said}


@pytest.fixture(name="measure")
def _measure(monkeypatch, tmp_path):
    """Return a function that measures between two hosts, and returns the result and the sizes that were made."""

    def run(speed: int, free: str = "0 x\n/dev/x 99999999 0 99999999 0% /\n", **options: Any) -> Any:
        asked: list[Mapping[str, Any]] = []

        def session(_source: Any, _dest: Any, given: Mapping[str, Any], *_more: Any) -> SimpleNamespace:
            asked.append(given)
            result = {"throughput": speed, "cmd": {"source": ["rsync", "-e", f"ssh -c {','.join(CIPHERS)} x"]}}
            return SimpleNamespace(run=lambda: result)

        monkeypatch.setattr(benchmark, "Session", session)
        action: Any = object.__new__(benchmark.ActionModule)
        action._task, action.interruption = SimpleNamespace(check_mode=False), None
        source, dest = Runner("alpha", free), Runner("beta", free)
        result = action.run_pair(source, dest, {**OPTIONS, "folder": str(tmp_path), **options}, print)
        assert all(one["ssh_ciphers"] == CIPHERS and one["connect"] == "push" for one in asked)
        return result, source.sizes

    return run


@pytest.mark.parametrize(
    ("speed", "options", "sent"),
    [
        (1 << 30, {}, [8, 64, 256]),
        (1 << 30, {"most_mib": 2000}, [8, 64, 512]),
        (10 << 20, {}, [8, 64]),
        (1 << 20, {}, [8]),
        (1 << 30, {"mib": 64}, [64]),
        (1 << 30, {"mib": 1000, "most_mib": 100}, [100]),
    ],
)
def test_more_is_sent_as_long_as_it_is_quick(measure, tmp_path: Path, speed: int, options: dict[str, Any], sent: list):
    result, sizes = measure(speed, **options)
    assert sizes == sent
    assert result == {"speed": speed, "mib": sent[-1], "cipher": "aes128-gcm@openssh.com"}
    assert list(tmp_path.iterdir()) == [], "a folder stayed"


def test_little_room_is_refused(measure, tmp_path: Path):
    with pytest.raises(ValueError, match="too little room"):
        measure(1, free="0 x\n/dev/x 9999 0 9999 0% /\n")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_missing_is_the_reason(measure, tmp_path: Path):
    with pytest.raises(HostFailed, match="alpha: mkdir: .*missing"):
        measure(1, free="", folder=str(tmp_path / "missing"))
    with pytest.raises(ValueError, match="absolute"):
        measure(1, folder="var/tmp")


@pytest.mark.parametrize("said", ["", "df: no", "a b c -1", "a b c 1e9\n"])
def test_an_answer_without_room_is_refused(said: str):
    with pytest.raises(ValueError, match="df does not say"):
        benchmark.parse_free(said)


@pytest.mark.parametrize("found", [["aes128-ctr", 7], ["-oProxyCommand=x"], ["a b"], ["aes128-ctr\nx"], [None]])
def test_what_cannot_be_a_cipher_is_refused(found: list[object]):
    with pytest.raises(ValueError, match="cannot be any"):
        benchmark.parse_ciphers(found)
