# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a user should know beforehand about the directories that link_dest names. Pure. Private to the collection."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._model.filters import DEST, Filters

from .endpoint import Endpoint
from .roots import Roots


def link_warnings(options: Mapping[str, Any], rules: list[str], dest: Endpoint, roots: Roots) -> tuple[str, ...]:
    """Return a warning for each directory that is missing, and for each that ``delete`` removes in the end."""
    missing = tuple(
        f"link_dest {path} is no directory on {dest.name}, so nothing can be linked to it: all files are sent"
        for path in dest.probe["no_folders"]
    )
    if not options["delete"] or roots.only is not None:
        return missing
    filters = Filters.parse(rules)
    return missing + tuple(
        f"link_dest {path} is inside {roots.dest}, and delete is set: what the source does not have is deleted there "
        "in the end. Keep it elsewhere, or exclude it"
        for path in options["link_dest"] or ()
        if _is_deleted(os.fsencode(os.path.relpath(path, roots.dest)), filters)
    )


def _is_deleted(path: bytes, filters: Filters) -> bool:
    """Whether a directory, given from the root, is inside it and no rule protects it or one that it is in."""
    parts = path.split(b"/")
    if parts[0] in (b".", b".."):
        return False
    return all(filters.allows(b"/".join(parts[:end]), True, DEST) for end in range(1, len(parts) + 1))
