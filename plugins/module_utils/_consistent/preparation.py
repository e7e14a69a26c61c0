# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make all consistent sources of a backup, one after the other. Private to the collection."""

from __future__ import annotations

import contextlib
import os
from typing import Sequence

from .._core.context import Progress
from .._core.disk_full import FULL, no_room
from .._core.errors import TransferFailed
from . import btrfs
from .made import SNAPSHOT, MadeList
from .mariadb import dump_mariadb
from .postgresql import dump_postgresql
from .request import BtrfsSource, ConsistentRequest, MariadbSource, PostgresqlSource, Source
from .sqlite import copy_sqlite


def prepare(request: ConsistentRequest, made: MadeList, progress: Progress) -> None:
    """Make the sources: dumps first, so that a snapshot of the file system holds them. Raises TransferFailed."""
    for source in sorted(request.sources, key=lambda one: isinstance(one, BtrfsSource)):
        try:
            files, size = _make(source, request, made)
        except OSError as error:
            if error.errno in FULL:
                raise TransferFailed(no_room(error, "the folder of dumps")) from error
            raise
        progress.files_done += files
        progress.bytes_done += size


def find_read(source: BtrfsSource, request: ConsistentRequest) -> Sequence[str]:
    """Return the live paths that the transfers read in the snapshot of a subvolume, and the folders of dumps in them.

    Pure.
    """
    top = os.path.join(source.subvolume, source.name)
    inside = [path for path in request.readers if path == top or path.startswith(f"{top}/")]
    read = [os.path.normpath(os.path.join(source.subvolume, os.path.relpath(path, top))) for path in inside]
    places = [one.place for one in request.sources if not isinstance(one, BtrfsSource)]
    return [*read, *(place.into for place in places if place.root in read)]


def _make(source: Source, request: ConsistentRequest, made: MadeList) -> tuple[int, int]:
    if isinstance(source, BtrfsSource):
        return _make_snapshot(source, find_read(source, request), made)
    if isinstance(source, PostgresqlSource):
        return dump_postgresql(source, made)
    if isinstance(source, MariadbSource):
        return dump_mariadb(source, made)
    return copy_sqlite(source, made)


def _make_snapshot(source: BtrfsSource, read: Sequence[str], made: MadeList) -> tuple[int, int]:
    """Make a snapshot of a subvolume; one that a run left whose list is lost has this job's own name, and goes."""
    path, fd = btrfs.open_subvolume(source)
    try:
        for live in read:
            btrfs.require_in_subvolume(source, fd, live)
        name = os.fsencode(source.name)
        made.add(SNAPSHOT, path, name)
        with contextlib.suppress(FileNotFoundError):
            btrfs.delete_snapshot(fd, name)
        btrfs.make_snapshot(source, fd)
    except OSError as error:
        raise TransferFailed(f"no snapshot of {source.subvolume} can be made: {error.strerror}") from error
    finally:
        os.close(fd)
    return 1, 0
