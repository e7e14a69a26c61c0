# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a day costs, by the records of two days; and that a version stays one while its names come and go."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.tests.support import compare
from ansible_collections.longhaul.fleet.tests.support.month import Cost, Versions

NOTHING = Cost(0, 0)


@pytest.fixture
def day(tmp_path):
    """Let a day pass: gives its versions with their sizes, what is new, and what only got a name."""
    versions = Versions()

    def follow():
        return versions.follow(compare.recorded(tmp_path))

    return follow


def test_names_come_and_go_and_the_version_stays(day, tmp_path):
    (tmp_path / "b").write_bytes(b"123")
    first = day()
    assert first == ({1: 3}, Cost(1, 3), NOTHING)
    assert day() == ({1: 3}, NOTHING, NOTHING)
    os.link(tmp_path / "b", tmp_path / "c")
    assert day() == ({1: 3}, NOTHING, Cost(1, 3))
    (tmp_path / "b").unlink()
    assert day() == ({1: 3}, NOTHING, NOTHING)


def test_a_name_before_the_others_makes_it_travel_again(day, tmp_path):
    (tmp_path / "b").write_bytes(b"123")
    day()
    os.link(tmp_path / "b", tmp_path / "a")
    assert day() == ({2: 3}, Cost(1, 3), NOTHING)


@pytest.mark.parametrize("edit", [lambda path: path.chmod(0o600), lambda path: path.write_bytes(b"1"), os.utime])
def test_what_changed_is_a_version_of_its_own(day, tmp_path, edit):
    (tmp_path / "b").write_bytes(b"123")
    (tmp_path / "b").chmod(0o644)
    (tmp_path / "same").write_bytes(b"4567")
    os.utime(tmp_path / "b", (1, 1))
    day()
    edit(tmp_path / "b")
    versions, changed, named = day()
    assert (len(versions), changed, named) == (2, Cost(1, (tmp_path / "b").stat().st_size), NOTHING)
