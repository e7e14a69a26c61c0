# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The engine as a host keeps it: compiled, whole or not at all."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job import bytecode_cache
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.engine import pack_engine


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "engine.pyz"
    path.write_bytes(pack_engine())
    return str(path)


def test_it_runs_without_its_sources(tmp_path, archive):
    place = tmp_path / "kept" / "engine-x.pyz"
    bytecode_cache.keep(archive, str(place))
    load = "import longhaul._job.main, longhaul._job.transfer_job, longhaul._job.commands, longhaul._methods.stream"
    code = f"import sys; sys.path.insert(0, {str(place)!r}); {load}; print(longhaul._job.commands.__file__)"
    said = subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert said.stdout.strip() == f"{place}/longhaul/_job/commands.pyc"
    failed = subprocess.run([sys.executable, "-I", "-S", place, "job"], stderr=subprocess.PIPE, text=True, check=False)
    assert 'File "engine.pyz/longhaul/_job/main.py", line ' in failed.stderr
    assert [path.name for path in place.parent.iterdir()] == ["engine-x.pyz"]


def test_the_same_sources_give_the_same_archive():
    assert pack_engine() == pack_engine()
    with zipfile.ZipFile(io.BytesIO(pack_engine())) as packed:
        assert {info.date_time[0] for info in packed.infolist()} == {1980}


def test_what_cannot_be_kept_leaves_nothing(tmp_path, archive, monkeypatch):
    place = tmp_path / "kept" / "engine-x.pyz"

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bytecode_cache.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        bytecode_cache.keep(archive, str(place))
    assert list(place.parent.iterdir()) == []
    place.parent.rmdir()
    place.parent.symlink_to(tmp_path)
    with pytest.raises(OSError, match="not a folder of this user"):
        bytecode_cache.keep(archive, str(place))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["engine.pyz", "kept"]


def test_what_was_not_used_for_long_goes(tmp_path, archive):
    place = tmp_path / "kept" / "engine-x.pyz"
    place.parent.mkdir(mode=0o700)
    for name in ("engine-old.pyz", "engine-new.pyz", "notes"):
        (place.parent / name).touch()
    for name in ("engine-old.pyz", "notes"):
        os.utime(place.parent / name, (1, 1))
    bytecode_cache.keep(archive, str(place))
    assert {path.name for path in place.parent.iterdir()} == {"engine-new.pyz", "engine-x.pyz", "notes"}
