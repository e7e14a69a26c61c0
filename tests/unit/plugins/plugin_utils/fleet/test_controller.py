# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who a control node is: the same with each run from a state folder, and another one on another machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet import controller
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.claims import AlreadyClaimed, process_of
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.controller import Claims, controller_id


def test_it_is_the_same_with_each_run_and_another_with_another_folder(tmp_path: Path) -> None:
    first, second = str(tmp_path / "one"), str(tmp_path / "two")
    assert controller_id(first, write=False) == "" and not (tmp_path / "one").exists()
    made = controller_id(first)
    assert len(made) == 32 and made.isalnum()
    assert controller_id(first) == controller_id(first, write=False) == made != controller_id(second)


def test_another_machine_with_the_folder_or_a_copy_of_it_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = controller_id(str(tmp_path / "one"))
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    assert controller_id(str(tmp_path / "copy")) == made
    monkeypatch.setattr(controller, "_machine", lambda: "another machine")
    assert controller_id(str(tmp_path / "one")) != made


def test_workers_that_are_the_first_at_once_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _number: controller_id(str(tmp_path)), range(40)))) == 1


def test_a_file_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    controller_id(str(tmp_path))
    (tmp_path / "state/.controller").write_text("something else\n")
    with pytest.raises(ValueError, match=r"\.controller holds no id of a control node: remove it"):
        controller_id(str(tmp_path))


def test_of_two_runs_with_one_folder_the_second_is_told_the_process_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        theirs, mine = Claims(str(tmp_path), process_of(other.pid)), Claims(str(tmp_path), process_of(os.getpid()))
        theirs.take("data")
        mine.take("another")
        with pytest.raises(AlreadyClaimed, match=rf"\(process {other.pid}\) is working on this job at this moment"):
            mine.take("data")
        mine.release("data")  # which is not its own
        with pytest.raises(AlreadyClaimed):
            mine.take("data")
        # Another machine says nothing of it, and does not overwrite it.
        with monkeypatch.context() as patch:
            patch.setattr(controller, "_machine", lambda: "another machine")
            mine.take("data")
        with pytest.raises(AlreadyClaimed):
            mine.take("data")
        other.kill()
        other.wait()
    mine.take("data")
    mine.take("data")
    mine.release("data")
