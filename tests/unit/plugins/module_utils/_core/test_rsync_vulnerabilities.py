# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is known of a version of rsync, and what its package says of it."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core import rsync_vulnerabilities
from ansible_collections.longhaul.fleet.plugins.module_utils._core.rsync_vulnerabilities import TRANSFER


@pytest.mark.parametrize(
    "version, changelog, count",
    [
        ((3, 5, 0), "", 0),
        ((3, 5, 1), "", 0),
        ((3, 4, 1), "", 2),
        ((3, 2, 7), "", 3),
        ((3, 1, 3), "", 2),  # the first one came with 3.2.7
        ((3, 2, 7), "fixes CVE-2024-12084, CVE-2024-12085", 2),
        ((3, 4, 1), "CVE-2026-29518: Symlink-race TOCTOU", 1),
        ((3, 4, 1), "CVE-2026-29518 CVE-2026-53784", 0),
    ],
)
def test_known_holes(version, changelog, count):
    assert len(rsync_vulnerabilities.open_vulnerabilities(version, changelog)) == count


@pytest.mark.parametrize(
    "text, version",
    [
        ("rsync  version 3.5.0  protocol version 32", (3, 5, 0)),
        ("rsync  version v3.2.7pre1", (3, 2, 7)),
        ("?", (0, 0, 0)),
    ],
)
def test_versions(text, version):
    assert rsync_vulnerabilities.version_of(text) == version


@pytest.mark.parametrize(
    ("version", "changelog", "marks"),
    [
        ((3, 5, 0), "", []),
        ((3, 4, 1), "", ["CVE-2026-53784"]),
        ((3, 2, 7), "CVE-2024-12084, CVE-2024-12087", ["CVE-2026-53784"]),
        ((3, 1, 3), "", ["CVE-2024-12087", "CVE-2026-53784"]),
    ],
)
def test_what_concerns_a_transfer(version, changelog, marks):
    found = rsync_vulnerabilities.open_vulnerabilities(version, changelog, TRANSFER)
    assert [hole.mark for hole in found] == marks


def test_the_changelog_is_that_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "changelog.Debian.gz"
    monkeypatch.setattr(rsync_vulnerabilities, "_DEBIAN_CHANGELOGS", (str(tmp_path / "none"), str(path)))
    path.write_bytes(gzip.compress(b"fixes CVE-2024-12087 \xff"))
    assert "CVE-2024-12087" in rsync_vulnerabilities.rsync_changelog()
    path.write_bytes(path.read_bytes()[:-9])  # a disk that was full
    assert rsync_vulnerabilities.rsync_changelog() == ""
    path.unlink()
    program = tmp_path / "rpm"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert rsync_vulnerabilities.rsync_changelog() == "--query --changelog rsync\n"
