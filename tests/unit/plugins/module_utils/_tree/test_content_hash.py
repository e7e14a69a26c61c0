# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hashes of contents, and the count of what is read while a file is read."""

from __future__ import annotations

import threading

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Progress
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.content_hash import ReadMeter, with_contents
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.walk import walk

MIB = 1 << 20


def entries(folder):
    return walk(bytes(folder), on_error=lambda path, error: None)


class Stopped(ReadMeter):
    """Lets a test look after the first piece of a file."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(progress)
        self.has_read, self.goes_on = threading.Event(), threading.Event()

    def count(self, size: int) -> None:
        super().count(size)
        self.has_read.set()
        assert self.goes_on.wait(20)


def test_a_file_counts_while_it_is_read(tmp_path):
    (tmp_path / "large").write_bytes(bytes(3 * MIB))
    progress = Progress()
    meter = Stopped(progress)
    found = []
    reader = threading.Thread(
        target=lambda: found.extend(with_contents(entries(tmp_path), bytes(tmp_path), "blake2b", meter=meter))
    )
    reader.start()
    try:
        assert meter.has_read.wait(20)
        assert (progress.bytes_done, progress.current, found) == (MIB, "large", [])
    finally:
        meter.goes_on.set()
        reader.join()
    assert progress.bytes_done == 3 * MIB and len(found) == 2


@pytest.mark.parametrize("known", [None, lambda _entry: b"known"])
def test_what_is_not_read_does_not_count(tmp_path, known):
    (tmp_path / "file").write_bytes(b"12345")
    progress = Progress()
    list(with_contents(entries(tmp_path), bytes(tmp_path), "blake2b", known=known, meter=ReadMeter(progress)))
    assert progress.bytes_done == (0 if known else 5)
