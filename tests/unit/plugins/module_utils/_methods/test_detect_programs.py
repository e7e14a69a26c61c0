# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A probe runs the programs of the methods in question and no others; the programs here are scripts."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core import search_path
from ansible_collections.longhaul.fleet.plugins.module_utils._methods import detect_programs
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.methods import METHODS

SAYS = {
    "rsync": "rsync  version 3.2.7  protocol version 31\nno ACLs\nCompress list:\n    zstd lz4 zlibx",
    "tar": "tar (GNU tar) 1.34\nCopyright",
    "nc": "OpenBSD netcat (Debian patchlevel 1.219-1)",
    "ssh": "aes128-ctr",
    "scp": "usage: scp [-346ABCOpqRrsTv] source ... target",
    "sftp": "usage: sftp",
    "sshd": "sshd",
}


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """Return the file in which the programs write that they were run, where none but ours are found."""
    record = tmp_path / "ran"
    record.touch()
    for name, text in SAYS.items():
        script = tmp_path / name
        script.write_text(f"#!/bin/sh\necho {name} >> {record}\ncat <<'END'\n{text}\nEND\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(search_path, "_SYSTEM_FOLDERS", "/usr/bin:/bin")
    return record


@pytest.mark.parametrize(
    ("methods", "found", "expected"),
    [
        (["stream"], set(), set()),
        (["rsyncd"], {"rsync"}, {"rsync"}),
        (["rsync"], {"rsync", "ssh", "sshd"}, {"rsync", "ssh"}),
        (["tar_nc"], {"tar", "nc"}, {"tar", "nc"}),
        (["scp"], {"ssh", "scp", "sshd"}, {"ssh", "scp"}),
        (list(METHODS), set(SAYS), {"rsync", "tar", "nc", "ssh", "scp"}),
    ],
)
def test_only_the_methods_programs_are_looked_at(ran, methods, found, expected):
    looked = detect_programs.look_at_programs(methods)
    assert set(looked) == found
    assert set(ran.read_text().split()) == expected


def test_what_is_known_of_programs(ran, tmp_path):
    looked = detect_programs.look_at_programs(METHODS)
    assert looked["rsync"] == {
        "path": str(tmp_path / "rsync"),
        "version": [3, 2, 7],
        "compress": ["zstd", "lz4", "zlibx"],
        "acls": False,
        "xattrs": True,
        "holes": [],
    }
    assert looked["tar"]["flavour"] == "gnu"
    assert looked["nc"]["dialect"] == "openbsd"
    assert looked["ssh"]["ciphers"] == ["aes128-ctr"]
    assert looked["scp"] == {"path": str(tmp_path / "scp"), "legacy_flag": True}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [("346BCpqrTv", False), ("346ABCOpqRrsTv", True), ("346BCOpqrTv", True)],
)
def test_whether_scp_has_a_flag_for_its_protocol(ran, tmp_path, flags, expected):
    (tmp_path / "scp").write_text(
        f"#!/bin/sh\necho 'usage: scp [-{flags}] [-c cipher] source ... target' >&2\nexit 1\n"
    )
    found = detect_programs.look_at_programs(["scp"])["scp"]
    assert found["legacy_flag"] is expected


def test_each_method_has_its_programs():
    assert {method: bool(detect_programs.programs_of([method])) for method in METHODS} == {
        method: method != "stream" for method in METHODS
    }
