# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""List the source for those who divide it or want to know how much there is."""

from __future__ import annotations

import os
from typing import Callable, Iterator

from ..._core.settings import Settings
from ..._model.entry import DIRECTORY, REGULAR
from ..._model.filters import Filters
from ..._tree.dirfd import Root
from ..._tree.holes import count_holes
from ..._tree.walk import walk
from .shards import SourceEntry


def list_source(
    root: bytes,
    settings: Settings,
    on_staging: Callable[[bytes], None] = lambda _path: None,
    top: bytes | int | None = None,
) -> Iterator[SourceEntry]:
    """Yield what the plan lets through, directories before their contents; what cannot be read is rsync's to report.

    ``top``: the root, where it is open already. Raises ValueError for a filter rule that only rsync itself can follow.
    """
    filters = Filters.parse(settings["rules"])
    only = os.fsencode(settings["only"]) if settings["only"] is not None else None
    found = walk(
        root if top is None else top,
        filters=filters,
        one_file_system=settings["one_file_system"],
        only=only,
        on_staging=on_staging,
        on_error=lambda _path, _error: None,
    )
    with Root(root if top is None else top) as tree:
        for entry in found:
            content = count_holes(tree, entry).content if entry.has_large_holes else entry.size
            size, content = (entry.size, content) if entry.type == REGULAR else (0, 0)
            yield SourceEntry(entry.path, entry.type == DIRECTORY, size, entry.link_id, size - content)
