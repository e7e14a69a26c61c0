# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A snapshot that is read is not pruned; what held it and is gone holds it no more."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names, read_lock
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.inspect_path import inspect_path
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.policy import Policy
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.prune import HELD, prune
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.read_lock import open_to_read
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import FIRST, SECOND, THIRD


@pytest.fixture
def three(bench):
    """Three snapshots, of which a policy keeps the last."""
    bench.write("file", b"content")
    for _day in range(3):
        bench.backup()
    return bench


def pruned(bench, reader=lambda path: None, **options):
    with bench.series() as series, series.lock("prune"):
        return prune(series, Policy(last=1), bench.now, reader=reader, **options)


def test_what_is_looked_at_stays_until_nobody_does(three):
    with three.series() as series, open_to_read(series, FIRST), open_to_read(series, FIRST):
        promised = pruned(three, check=True)
        done = pruned(three)
    assert promised == done
    assert (done.removed, done.kept[FIRST], list(done.held)) == ([SECOND], [HELD], [FIRST])
    assert pruned(three).removed == [FIRST]
    assert [name for name in three.names() if name.startswith("2")] == [THIRD]


def test_what_a_job_reads_stays(three):
    asked = []

    def reader(path):
        asked.append(path)
        return "transfer 1" if FIRST in path else None

    done = pruned(three, reader)
    assert asked == [str(three.path(name)) for name in (FIRST, SECOND)]
    assert (done.removed, done.held) == ([SECOND], {FIRST: "transfer 1"})


def test_a_process_that_died_holds_nothing(three):
    hold = "import fcntl, os, sys, time; fcntl.flock(os.open(sys.argv[1], 0), 1); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", hold, str(three.path(FIRST))], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert list(pruned(three).held) == [FIRST]
        process.kill()
    assert pruned(three).removed == [FIRST]


def test_who_comes_too_late_is_told(three, monkeypatch):
    real = fcntl.flock

    def prune_first(fd, how):
        os.rename(three.path(FIRST), three.path(names.REMOVING_PREFIX + FIRST))
        real(fd, how)

    monkeypatch.setattr(read_lock.fcntl, "flock", prune_first)
    with three.series() as series, pytest.raises(Refused, match="any more"):
        inspect_path(series, FIRST, b"", "structure")


def test_a_file_system_without_locks_on_folders_prunes(three, monkeypatch):
    def refuse(_fd, _how):
        raise OSError(9, "Bad file descriptor")

    with three.series() as series, series.lock("prune"):
        monkeypatch.setattr(read_lock.fcntl, "flock", refuse)
        assert prune(series, Policy(last=1), three.now).removed == [FIRST, SECOND]
