# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Known damage: files of a snapshot that no later one may be linked to, or take parts of. Private to the collection.

A check names a path in the snapshots that it read. The file of that path can have more names: other paths of the same
snapshot, and the same path in snapshots that were not checked. All of them count.
"""

from __future__ import annotations

import contextlib
from typing import Mapping, NamedTuple

from .._model.entry import REGULAR, Entry
from .._model.paths import unescape
from .._tree.dirfd import Root
from .._tree.walk import walk
from . import names
from .repository import Series


class Damage(NamedTuple):
    """The files of a snapshot whose contents cannot be trusted."""

    paths: frozenset[bytes] = frozenset()
    is_everywhere: bool = False  # no file can be trusted


def known_damage(series: Series, name: str) -> Damage:
    """Return the files of the snapshot ``name`` that checks found damaged, by path and by inode."""
    with contextlib.ExitStack() as stack:
        trees: dict[str, Root] = {}
        damaged: dict[str, set[bytes]] = {}
        for other in series.named() + series.named(names.ASIDE):
            with contextlib.suppress(OSError):
                snapshot = stack.enter_context(series.snapshot(other))
                checked = snapshot.checked()
                if other == name and checked.too_many:
                    return Damage(is_everywhere=True)
                damaged[other] = {unescape(one.path) for one in checked.findings if one.in_doubt and one.path}
                trees[other] = stack.enter_context(snapshot.tree())
        if not any(damaged.values()) or name not in trees:
            return Damage(frozenset(damaged.get(name, ())))
        return Damage(frozenset(damaged[name] | _paths_of(trees, damaged, name)))


def _paths_of(trees: Mapping[str, Root], damaged: Mapping[str, set[bytes]], name: str) -> set[bytes]:
    """Return the paths in one of the trees whose files are damaged according to any of them."""
    every = set().union(*damaged.values())
    found = {
        (other, path): entry
        for other, tree in trees.items()
        for path in every
        if (entry := file_at(tree, path)) is not None
    }
    files = {
        (entry.dev, entry.ino): entry.nlink for (other, path), entry in found.items() if path in damaged.get(other, ())
    }
    left = dict(files)  # names that are not known yet
    for entry in found.values():
        if (entry.dev, entry.ino) in left:
            left[entry.dev, entry.ino] -= 1
    mine = {path for (other, path), entry in found.items() if other == name and (entry.dev, entry.ino) in files}
    if any(count > 0 for count in left.values()):
        entries = walk(trees[name].fd, on_error=lambda _path, _error: None)
        mine |= {entry.path for entry in entries if entry.type == REGULAR and (entry.dev, entry.ino) in files}
    return mine


def file_at(tree: Root, path: bytes) -> Entry | None:
    """Return the regular file at a path; None if there is none, or it cannot be looked at."""
    with contextlib.suppress(OSError, ValueError):
        entry = tree.lstat(path)
        return entry if entry is not None and entry.type == REGULAR else None
    return None
