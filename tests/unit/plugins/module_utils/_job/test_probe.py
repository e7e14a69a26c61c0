# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plan depends on changes the fingerprint of a probe, and what changes all the time does not."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job import commands
from ansible_collections.longhaul.fleet.plugins.module_utils._job.probe import fingerprint

STEADY = ("python", "user", "uid", "machine", "cores", "aes", "tls13", "zstd", "addresses", "link_mbit", "selinux")
STEADY_OF_PATH = ("real", "type", "empty", "existing", "readable", "writable", "folder")


def probed(place: Path, side: str = "dest", **more: Any) -> dict[str, Any]:
    step = {"do": "probe", "id": "0123456789abcdef", "side": side, "path": str(place), "methods": ["stream"]}
    step.update({"ssh_ports": [22], "child": "src", **more})
    (facts,) = commands.run_steps([step], commands.StepContext({}, ""))
    assert isinstance(facts, dict)
    return facts


@pytest.fixture(name="place")
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(
        "ansible_collections.longhaul.fleet.plugins.module_utils._job.state.state_root", lambda: "/none"
    )
    place = tmp_path / "place"
    (place / "src/before").mkdir(parents=True)
    return place


def changed(facts: dict[str, Any], *where: str) -> dict[str, Any]:
    """Return other facts: the value that is found by these keys is another one."""
    made = copy.deepcopy(facts)
    inner = made
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = json.dumps(inner[where[-1]]) + "x"
    return made


def test_a_second_probe_has_the_same_although_the_tree_has_grown(place: Path) -> None:
    for side in ("source", "dest"):
        before = probed(place, side)["fingerprint"]
        (place / "src" / side).mkdir()
        (place / side).write_bytes(os.urandom(1 << 20))
        assert probed(place, side)["fingerprint"] == before


def test_what_a_plan_depends_on_changes_it(place: Path) -> None:
    facts = probed(place)
    known = fingerprint(facts)
    for name in (
        *STEADY,
        "owners",
        "no_folders",
        "not_followed",
        "methods",
        "programs",
        "sshd",
        "rsyncd_module",
        "system",
    ):
        assert fingerprint(changed(facts, name)) != known, name
    for name in STEADY_OF_PATH:
        assert fingerprint(changed(facts, "path", name)) != known, name
        assert fingerprint(changed(facts, "path", "child", name)) != known, name
    for name in ("running", "request"):
        assert fingerprint(changed(facts, "job", name)) != known, name


def test_another_directory_of_the_same_name_changes_it(place: Path) -> None:
    before = probed(place)["fingerprint"]
    place.rename(place.with_name("aside"))
    (place / "src").mkdir(parents=True)
    assert probed(place)["fingerprint"] != before


def test_the_steps_follow_only_where_the_probe_finds_the_same(place: Path) -> None:
    then = [{"do": "describe", "path": str(place)}]
    known = probed(place)["fingerprint"]
    assert probed(place, expected=known, then=then)["then"][0]["path"]["real"] == str(place)
    (place / "src").rename(place / "other")
    assert "then" not in probed(place, expected=known, then=then)
    assert "then" not in probed(place, expected="", then=then)
