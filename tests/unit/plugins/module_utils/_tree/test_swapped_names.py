# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real user exchanges names in a folder of his while root works there: what root changes is what root looked at.

Each test is tried against the way that goes by name, too, where it must find the harm.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from pathlib import Path
from typing import Callable

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._tree import metadata, staging
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.stat_entry import stat_entry
from ansible_collections.longhaul.fleet.tests.support.swapper import HAS_EXCHANGE, USER, swapping

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not HAS_EXCHANGE, reason="cannot run here: it needs root, and a C library with renameat2"
)
NAME = ".longhaul-0123456789abcdef"
SECONDS = 3.0  # in which what goes by descriptor must do no harm
PATIENCE = 60.0  # in which the harm must show where names are used
ALL = frozenset(["owner", "group", "permissions", "times", "acls", "xattrs"])


def tries(seconds: float, attempt: Callable[[], None], harm: Callable[[], bool]) -> int:
    """Try again and again until there is harm or the time is over; return how often, or 0 if there was no harm."""
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        count += 1
        attempt()
        if harm():
            return count
    assert count > 20, "too few tries say nothing"
    return 0


class Emptied:
    """A folder of somebody else, which looks like a staging folder, and a link to it in the root of a transfer."""

    def __init__(self, tmp_path: Path) -> None:
        self.root, self.foreign = tmp_path / "root", tmp_path / "foreign"
        self.root.mkdir()
        (self.foreign / "tmp").mkdir(parents=True)
        self.precious = self.foreign / "tmp" / "precious"
        self.precious.write_text("precious")
        (self.root / "link").symlink_to(self.foreign)
        (self.root / NAME / "tmp").mkdir(parents=True, mode=0o700)

    def harm(self) -> bool:
        return not self.precious.exists()


def prepare_by_descriptor(place: Emptied) -> None:
    with contextlib.suppress(TransferFailed, OSError):
        with contextlib.closing(staging.Staging(os.fsencode(place.root), os.fsencode(NAME))) as folders:
            folders.prepare()


def prepare_by_name(place: Emptied) -> None:
    """As version 0.1.0 did: look at the name, then work in what it stands for."""
    folder = place.root / NAME
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.lstat(folder).st_mode):
            with os.scandir(folder / "tmp") as found:
                for entry in found:
                    os.unlink(entry.path)


def test_clearing_the_staging_folder_empties_no_other(tmp_path):
    place = Emptied(tmp_path)
    with swapping(place.root, NAME, "link"):
        assert tries(SECONDS, lambda: prepare_by_descriptor(place), place.harm) == 0


def test_clearing_it_by_name_would_empty_another(tmp_path):
    place = Emptied(tmp_path)
    with swapping(place.root, NAME, "link"):
        assert tries(PATIENCE, lambda: prepare_by_name(place), place.harm)


class Dressed:
    """A program of root's in a user's folder, and a file of his own."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "folder"
        self.folder.mkdir()
        for name in ("program", "evil"):
            (self.folder / name).write_text(name)
        os.chown(self.folder / "evil", USER, USER)
        self.evil = os.open(self.folder / "evil", os.O_RDONLY)
        self.fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        wanted = stat_entry(self.fd, b"program", b"program")
        self.wanted = wanted._replace(mode=0o4755, uid=0, gid=0, mtime_ns=7)
        self.dressed = 0

    def attempt(self, dress: Callable[[Dressed], None]) -> None:
        """Look at the name, and dress it if that is root's program: a file of his is replaced instead."""
        found = stat_entry(self.fd, b"program", b"program", xattrs=True)
        if found.uid != 0:
            return
        self.found = found
        with contextlib.suppress(OSError):
            dress(self)
            self.dressed += 1

    def harm(self) -> bool:
        status = os.fstat(self.evil)
        return (status.st_uid, stat.S_IMODE(status.st_mode), status.st_mtime_ns == 7) != (USER, 0o644, False)

    def close(self) -> None:
        os.close(self.evil)
        os.close(self.fd)


def dress_by_descriptor(place: Dressed) -> None:
    assert metadata.apply(place.fd, b"program", place.wanted, place.found, ALL) == []


def dress_by_name(place: Dressed) -> None:
    """As it was: each call looks the name up again."""
    os.chown(b"program", 0, 0, dir_fd=place.fd, follow_symlinks=False)
    fd = os.open(b"program", os.O_PATH | os.O_NOFOLLOW, dir_fd=place.fd)
    os.chmod(f"/proc/self/fd/{fd}", 0o4755)
    os.close(fd)
    os.utime(b"program", ns=(7, 7), dir_fd=place.fd, follow_symlinks=False)


def test_attributes_are_set_on_what_was_compared_alone(tmp_path):
    with contextlib.closing(Dressed(tmp_path)) as place, swapping(place.folder, "program", "evil"):
        assert tries(SECONDS, lambda: place.attempt(dress_by_descriptor), place.harm) == 0
        assert place.dressed


def test_setting_them_by_name_would_reach_a_file_of_the_user(tmp_path):
    with contextlib.closing(Dressed(tmp_path)) as place, swapping(place.folder, "program", "evil"):
        assert tries(PATIENCE, lambda: place.attempt(dress_by_name), place.harm)
