# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What hosts say of themselves, as it is and as it must not be."""

from __future__ import annotations

import json

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.module_utils._job import commands, state
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.probe import parse_described, parse_probe

STEP = {"id": "0123456789abcdef", "side": "source", "methods": ["rsync", "stream", "tar_nc", "scp"], "ssh_ports": [22]}


@pytest.fixture(name="said")
def _said(tmp_path, monkeypatch):
    """What this host says, as it is sent."""
    monkeypatch.setattr(state, "state_root", lambda: str(tmp_path / "state"))
    step = {"do": "probe", "path": str(tmp_path), "child": "x", "owners": {"users": ["root", "nobody-has-it"]}, **STEP}
    return json.loads(json.dumps(commands.run_steps([step], commands.StepContext({}, "")))).pop()


def test_what_a_host_says_is_read(said):
    found = parse_probe(said)
    assert found == said
    assert found["path"]["child"]["type"] == "missing" and found["path"]["measured"]["complete"]
    assert found["owners"]["users"] == {"root": 0, "nobody-has-it": None}


WRONG = [
    ("uid", "0"),
    ("aes", 1),
    ("python", ["3"]),
    ("addresses", [1]),
    ("addresses", None),
    ("path", {}),
    ("path.real", None),
    ("path.free_bytes", "much"),
    ("path.measured", {"entries": 1}),
    ("path.child", []),
    ("programs", []),
    ("programs.rsync", {"path": "/usr/bin/rsync", "version": "3.2.7"}),
    ("programs.scp", {"path": "/usr/bin/scp"}),
    ("programs.tar", {"path": "/usr/bin/tar", "text": "", "flavour": 5}),
    ("sshd.listening", ["22"]),
    ("sshd.config", {"ciphers": "aes128-ctr"}),
    ("sshd.config", {"permitrootlogin": True}),
    ("rsyncd_module", {"path": 5}),
    ("owners", {"users": {"root": "0"}}),
    ("job", None),
    ("job.running", "no"),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_what_no_host_says_is_refused(said, name, value):
    *above, last = name.split(".")
    place = said
    for one in above:
        place = place[one]
    place[last] = value
    with pytest.raises(WrongShape):
        parse_probe(said)


def test_what_an_earlier_job_left_is_read_as_far_as_it_is_right(said):
    said["job"] = {"running": True, "request": {"part": 1, "fingerprint": "f"}, "status": {"pid": "5", "state": "x"}}
    assert parse_probe(said)["job"] == {"running": True, "request": {"fingerprint": "f"}, "status": {"state": "x"}}


def test_a_description_is_read(tmp_path):
    step = {"do": "describe", "path": str(tmp_path), "owners": {}}
    (said,) = commands.run_steps([step], commands.StepContext({}, ""))
    assert parse_described(said)["path"]["type"] == "directory"
    with pytest.raises(WrongShape):
        parse_described({**said, "hash_speeds": {"blake2b": "fast"}})
