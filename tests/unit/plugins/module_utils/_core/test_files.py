# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hash of a file, and what exists of a path."""

from __future__ import annotations

import hashlib
import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.files import (
    BUFFER,
    hash_and_close,
    missing_of,
    nearest_existing,
    new_hash,
)


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 5000, BUFFER, BUFFER + 1, 3 * BUFFER])
@pytest.mark.parametrize("room", [None, 64 << 10])
def test_a_file_is_hashed_whole_and_closed(tmp_path, size, room):
    data = os.urandom(size)
    (tmp_path / "f").write_bytes(data)
    for algorithm, expected in (("blake2b", hashlib.blake2b(data, digest_size=32)), ("sha256", hashlib.sha256(data))):
        fd = os.open(tmp_path / "f", os.O_RDONLY)
        assert hash_and_close(fd, algorithm, None if room is None else bytearray(room)) == expected.digest()
        assert not is_open(fd)


def test_what_cannot_be_hashed_is_closed_too(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(IsADirectoryError):
        hash_and_close(fd)
    assert not is_open(fd)
    fd = os.open(os.devnull, os.O_RDONLY)
    with pytest.raises(ValueError, match="not known here"):
        hash_and_close(fd, "crc32")
    assert not is_open(fd)
    with pytest.raises(ValueError, match="known are blake2b, sha256"):
        new_hash("md5")


def test_what_exists_of_a_path(tmp_path):
    there = os.fsencode(tmp_path)
    assert missing_of(there + b"/a/b") == [there + b"/a/b", there + b"/a"]
    assert nearest_existing(there + b"/a/b") == there
    assert (missing_of(there), nearest_existing(there)) == ([], there)
    assert nearest_existing("/") == "/"
    (tmp_path / "dangling").symlink_to("nowhere")
    assert nearest_existing(str(tmp_path / "dangling")) == str(tmp_path / "dangling")
    assert (missing_of("a/b"), nearest_existing("no/such")) == (["a/b", "a"], "")
