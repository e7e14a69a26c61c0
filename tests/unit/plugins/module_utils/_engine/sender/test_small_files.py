# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read-ahead for small files that come from a real disk."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, Callable

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.sender.small_files import ReadAhead, SmallFiles


def in_a_thread(work: Callable[[], Any]) -> Any:
    """Run something in a thread of its own: what the kernel counts of it begins with nothing."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def make_cold(root: Path, count: int) -> list[bytes]:
    """Make files that no memory holds; skips where there is no disk, or it forgets nothing."""
    paths = []
    for number in range(count):
        path = root / f"d{number // 50}" / f"f{number}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(os.urandom(5000))
        paths.append(path)
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    if not in_a_thread(lambda: read(root, [os.fsencode(path.relative_to(root)) for path in paths[:50]])):
        pytest.skip("cannot run here: the folder for tests is on no disk whose reads the kernel counts")
    return [os.fsencode(path.relative_to(root)) for path in paths[50:]]


def read(root: Path, paths: list[bytes], ahead: ReadAhead | None = None) -> bool:
    """Read files as the leading thread does; says whether a disk was read for many of them."""
    files = SmallFiles(os.fsencode(root))
    ahead = ahead or ReadAhead(os.fsencode(root))
    for path in paths:
        descriptor = files.open(path)
        assert os.read(descriptor, 10_000) == (root / os.fsdecode(path)).read_bytes()
        os.close(descriptor)
    files.close()
    ahead.was_read(len(paths))
    return ahead.wanted


def test_what_comes_from_a_disk_is_asked_for_until_it_does_not(tmp_path):
    paths = make_cold(tmp_path, 450)
    ahead = ReadAhead(os.fsencode(tmp_path))
    assert not ahead.wanted
    assert in_a_thread(lambda: read(tmp_path, paths[:200], ahead))
    in_a_thread(lambda: ahead.ask(paths[200:]))
    assert ahead.wanted
    assert not in_a_thread(lambda: read(tmp_path, paths[200:]))  # they are in memory by now
    in_a_thread(lambda: ahead.ask(paths[200:]))
    assert not ahead.wanted
    ahead.close()


def test_what_is_gone_is_no_matter(tmp_path):
    (tmp_path / "there").write_bytes(b"1")
    (tmp_path / "link").symlink_to("there")
    ahead = ReadAhead(os.fsencode(tmp_path))
    ahead.ask([b"gone", b"no/such/folder", b"link", b"there"])
    assert not ahead.wanted
    ahead.close()


def test_nothing_is_opened_through_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"1")
    (tmp_path / "link").symlink_to("folder")
    files = SmallFiles(os.fsencode(tmp_path))
    os.close(files.open(b"folder/file"))
    for path in (b"link/file", b"folder/none", b"../x"):
        with pytest.raises((OSError, ValueError)):
            files.open(path)
    os.close(files.open(b"folder/file"))
    before = set(os.listdir("/proc/self/fd"))
    files.close()
    assert len(set(os.listdir("/proc/self/fd"))) < len(before)
