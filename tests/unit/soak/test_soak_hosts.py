# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs that are forked from a process of the tests, and share its unused objects."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job import main
from ansible_collections.longhaul.fleet.tests.soak.hosts import _Job


class Cycle:
    """An object with an open file that only the garbage collector closes."""

    def __init__(self) -> None:
        self.itself, self.file = self, open(os.devnull, "rb")  # noqa: SIM115


def keep_files_open(_arguments: list[str]) -> int:
    """Be a job that opens files, and collects garbage; return 0 if all of them are still open."""
    opened = [os.open(os.devnull, os.O_RDONLY) for _number in range(50)]
    gc.collect()
    for fd in opened:
        os.fstat(fd)
    return 0


def test_unused_objects_of_the_parent_close_no_file_of_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "main", keep_files_open)
    gc.disable()
    try:
        for _number in range(20):
            Cycle()
        with open(tmp_path / "log", "wb") as log:
            job = _Job(["job", str(tmp_path)], log, {})
        job.stdin.close()
        assert os.waitpid(job.pid, 0)[1] == 0, (tmp_path / "log").read_text()
    finally:
        gc.enable()
        gc.collect()
