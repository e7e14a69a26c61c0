# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How coarsely a file system keeps times is found out without a trace."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._tree import time_units

SECOND = 10**9


@pytest.fixture(name="folder")
def _folder(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.mark.parametrize("named", [False, True])
def test_a_fine_file_system_is_left_as_it_was(tmp_path, folder, monkeypatch, named):
    if named:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    os.utime(tmp_path, ns=(5, 6))
    assert time_units.measure(folder) == 1
    assert list(tmp_path.iterdir()) == [] and tmp_path.stat().st_mtime_ns == 6


@pytest.mark.parametrize("unit", [1, 100, 1000, 10**7, SECOND, 2 * SECOND])
def test_every_unit_is_told_from_the_others(folder, monkeypatch, unit):
    set_time = os.utime

    def set_rounded(path, ns, **more):
        set_time(path, ns=tuple(one - one % unit for one in ns), **more)

    monkeypatch.setattr(os, "utime", set_rounded)
    assert time_units.measure(folder) == unit


def test_what_cannot_be_written_to_is_looked_at(folder, monkeypatch):
    def refuse(*_given, **_more):
        raise PermissionError(1, "no")

    monkeypatch.setattr(os, "utime", refuse)
    assert time_units.measure(folder) == time_units.observe(folder) == 1


def test_whole_seconds_are_believed_if_all_times_have_them(tmp_path, folder, monkeypatch):
    times = {}
    monkeypatch.setattr(time_units, "_is_finer", lambda status: times.get(status.st_ino, False))
    (tmp_path / "a").touch()
    assert time_units.observe(folder) == SECOND
    times[(tmp_path / "a").stat().st_ino] = True
    assert time_units.observe(folder) == 1
    assert time_units.observed_units(os.fsencode(tmp_path), []) == {}
