# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Suggest paths of a tree that are similar to one that does not exist. Private to the collection.

Pure, and a stream: of a large tree only the names in one folder are in memory.
"""

from __future__ import annotations

import difflib
from typing import Iterable

from .._model.paths import join

_ALIKE = 0.5  # of difflib: how much two names must have in common


def suggest_paths(path: bytes, paths: Iterable[bytes], count: int = 5) -> list[bytes]:
    """Return up to ``count`` paths that are much like ``path``, the likeliest first.

    ``paths`` are all paths of the tree in the order of a walk. Names that are spelled much the same in the deepest
    folder of ``path`` that is there come first, then those that have the same name elsewhere.
    """
    wanted = path.split(b"/")
    ancestors = {b"/".join(wanted[:depth]): depth for depth in range(1, len(wanted))}
    folder, missing = b"", wanted[0]
    siblings: list[bytes] = []
    elsewhere: list[bytes] = []
    for found in paths:
        parent, _slash, name = found.rpartition(b"/")
        if found in ancestors:  # its contents come right behind
            folder, missing, siblings = found, wanted[ancestors[found]], []
            continue
        if found and parent == folder:
            siblings.append(name)
        if name.lower() == wanted[-1].lower() and len(elsewhere) < count:
            elsewhere.append(found)
    texts = {sibling.decode("utf-8", "surrogateescape"): sibling for sibling in siblings}
    by_case = {text.lower(): text for text in texts}
    alike = difflib.get_close_matches(_lower(missing), by_case, count, _ALIKE)
    likely = [join(folder, texts[by_case[text]]) for text in alike]
    return list(dict.fromkeys([*likely, *elsewhere]))[:count]


def _lower(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape").lower()
