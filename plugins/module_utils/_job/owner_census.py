# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Count a tree's owners before a program moves it that does not say whom it met. Private to the collection."""

from __future__ import annotations

import os

from .._core.errors import TransferFailed
from .._model.filters import FilterError, Filters
from .._tree.held_root import open_held
from .._tree.owners import OwnerCount
from .._tree.walk import walk
from .confine_job import confine_reader
from .reporter import Reporter
from .request import parse_census_request, tags_of
from .state import JobFolder


def run_census(folder: JobFolder, _secrets: dict[str, str], reporter: Reporter) -> int:
    """Walk the tree that the folder's request names, and publish its ``owners``; return the exit code.

    What cannot be read is left to the transfer to report.
    """
    request, progress = parse_census_request(folder.request), reporter.progress
    progress.phase = "counting owners"
    root = os.fsencode(request["root"])
    try:
        held = open_held(root)
    except OSError as error:
        raise TransferFailed(f"the source {request['root']} cannot be read: {error.strerror}") from error
    confine_reader(held, folder.path, xattrs="acls" in request["preserve"])
    reporter.set(state="running")
    try:
        filters = Filters.parse(request["rules"]) if request["rules"] else None
    except FilterError as error:
        raise TransferFailed(str(error)) from error
    counted = OwnerCount(request["preserve"])
    for entry in walk(
        held,
        filters=filters,
        one_file_system=request["one_file_system"],
        tags=tags_of(request),
        xattrs="acls" in request["preserve"],
        only=os.fsencode(request["only"]) if request["only"] else None,
        on_error=lambda _path, _error: None,
    ):
        if entry.path or not request["only"]:
            counted.add(entry)
            progress.files_done += 1
    os.close(held)
    reporter.set(state="finished", owners=counted.as_dict(root))
    return 0
